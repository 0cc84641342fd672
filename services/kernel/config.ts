import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { AgonError } from './errors.js';

const whole = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
};

/** Something that is used and never shown: printed, logged or written as JSON, it is only "[secret]". */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }
}

const secret = (pattern: RegExp, error: string) =>
  z
    .string()
    .regex(pattern, { error })
    .transform((text) => new Secret(text))
    .optional();

const isLoopback = (host: string) => ['127.0.0.1', 'localhost', '::1', '[::1]'].includes(host);

/** Plain HTTP only to this very machine: keys and amounts do not cross a network in clear. */
const providerUrl = z.url().refine((text) => {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}, 'must be https, or http on this machine');

/** Origins as browsers send them, with commas between. */
const origins = z
  .union([z.array(z.string()), z.string().transform((text) => text.split(','))])
  .refine(
    (given) => given.every((text) => URL.canParse(text) && new URL(text).origin === text),
    'must be origins like https://agon.example, with commas between',
  );

/** Every setting, with its environment variable. Flags of the command line override the environment. */
const settings = {
  dataDir: { env: 'AGON_DATA', schema: z.string().min(1).default('.agon') },
  host: { env: 'AGON_HOST', schema: z.string().min(1).default('127.0.0.1') },
  port: { env: 'AGON_PORT', schema: whole(0, 65_535).default(4600) },
  proxies: { env: 'AGON_PROXIES', schema: whole(0, 16).default(0) },
  corsOrigins: { env: 'AGON_CORS_ORIGINS', schema: origins.default([]) },
  spectatorDelayMs: { env: 'AGON_SPECTATOR_DELAY_MS', schema: whole(0, 600_000).default(0) },
  introspection: { env: 'AGON_INTROSPECTION', schema: z.union([z.boolean(), z.stringbool()]).optional() },
  grpcPort: { env: 'AGON_GRPC_PORT', schema: whole(0, 65_535).optional() },
  storeUrl: {
    env: 'AGON_STORE',
    schema: secret(/^esdb(\+discover)?:\/\/\S+$/, 'must start with esdb:// or esdb+discover://'),
  },
  eventstorePort: { env: 'AGON_EVENTSTORE_PORT', schema: whole(0, 65_535).optional() },
  eventstoreCert: { env: 'AGON_EVENTSTORE_CERT', schema: z.string().min(1).optional() },
  eventstoreKey: { env: 'AGON_EVENTSTORE_KEY', schema: z.string().min(1).optional() },
  eventstoreInsecure: {
    env: 'AGON_EVENTSTORE_INSECURE',
    schema: z.union([z.boolean(), z.stringbool()]).default(false),
  },
  playPort: { env: 'AGON_PLAY_PORT', schema: whole(0, 65_535).optional() },
  playCert: { env: 'AGON_PLAY_CERT', schema: z.string().min(1).optional() },
  playKey: { env: 'AGON_PLAY_KEY', schema: z.string().min(1).optional() },
  playClientCa: { env: 'AGON_PLAY_CLIENT_CA', schema: z.string().min(1).optional() },
  playReflection: { env: 'AGON_PLAY_REFLECTION', schema: z.union([z.boolean(), z.stringbool()]).default(false) },
  playTurnMs: { env: 'AGON_PLAY_TURN_MS', schema: whole(1, 3_600_000).default(2_000) },
  playBankMs: { env: 'AGON_PLAY_BANK_MS', schema: whole(0, 3_600_000).default(60_000) },
  playJoinMs: { env: 'AGON_PLAY_JOIN_MS', schema: whole(1, 3_600_000).default(30_000) },
  runner: { env: 'AGON_RUNNER', schema: z.union([z.boolean(), z.stringbool()]).default(true) },
  leaseMs: { env: 'AGON_LEASE_MS', schema: whole(1_000, 3_600_000).default(30_000) },
  cells: { env: 'AGON_CELLS', schema: whole(1, 256).default(availableParallelism()) },
  egress: { env: 'AGON_EGRESS', schema: z.string().min(1).optional() },
  rakeBps: { env: 'AGON_RAKE_BPS', schema: whole(500, 1500).default(1000) },
  stripeSecretKey: {
    env: 'STRIPE_SECRET_KEY',
    schema: secret(/^[sr]k_(test|live)_\w+$/, 'must start with sk_test_, sk_live_, rk_test_ or rk_live_'),
  },
  // Several with commas between: Stripe has one secret an endpoint, and connected accounts have an endpoint of their own.
  stripeWebhookSecret: {
    env: 'STRIPE_WEBHOOK_SECRET',
    schema: secret(/^whsec_\S+(,whsec_\S+)*$/, 'must start with whsec_'),
  },
  stripeUrl: { env: 'AGON_STRIPE_URL', schema: providerUrl.default('https://api.stripe.com') },
  publicUrl: { env: 'AGON_PUBLIC_URL', schema: z.url().optional() },
  depositClearingS: { env: 'AGON_DEPOSIT_CLEARING_S', schema: whole(0, 31_536_000).default(604_800) },
  disputeWindowHours: { env: 'AGON_DISPUTE_WINDOW_HOURS', schema: whole(0, 8_760).default(48) },
  computePrice: { env: 'AGON_COMPUTE_PRICE', schema: whole(0, 1_000_000).default(0) },
  analytics: { env: 'AGON_ANALYTICS', schema: z.union([z.boolean(), z.stringbool()]).default(true) },
  analyticsPort: { env: 'AGON_ANALYTICS_PORT', schema: whole(0, 65_535).optional() },
  analyticsDays: { env: 'AGON_ANALYTICS_DAYS', schema: whole(0, 36_500).default(0) },
  redisUrl: {
    env: 'REDIS_URL',
    schema: z.url({ protocol: /^rediss?$/, error: 'must be a redis or rediss address' }).optional(),
  },
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
  /** How many proxies stand before the gateway: so many entries of X-Forwarded-For are believed. */
  readonly proxies: number;
  /** Pages of these origins may call the gateway from a browser; none of another origin when empty. */
  readonly corsOrigins: readonly string[];
  /** How long after it happened spectators see a turn, so that watching helps no player. */
  readonly spectatorDelayMs: number;
  /** Whether anybody may ask for GraphQL's schema. When left out: on loopback, yes; on a network, no. */
  readonly introspection: boolean;
  /** The door for runners; closed when there is no port, and any free one for 0. */
  readonly grpcPort: number | undefined;
  /** The EventStoreDB that holds the log, as a connection string; the log in the data folder when left out. */
  readonly storeUrl: Secret | undefined;
  /** The door for EventStoreDB's clients; closed when there is no port, and any free one for 0. */
  readonly eventstorePort: number | undefined;
  /** The files of its certificate and key, in PEM; it makes its own when they are left out. */
  readonly eventstoreCert: string | undefined;
  readonly eventstoreKey: string | undefined;
  /** Plain HTTP/2 on this machine alone: whoever reaches it may read. */
  readonly eventstoreInsecure: boolean;
  /** The door for agents that play from outside; closed when there is no port, and any free one for 0. */
  readonly playPort: number | undefined;
  /** PEM files: with certificate and key the door speaks TLS, and with an authority it asks clients for theirs. */
  readonly playCert: string | undefined;
  readonly playKey: string | undefined;
  readonly playClientCa: string | undefined;
  /** Whether tools may ask that door what it serves. */
  readonly playReflection: boolean;
  /** What a turn of an agent outside may take without cost, what it has beyond that, and how late it may come. */
  readonly playTurnMs: number;
  readonly playBankMs: number;
  readonly playJoinMs: number;
  /** Whether a runner runs inside the arena. */
  readonly runner: boolean;
  /** How long a match is a runner's without a heartbeat. */
  readonly leaseMs: number;
  /** Sandbox cells that play matches side by side. */
  readonly cells: number;
  /** The policy file of the runner inside: which agents may reach what on the network. None may when it is left out. */
  readonly egress: string | undefined;
  /** The house's share of a decided pot, in hundredths of a percent: 500 to 1500. */
  readonly rakeBps: number;
  /** Without it, there are play credits and nothing else. */
  readonly stripeSecretKey: Secret | undefined;
  readonly stripeWebhookSecret: Secret | undefined;
  readonly stripeUrl: string;
  /** Where people reach the gateway, for the way back from a payment; the address it listens on when left out. */
  readonly publicUrl: string | undefined;
  /** How long after a deposit its money can be withdrawn. */
  readonly depositClearingS: number;
  /** How long winnings can be played with before they can be withdrawn. */
  readonly disputeWindowHours: number;
  /** What a seat of a match costs, in hundredths of a compute credit; 0 lets everybody play for free. */
  readonly computePrice: number;
  /** Whether events are kept in ClickHouse as well, for charts and questions. */
  readonly analytics: boolean;
  /** Where the embedded ClickHouse answers; any free port of loopback when left out or 0. */
  readonly analyticsPort: number | undefined;
  /** After how many days analytics forget an event; 0 for never. The log never does. */
  readonly analyticsDays: number;
  /** A Redis that several gateways share, for limits and hot boards; this process's memory when left out. */
  readonly redisUrl: string | undefined;
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
  const reserved = new Set(['AGON_REQUIRE_ENGINES', 'AGON_MUTANT', 'AGON_TOKEN', 'AGON_KEY']);
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
      // What is nearly a secret is not shown either.
      const shown = /secret|storeUrl/i.test(name) ? 'not usable' : `"${String(raw)}"`;
      throw new AgonError('CONFIG.INVALID', `${name} (${setting.env}) is ${shown}: ${why}.`, { setting: name });
    }
    values[name] = parsed.data;
  }
  const config = values as unknown as Config;
  if ((config.stripeSecretKey === undefined) !== (config.stripeWebhookSecret === undefined)) {
    const missing = config.stripeSecretKey ? 'STRIPE_WEBHOOK_SECRET' : 'STRIPE_SECRET_KEY';
    throw new AgonError('CONFIG.INVALID', `${missing} is missing: Stripe needs the key and the secret of the webhook.`);
  }
  if ((config.playCert === undefined) !== (config.playKey === undefined) || (config.playClientCa && !config.playCert)) {
    throw new AgonError('CONFIG.INVALID', 'TLS takes both playCert and playKey; playClientCa comes on top of them.');
  }
  if ((config.eventstoreCert === undefined) !== (config.eventstoreKey === undefined)) {
    throw new AgonError('CONFIG.INVALID', 'AGON_EVENTSTORE_CERT and AGON_EVENTSTORE_KEY belong together.');
  }
  const introspection = config.introspection ?? isLoopback(config.host);
  return Object.freeze({ ...config, introspection, dataDir: resolve(config.dataDir) });
}
