import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { AgonError, Secret } from '../kernel/index.js';

const whole = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
};

const share = z.coerce.number({ error: 'must be a number from 0 to 1' }).min(0).max(1);

const secret = (pattern: RegExp, error: string) =>
  z
    .string()
    .regex(pattern, { error })
    .transform((text) => new Secret(text))
    .optional();

const flag = z.union([z.boolean(), z.stringbool()]);
const port = whole(0, 65_535);
const text = z.string().min(1);
const token = secret(/^\S{16,}$/, 'must have 16 characters or more');
const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https address' });
const KAFKA_SASL = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;

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
  )
  .readonly();

/** Words with commas between. */
const words = (pattern: RegExp, error: string) =>
  z
    .union([z.array(z.string()), z.string().transform((text) => text.split(',').map((word) => word.trim()))])
    .refine((given) => given.every((word) => pattern.test(word)), error)
    .readonly();

const hostAndPort = /^[\w.-]+:\d{1,5}$/;

/** Every setting, with its environment variable. Flags of the command line override the environment. */
const settings = {
  /** The one folder that holds all that the embedded deployment keeps. Absolute. */
  dataDir: { env: 'AGON_DATA', schema: text.default('.agon') },
  host: { env: 'AGON_HOST', schema: text.default('127.0.0.1') },
  /** 0 takes any free port. */
  port: { env: 'AGON_PORT', schema: port.default(4600) },
  /** How many proxies stand before the gateway: so many entries of X-Forwarded-For are believed. */
  proxies: { env: 'AGON_PROXIES', schema: whole(0, 16).default(0) },
  /** Pages of these origins may call the gateway from a browser; none of another origin when empty. */
  corsOrigins: { env: 'AGON_CORS_ORIGINS', schema: origins.default([]) },
  /** How long after it happened spectators see a turn, so that watching helps no player. */
  spectatorDelayMs: { env: 'AGON_SPECTATOR_DELAY_MS', schema: whole(0, 600_000).default(0) },
  /** Whether webhooks may lead to loopback and private addresses, and go without TLS. */
  webhookPrivate: { env: 'AGON_WEBHOOK_PRIVATE', schema: flag.default(false) },
  /** Whether anybody may ask for GraphQL's schema. When left out: on loopback, yes; on a network, no. */
  introspection: { env: 'AGON_INTROSPECTION', schema: flag.optional() },
  /** A file of the only queries that GraphQL answers to others than staff; it answers all of them when left out. */
  persistedQueries: { env: 'AGON_PERSISTED_QUERIES', schema: text.optional() },
  /** The endpoint for runners; closed when there is no port, and any free one for 0. */
  grpcPort: { env: 'AGON_GRPC_PORT', schema: port.optional() },
  /** The EventStoreDB that holds the log, as a connection string; the log in the data folder when left out. */
  storeUrl: {
    env: 'AGON_STORE',
    schema: secret(
      /^(esdb|kurrentdb)(\+discover)?:\/\/\S+$/,
      'must start with esdb://, kurrentdb://, esdb+discover:// or kurrentdb+discover://',
    ),
  },
  /** The endpoint for EventStoreDB's clients; closed when there is no port, and any free one for 0. */
  eventstorePort: { env: 'AGON_EVENTSTORE_PORT', schema: port.optional() },
  /** The files of its certificate and key, in PEM; it makes its own when they are left out. */
  eventstoreCert: { env: 'AGON_EVENTSTORE_CERT', schema: text.optional() },
  eventstoreKey: { env: 'AGON_EVENTSTORE_KEY', schema: text.optional() },
  /** Plain HTTP/2 on this machine alone: whoever reaches it may read. */
  eventstoreInsecure: { env: 'AGON_EVENTSTORE_INSECURE', schema: flag.default(false) },
  /** The endpoint for agents that play from outside; closed when there is no port, and any free one for 0. */
  playPort: { env: 'AGON_PLAY_PORT', schema: port.optional() },
  /** PEM files: with certificate and key the endpoint speaks TLS, and with an authority it asks clients for theirs. */
  playCert: { env: 'AGON_PLAY_CERT', schema: text.optional() },
  playKey: { env: 'AGON_PLAY_KEY', schema: text.optional() },
  playClientCa: { env: 'AGON_PLAY_CLIENT_CA', schema: text.optional() },
  /** Whether tools may ask that endpoint what it serves. */
  playReflection: { env: 'AGON_PLAY_REFLECTION', schema: flag.default(false) },
  /** What a turn of an agent outside may take without cost, what it has beyond that, and how late it may come. */
  playTurnMs: { env: 'AGON_PLAY_TURN_MS', schema: whole(1, 3_600_000).default(2_000) },
  playBankMs: { env: 'AGON_PLAY_BANK_MS', schema: whole(0, 3_600_000).default(60_000) },
  playJoinMs: { env: 'AGON_PLAY_JOIN_MS', schema: whole(1, 3_600_000).default(30_000) },
  /** How long a match with agents from outside waits for an open endpoint before it is voided. */
  playWaitMs: { env: 'AGON_PLAY_WAIT_MS', schema: whole(1_000, 86_400_000).default(600_000) },
  /** Whether a runner runs inside the arena. */
  runner: { env: 'AGON_RUNNER', schema: flag.default(true) },
  /** How long a match is a runner's without a heartbeat. */
  leaseMs: { env: 'AGON_LEASE_MS', schema: whole(1_000, 3_600_000).default(30_000) },
  /** Sandbox cells that play matches side by side. */
  cells: { env: 'AGON_CELLS', schema: whole(1, 256).default(availableParallelism()) },
  /** The policy file of the runner inside: which agents may reach what on the network. None may when it is left out. */
  egress: { env: 'AGON_EGRESS', schema: text.optional() },
  /** The house's share of a decided pot, in hundredths of a percent: 500 to 1500. */
  rakeBps: { env: 'AGON_RAKE_BPS', schema: whole(500, 1500).default(1000) },
  /** Without it, there are play credits and nothing else. */
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
  /** Where people reach the gateway, for the way back from a payment; the address it listens on when left out. */
  publicUrl: { env: 'AGON_PUBLIC_URL', schema: z.url().optional() },
  /** Whether people may make accounts by themselves. */
  registration: { env: 'AGON_REGISTRATION', schema: flag.default(true) },
  /** Who vouches for people, by OpenID Connect, and as whom this arena is known there. */
  oidcIssuer: { env: 'AGON_OIDC_ISSUER', schema: providerUrl.optional() },
  oidcClientId: { env: 'AGON_OIDC_CLIENT_ID', schema: text.optional() },
  oidcClientSecret: { env: 'AGON_OIDC_CLIENT_SECRET', schema: secret(/^\S+$/, 'must not hold spaces') },
  /** How long after a deposit its money can be withdrawn. */
  depositClearingS: { env: 'AGON_DEPOSIT_CLEARING_S', schema: whole(0, 31_536_000).default(604_800) },
  /** How long winnings can be played with before they can be withdrawn. */
  disputeWindowHours: { env: 'AGON_DISPUTE_WINDOW_HOURS', schema: whole(0, 8_760).default(48) },
  /** How long a match waits for its stakes before it is voided. */
  stakesWaitS: { env: 'AGON_STAKES_WAIT_S', schema: whole(1, 31_536_000).default(3_600) },
  /** How long a match waits for a runner before it is voided. */
  runnerWaitS: { env: 'AGON_RUNNER_WAIT_S', schema: whole(1, 31_536_000).default(604_800) },
  /** What a seat of a match costs, in hundredths of a compute credit; 0 lets everybody play for free. */
  computePrice: { env: 'AGON_COMPUTE_PRICE', schema: whole(0, 1_000_000).default(0) },
  /** Whether events are kept in ClickHouse as well, for charts and questions. */
  analytics: { env: 'AGON_ANALYTICS', schema: flag.default(true) },
  /** Where the embedded ClickHouse answers; any free port of loopback when left out or 0. */
  analyticsPort: { env: 'AGON_ANALYTICS_PORT', schema: port.optional() },
  /** After how many days analytics forget an event; 0 for never. The log never does. */
  analyticsDays: { env: 'AGON_ANALYTICS_DAYS', schema: whole(0, 36_500).default(0) },
  /** A Redis that several gateways share, for limits and hot boards; this process's memory when left out. */
  redisUrl: {
    env: 'REDIS_URL',
    schema: z.url({ protocol: /^rediss?$/, error: 'must be a redis or rediss address' }).optional(),
  },
  /** Whether Kafka is spoken to by TLS; it is when any of its files is named. */
  kafkaTls: { env: 'AGON_KAFKA_TLS', schema: flag.optional() },
  /** PEM files: who vouches for the brokers (the system's authorities when left out), and who we are to them. */
  kafkaCa: { env: 'AGON_KAFKA_CA', schema: text.optional() },
  kafkaCert: { env: 'AGON_KAFKA_CERT', schema: text.optional() },
  kafkaKey: { env: 'AGON_KAFKA_KEY', schema: text.optional() },
  /** How a user shows the password to Kafka; there is no user when left out. */
  kafkaSasl: {
    env: 'AGON_KAFKA_SASL',
    schema: z.enum(KAFKA_SASL, { error: 'must be plain, scram-sha-256 or scram-sha-512' }).optional(),
  },
  kafkaUser: { env: 'AGON_KAFKA_USER', schema: text.optional() },
  kafkaPassword: { env: 'AGON_KAFKA_PASSWORD', schema: secret(/^[^\r\n]+$/, 'must be one line') },
  /** A ClickHouse server to use instead of the embedded one. */
  clickhouseUrl: { env: 'CLICKHOUSE_URL', schema: httpUrl.optional() },
  /** A PostgreSQL for the read models instead of the embedded one. */
  databaseUrl: {
    env: 'DATABASE_URL',
    schema: secret(/^postgres(ql)?:\/\/\S+$/, 'must start with postgres:// or postgresql://'),
  },
  /** How many connections to it this process has at most. */
  databasePool: { env: 'AGON_DATABASE_POOL', schema: whole(2, 500).default(10) },
  /** host:port of Kafka's brokers: what carries events between the processes of a cluster. */
  kafkaBrokers: {
    env: 'KAFKA_BROKERS',
    schema: words(hostAndPort, 'must be host:port, with commas between').default([]),
  },
  /** What the names of its topics and groups begin with. */
  kafkaPrefix: {
    env: 'AGON_KAFKA_PREFIX',
    schema: z
      .string()
      .regex(/^[a-zA-Z0-9_-]{1,60}$/, { error: 'must be letters, digits, - and _' })
      .default('agon'),
  },
  /** Of each topic of events; for topics that are still to be made. */
  kafkaPartitions: { env: 'AGON_KAFKA_PARTITIONS', schema: whole(1, 1_000).default(3) },
  /** Copies of each partition; without it three, or as many as there are brokers when topics are made. */
  kafkaReplication: { env: 'AGON_KAFKA_REPLICATION', schema: whole(1, 9).optional() },
  /** host:port of the arena's endpoint for runners, for a runner that is a process of a cluster. */
  arena: { env: 'AGON_ARENA', schema: z.string().regex(hostAndPort, { error: 'must be host:port' }).optional() },
  /** Which views a process of projections keeps; all when empty. */
  views: { env: 'AGON_VIEWS', schema: words(/^[a-z-]+$/, 'must be names of views, with commas between').default([]) },
  /** Where a process of a cluster says how it is; any free port for 0. */
  healthPort: { env: 'AGON_HEALTH_PORT', schema: port.default(0) },
  /** What staff and runners show at the endpoints; files of the data folder hold them when they are left out. */
  operatorToken: { env: 'AGON_OPERATOR_TOKEN', schema: token },
  runnerToken: { env: 'AGON_RUNNER_TOKEN', schema: token },
  /** Time stands still here, so that the same commands give the same log on any deployment. For comparing them only. */
  now: {
    env: 'AGON_NOW',
    schema: z.iso.datetime({ error: 'must be a time like 2026-01-01T00:00:00.000Z' }).optional(),
  },
  /** A file of words that names and texts must not hold, one a line. */
  blockedWords: { env: 'AGON_BLOCKED_WORDS', schema: text.optional() },
  /** A moderation API that judges names and texts, its key, and how long it has. */
  moderationUrl: { env: 'AGON_MODERATION_URL', schema: providerUrl.optional() },
  moderationSecret: { env: 'AGON_MODERATION_SECRET', schema: secret(/^\S+$/, 'must not hold spaces') },
  moderationTimeoutMs: { env: 'AGON_MODERATION_TIMEOUT_MS', schema: whole(1, 60_000).default(2_000) },
  /** Whether texts are let through (open) or refused (closed) while it does not answer. */
  moderationFails: { env: 'AGON_MODERATION_FAILS', schema: z.enum(['open', 'closed']).default('open') },
  /** Where traces go, over OTLP and HTTP; there are none when left out. */
  otlpEndpoint: { env: 'OTEL_EXPORTER_OTLP_ENDPOINT', schema: httpUrl.optional() },
  /** The share of traces that are kept. */
  traceRatio: { env: 'OTEL_TRACES_SAMPLER_ARG', schema: share.default(1) },
  logLevel: {
    env: 'AGON_LOG_LEVEL',
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('warn'),
  },
} as const;

/** Every environment variable that is read. */
export const environmentNames: readonly string[] = Object.values(settings).map(({ env }) => env);

type Values = { readonly [Name in keyof typeof settings]: z.output<(typeof settings)[Name]['schema']> };

/** What is read, with what follows from it: the folder is absolute, and the two that depend on others are said. */
export type Config = Omit<Values, 'introspection' | 'kafkaTls'> & {
  readonly introspection: boolean;
  readonly kafkaTls: boolean;
};

/** What belongs together is there together, so that nobody believes to be safe who is not. */
const PAIRS = [
  ['eventstoreCert', 'eventstoreKey'],
  ['oidcIssuer', 'oidcClientId'],
  ['kafkaCert', 'kafkaKey'],
] as const;

/** Read by commands that talk to an arena; the arena itself has no use for them. */
const OF_THE_CLIENT = ['AGON_URL', 'AGON_CREDENTIALS', 'AGON_PASSWORD'];

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
  const known = new Set<string>(environmentNames);
  const reserved = new Set(['AGON_REQUIRE_ENGINES', 'AGON_TOKEN', 'AGON_KEY', ...OF_THE_CLIENT]);
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
      const shown = /secret|storeUrl|databaseUrl|token|password/i.test(name) ? 'not usable' : `"${String(raw)}"`;
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
  for (const [one, other] of PAIRS) {
    if ((config[one] === undefined) === (config[other] === undefined)) continue;
    throw new AgonError('CONFIG.INVALID', `${settings[one].env} and ${settings[other].env} belong together.`);
  }
  const introspection = config.introspection ?? isLoopback(config.host);
  return Object.freeze({ ...config, introspection, kafkaTls: kafkaTlsOf(config), dataDir: resolve(config.dataDir) });
}

function kafkaTlsOf(config: Config): boolean {
  const { kafkaTls, kafkaCa, kafkaCert, kafkaSasl, kafkaUser, kafkaPassword } = config;
  const user = [kafkaSasl, kafkaUser, kafkaPassword].filter((part) => part !== undefined).length;
  if (user !== 0 && user !== 3) {
    throw new AgonError('CONFIG.INVALID', 'AGON_KAFKA_SASL, AGON_KAFKA_USER and AGON_KAFKA_PASSWORD belong together.');
  }
  const files = kafkaCa !== undefined || kafkaCert !== undefined;
  if (kafkaTls === false && files) {
    throw new AgonError('CONFIG.INVALID', 'AGON_KAFKA_TLS is off, and AGON_KAFKA_CA or AGON_KAFKA_CERT is set.');
  }
  return kafkaTls ?? files;
}
