import { Redis } from 'ioredis';
import pg from 'pg';
import type { DataSource } from 'typeorm';
import { openDatabase, openReads } from '../../projections/sinks/database.js';
import { PostgresCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { KafkaBus } from '../../services/adapters/bus/kafka.js';
import { KafkaClient, type KafkaOptions } from '../../services/adapters/bus/kafka-client.js';
import { securityOf } from '../../services/adapters/bus/kafka-security.js';
import { Topics } from '../../services/adapters/bus/message.js';
import {
  AgonError,
  type Bus,
  type Checkpoints,
  type EventStore,
  Folds,
  randomIds,
} from '../../services/kernel/index.js';
import { addGauges } from '../../services/runtime/gauges.js';
import type { Frame } from '../../services/runtime/host.js';
import type { Config } from '../../services/runtime/settings.js';
import { openLog } from './log.js';

/** A member that has died keeps its group waiting for so long; short enough for people, long enough for a busy machine. */
const SESSION_MS = 10_000;

/** How every process gets to Kafka. */
export function kafkaOf(config: Config): KafkaOptions {
  const { kafkaBrokers, kafkaPrefix, kafkaPartitions: partitions, kafkaReplication: replication } = config;
  const brokers = kafkaBrokers.length > 0 ? kafkaBrokers : missing('KAFKA_BROKERS', 'host:port of brokers of Kafka');
  const security = securityOf(config, brokers);
  const copies = { partitions, ...(replication === undefined ? {} : { replication }) };
  return { brokers, security, topics: new Topics(kafkaPrefix), ids: randomIds, sessionMs: SESSION_MS, ...copies };
}

function missing(setting: string, what: string): never {
  throw new AgonError('CONFIG.INVALID', `${setting} is missing: a cluster needs ${what}.`);
}

/** The engines of a cluster, each opened once by the first who asks, and shared by what runs in this process. */
export class Engines {
  private readonly opened = new Map<string, Promise<unknown>>();

  constructor(private readonly frame: Frame) {}

  /** The log. It must be one that other processes can reach as well. */
  store(): Promise<EventStore> {
    return this.once('log', async (name) => {
      const { config } = this.frame;
      if (!config.storeUrl) missing('AGON_STORE', 'a log that all processes reach, as esdb://...');
      const store = await this.frame.need(name, () => openLog(config));
      this.frame.part(name, async () => `at position ${await store.lastPosition()}`);
      const { metrics, consumers } = this.frame;
      addGauges(metrics.registry, { store, consumers });
      return this.frame.started(name, store, () => store.close());
    });
  }

  /** The streams that this process has folded. */
  folds(): Promise<Folds> {
    return this.once('folds', async () => new Folds({ store: await this.store() }));
  }

  /** The read models. */
  database(): Promise<DataSource> {
    return this.once('database', async (name) => {
      const { databaseUrl, databasePool: pool } = this.frame.config;
      const url = databaseUrl?.reveal() ?? missing('DATABASE_URL', 'a PostgreSQL, as postgres://...');
      const database = await this.frame.need(name, () => openDatabase(url, { pool }));
      this.frame.part(name, async () => {
        const [{ version }] = await database.query('SELECT version()');
        return `${version}`.split(' ').slice(0, 2).join(' ');
      });
      return this.frame.started(name, database, () => database.destroy());
    });
  }

  /** The read models for those who answer callers, once they are there. */
  reads(): Promise<DataSource> {
    return this.once('reads', async (name) => {
      await this.database();
      const { databaseUrl, databasePool: pool } = this.frame.config;
      const reads = await this.frame.need(name, () => openReads(databaseUrl?.reveal() ?? '', { pool }));
      return this.frame.started(name, reads, () => reads.destroy());
    });
  }

  /** How far the groups of policies have come. */
  checkpoints(): Promise<Checkpoints> {
    return this.once('checkpoints', async (name) => {
      const { databaseUrl } = this.frame.config;
      const connectionString = databaseUrl?.reveal() ?? missing('DATABASE_URL', 'a PostgreSQL, as postgres://...');
      const pool = new pg.Pool({ connectionString, max: 2, connectionTimeoutMillis: 5_000, application_name: 'agon' });
      const checkpoints = new PostgresCheckpoints(pool);
      this.frame.started(name, pool, () => pool.end());
      await this.frame.need(name, () => checkpoints.load('any'));
      addGauges(this.frame.metrics.registry, { checkpoints, consumers: this.frame.consumers });
      this.frame.part(name, async () => {
        const [first, ...more] = await checkpoints.deadLetters();
        if (!first) return 'no dead letters';
        const { group, position, code, message } = first;
        return `${group} gave up at position ${position}: ${code}: ${message} (${more.length} more)`;
      });
      return checkpoints;
    });
  }

  /** How to reach Kafka, which from now on is asked how it is. */
  kafka(): Promise<KafkaOptions> {
    return this.once('kafka', async (name) => {
      const options = kafkaOf(this.frame.config);
      const client = new KafkaClient(options);
      this.frame.started(name, client, () => client.close());
      this.frame.part(name, async () => {
        const { brokers } = await client.asAdmin((admin) => admin.describeCluster());
        return `${brokers.length} brokers`;
      });
      return options;
    });
  }

  /** A bus for groups that keep their place here. */
  async makeBus(): Promise<(checkpoints: Checkpoints) => Bus> {
    const options = await this.kafka();
    return (checkpoints) => new KafkaBus(options, checkpoints, this.frame.onRetry);
  }

  /** For what many processes share and nobody keeps. Commands that cannot be sent fail instead of waiting. */
  redis(): Promise<Redis> {
    return this.once('redis', async (name) => {
      const url = this.redisUrl();
      const redis = await this.frame.need(name, async () => {
        const client = new Redis(url, { lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 1 });
        client.on('error', (err) => this.frame.log.debug({ err }, 'Redis does not answer'));
        await client.connect().catch((error: Error) => {
          client.disconnect();
          throw new AgonError('REDIS.UNREACHABLE', `Redis does not answer: ${error.message}.`);
        });
        return client;
      });
      this.frame.part(name, () => redis.ping());
      return this.frame.started(name, redis, async () => redis.disconnect());
    });
  }

  /** A connection that waits for Redis as long as it takes: for leases, and for those who listen. */
  async patientRedis(name: string): Promise<Redis> {
    const redis = new Redis(this.redisUrl(), { maxRetriesPerRequest: null });
    redis.on('error', (err) => this.frame.log.debug({ err }, 'Redis does not answer'));
    return this.frame.started(name, redis, async () => redis.disconnect());
  }

  private redisUrl(): string {
    return this.frame.config.redisUrl ?? missing('REDIS_URL', 'a Redis, as redis://...');
  }

  private once<T>(name: string, open: (name: string) => Promise<T>): Promise<T> {
    const known = this.opened.get(name) as Promise<T> | undefined;
    if (known) return known;
    const opening = open(name);
    this.opened.set(name, opening);
    return opening;
  }
}
