import { env, stderr } from 'node:process';
import { Redis } from 'ioredis';
import pg from 'pg';
import { PostgresCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import type { KafkaOptions } from '../../services/adapters/bus/kafka-client.js';
import { KafkaDeadLetters } from '../../services/adapters/bus/kafka-letters.js';
import { startKafkaRelay } from '../../services/adapters/bus/kafka-relay.js';
import { securityOf } from '../../services/adapters/bus/kafka-security.js';
import { Topics } from '../../services/adapters/bus/message.js';
import { MemoryLease, RedisLease } from '../../services/adapters/lease.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { AgonError, asAgonError, randomIds } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { type Config, parseConfig } from '../../services/runtime/settings.js';
import { openLog } from '../run/log.js';
import type { BusFlags, DeadLetterFlags, RelayFlags } from './bus.js';
import { EXIT, print } from './output.js';
import { untilSignal } from './signals.js';

function kafkaOf({ kafka = env.KAFKA_BROKERS, prefix, ...flags }: BusFlags): KafkaOptions {
  const brokers = (kafka ?? '').split(',').map((each) => each.trim());
  const wrong = brokers.find((each) => !/^[\w.-]+:\d{1,5}$/.test(each));
  if (wrong !== undefined) {
    const given = wrong === '' ? 'No broker of Kafka was named' : `"${wrong}" is not host:port`;
    throw new AgonError('CONFIG.INVALID', `${given}. Name brokers with --kafka or KAFKA_BROKERS, commas between.`);
  }
  if (!/^[a-zA-Z0-9_-]{1,60}$/.test(prefix)) {
    throw new AgonError('CONFIG.INVALID', `"${prefix}" cannot begin the name of a topic: letters, digits, - and _.`);
  }
  const settings = settingsOf(flags);
  const { kafkaPartitions: partitions, kafkaReplication: replication } = settings;
  const copies = { partitions, ...(replication === undefined ? {} : { replication }) };
  return { brokers, topics: new Topics(prefix), security: securityOf(settings, brokers), ids: randomIds, ...copies };
}

function settingsOf(flags: Omit<BusFlags, 'prefix'>): Config {
  const { data: dataDir, kafkaTls, kafkaCa, kafkaCert, kafkaKey, kafkaSasl, kafkaUser } = flags;
  return parseConfig({ dataDir, kafkaTls, kafkaCa, kafkaCert, kafkaKey, kafkaSasl, kafkaUser }, env);
}

/** Publishes an embedded log, beside the arena that writes it, until a signal comes. */
export async function runRelay(flags: RelayFlags): Promise<number> {
  const kafka = kafkaOf(flags);
  const { dataDir } = settingsOf(flags);
  const ttlMs = Number(flags.leaseMs);
  if (!Number.isInteger(ttlMs) || ttlMs < 500) {
    throw new AgonError('CONFIG.INVALID', '--lease-ms is a whole number from 500 on.');
  }
  const { done: signalled } = untilSignal();
  const { redis, lease } = leaseOf(flags, ttlMs);
  const store = await LmdbEventStore.open(folderLayout(dataDir).log, { readOnly: true });
  let last = '';
  const onRetry = (error: unknown) => {
    const { code, message } = asAgonError(error);
    if (last !== message) stderr.write(`${code}: ${message}\n`);
    last = message;
  };
  const relay = startKafkaRelay({
    store,
    kafka,
    lease,
    onRetry,
    onState: (state) =>
      print(flags, { state, position: relay.position() }, `${state}, at position ${relay.position()}`),
  });
  print(flags, { state: 'stand-by', position: 0 }, 'The relay waits for its turn.');
  try {
    await Promise.race([signalled, relay.done]);
  } finally {
    await relay.stop();
    redis?.disconnect();
    await store.close();
  }
  return EXIT.ok;
}

function leaseOf({ redis: url = env.REDIS_URL, prefix }: RelayFlags, ttlMs: number) {
  if (!url) return { redis: undefined, lease: new MemoryLease() };
  if (!/^rediss?:\/\//.test(url)) {
    throw new AgonError('CONFIG.INVALID', `"${url}" is no address of Redis, such as redis://127.0.0.1:6379.`);
  }
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  // Whoever waits for the lease goes on waiting, and says so.
  redis.on('error', (error) => stderr.write(`REDIS.UNREACHABLE: ${error.message}\n`));
  return { redis, lease: new RedisLease({ redis, name: `${prefix}.relay`, ids: randomIds, ttlMs }) };
}

/** In a cluster dead letters are also in the database; they outlive Kafka there. */
export async function deadLettersOnKafka<T>(
  flags: DeadLetterFlags,
  use: (letters: KafkaDeadLetters) => Promise<T>,
): Promise<T> {
  const kafka = kafkaOf(flags);
  const { databaseUrl, storeUrl, dataDir } = settingsOf(flags);
  const pool = databaseUrl && storeUrl ? new pg.Pool({ connectionString: databaseUrl.reveal(), max: 1 }) : undefined;
  const store = pool && (await openLog({ dataDir, storeUrl }));
  const letters = new KafkaDeadLetters(kafka, pool && store && { checkpoints: new PostgresCheckpoints(pool), store });
  try {
    return await use(letters);
  } finally {
    await letters.close();
    await store?.close();
    await pool?.end();
  }
}
