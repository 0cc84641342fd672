import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { AgonError } from './errors.js';

const whole = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
};

/** Every setting, with its environment variable. Flags of the command line override the environment. */
const settings = {
  dataDir: { env: 'AGON_DATA', schema: z.string().min(1).default('.agon') },
  host: { env: 'AGON_HOST', schema: z.string().min(1).default('127.0.0.1') },
  port: { env: 'AGON_PORT', schema: whole(0, 65_535).default(4600) },
  grpcPort: { env: 'AGON_GRPC_PORT', schema: whole(0, 65_535).optional() },
  runner: { env: 'AGON_RUNNER', schema: z.union([z.boolean(), z.stringbool()]).default(true) },
  leaseMs: { env: 'AGON_LEASE_MS', schema: whole(1_000, 3_600_000).default(30_000) },
  cells: { env: 'AGON_CELLS', schema: whole(1, 256).default(availableParallelism()) },
  rakeBps: { env: 'AGON_RAKE_BPS', schema: whole(500, 1500).default(1000) },
  analytics: { env: 'AGON_ANALYTICS', schema: z.union([z.boolean(), z.stringbool()]).default(true) },
  analyticsPort: { env: 'AGON_ANALYTICS_PORT', schema: whole(0, 65_535).optional() },
  analyticsDays: { env: 'AGON_ANALYTICS_DAYS', schema: whole(0, 36_500).default(0) },
  clickhouseUrl: {
    env: 'CLICKHOUSE_URL',
    schema: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).optional(),
  },
  logLevel: {
    env: 'AGON_LOG_LEVEL',
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('warn'),
  },
} as const;

export interface Config {
  /** The one folder that holds all that the embedded deployment keeps. Absolute. */
  readonly dataDir: string;
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** The door for runners; closed when there is no port, and any free one for 0. */
  readonly grpcPort: number | undefined;
  /** Whether a runner runs inside the arena. */
  readonly runner: boolean;
  /** How long a match is a runner's without a heartbeat. */
  readonly leaseMs: number;
  /** Sandbox cells that play matches side by side. */
  readonly cells: number;
  /** The house's share of a decided pot, in hundredths of a percent: 500 to 1500. */
  readonly rakeBps: number;
  /** Whether events are kept in ClickHouse as well, for charts and questions. */
  readonly analytics: boolean;
  /** Where the embedded ClickHouse answers; any free port of loopback when left out or 0. */
  readonly analyticsPort: number | undefined;
  /** After how many days analytics forget an event; 0 for never. The log never does. */
  readonly analyticsDays: number;
  /** A ClickHouse server to use instead of the embedded one. */
  readonly clickhouseUrl: string | undefined;
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent';
}

/**
 * Parses the configuration once, in the composition root. Unknown values are refused by name, so that a typing error
 * does not become a default.
 *
 * @example parseConfig({ port: '0' }, process.env)
 */
export function parseConfig(
  flags: Partial<Record<keyof Config, unknown>> = {},
  env: Record<string, string | undefined> = {},
): Config {
  const known = new Set<string>(Object.values(settings).map((setting) => setting.env));
  const reserved = new Set(['AGON_REQUIRE_ENGINES', 'AGON_MUTANT', 'AGON_TOKEN']);
  for (const name of Object.keys(env)) {
    if (name.startsWith('AGON_') && !known.has(name) && !reserved.has(name)) {
      throw new AgonError('CONFIG.UNKNOWN', `${name} is not a setting of Agon. Known: ${[...known].join(', ')}.`);
    }
  }
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(settings)) {
    const raw = flags[name as keyof Config] ?? env[setting.env];
    const parsed = setting.schema.safeParse(raw === '' ? undefined : raw);
    if (!parsed.success) {
      const why = parsed.error.issues[0]?.message ?? 'not valid';
      throw new AgonError('CONFIG.INVALID', `${name} (${setting.env}) is "${String(raw)}": ${why}.`, { setting: name });
    }
    values[name] = parsed.data;
  }
  const config = values as unknown as Config;
  return Object.freeze({ ...config, dataDir: resolve(config.dataDir) });
}
