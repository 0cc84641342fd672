import type { Redis } from 'ioredis';
import pg from 'pg';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { views } from '../../projections/views.js';
import { PostgresCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { KafkaBus } from '../../services/adapters/bus/kafka.js';
import { KafkaClient, type KafkaOptions } from '../../services/adapters/bus/kafka-client.js';
import { KafkaDeadLetters } from '../../services/adapters/bus/kafka-letters.js';
import { startKafkaRelay } from '../../services/adapters/bus/kafka-relay.js';
import { securityOf } from '../../services/adapters/bus/kafka-security.js';
import { Topics } from '../../services/adapters/bus/message.js';
import { MemoryChannel, RedisChannel } from '../../services/adapters/channel.js';
import { RedisLease } from '../../services/adapters/lease.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { RedisLimits } from '../../services/adapters/limits/redis.js';
import { AgonError, randomIds } from '../../services/kernel/index.js';
import { DataFolder } from '../../services/runtime/data-folder.js';
import type { Channel, ClickHouseServer, Engines, MakeBus, Relay, Rows } from '../../services/runtime/engines.js';
import { addDeadLetterGauge, addDiskGauges, addLogGauges } from '../../services/runtime/gauges.js';
import type { Config } from '../../services/runtime/settings.js';
import { clickHouseNamed } from './embedded.js';
import { stripeProviderOf } from './payments.js';
import { patientRedis, redisOf } from './redis.js';
import { SharedEngines } from './shared.js';

/** A member that has died keeps its group waiting for so long; short enough for people, long enough for a busy machine. */
const SESSION_MS = 10_000;

/** How every process gets to Kafka. */
function kafkaOf(config: Config): KafkaOptions {
  const { kafkaBrokers, kafkaPrefix, kafkaPartitions: partitions, kafkaReplication: replication } = config;
  const brokers = kafkaBrokers.length > 0 ? kafkaBrokers : missing('KAFKA_BROKERS', 'host:port of brokers of Kafka');
  const security = securityOf(config, brokers);
  const copies = { partitions, ...(replication === undefined ? {} : { replication }) };
  return { brokers, security, topics: new Topics(kafkaPrefix), ids: randomIds, sessionMs: SESSION_MS, ...copies };
}

function missing(setting: string, what: string): never {
  throw new AgonError('CONFIG.INVALID', `${setting} is missing: a cluster needs ${what}.`);
}

/** The engines of a cluster: what one process of it sees of what all of them share. */
export class ClusterEngines extends SharedEngines implements Engines {
  folder(): Promise<DataFolder> {
    const { config, metrics } = this.host;
    return this.host.engine('data folder', async () => {
      addDiskGauges(metrics, config.dataDir);
      return { value: DataFolder.beside(config.dataDir) };
    });
  }

  /** It must be one that other processes can reach as well. */
  log() {
    const { config, metrics } = this.host;
    return this.host.engine('log', async () => {
      if (!config.storeUrl) missing('AGON_STORE', 'a log that all processes reach, as esdb://...');
      const log = await this.openLog();
      addLogGauges(metrics, log.value);
      return log;
    });
  }

  checkpoints() {
    return this.host.engine('checkpoints', async () => {
      const connectionString = await this.databaseUrl();
      const pool = new pg.Pool({ connectionString, max: 2, connectionTimeoutMillis: 5_000, application_name: 'agon' });
      const checkpoints = new PostgresCheckpoints(pool);
      await checkpoints.load('any').catch(async (error: unknown) => {
        await pool.end();
        throw error;
      });
      addDeadLetterGauge(this.host.metrics, this.host.consumers, checkpoints);
      const ready = async () => {
        const [first, ...more] = await checkpoints.deadLetters();
        if (!first) return 'no dead letters';
        const { group, position, code, message } = first;
        return `${group} gave up at position ${position}: ${code}: ${message} (${more.length} more)`;
      };
      return { value: checkpoints, ready, stop: () => pool.end() };
    });
  }

  async bus(): Promise<MakeBus> {
    const options = await this.kafka();
    return (checkpoints) => new KafkaBus(options, checkpoints, this.host.onRetry);
  }

  async boards() {
    return new RedisBoards(await this.redis());
  }

  limits() {
    return this.host.engine('limits', async () => {
      const alone = new MemoryLimits(Date.now);
      const tell = (err: unknown) => this.host.log.warn({ err }, 'limits hold for this process alone');
      const redis = await this.redis();
      return { value: new RedisLimits(redis, alone, tell) };
    });
  }

  channel(): Promise<Channel> {
    const { redisUrl } = this.host.config;
    return this.host.engine<Channel>('channel', async () => {
      if (redisUrl === undefined) return { value: new MemoryChannel() };
      const patient = await patientRedis(this.host, 'channel', redisUrl);
      return { value: new RedisChannel(await this.redis(), () => patient) };
    });
  }

  async lease(name: string) {
    const { config } = this.host;
    return new RedisLease({ redis: await this.redis(), name: `${config.kafkaPrefix}.${name}`, ids: randomIds });
  }

  rows(): Promise<Rows> {
    return this.host.engine('rows', async () => {
      const database = await this.database();
      const names = views.map(({ name }) => name);
      const sql =
        'SELECT count(*)::int AS views, min(position)::bigint AS position FROM checkpoints WHERE view = ANY($1)';
      return {
        value: {
          // Rows are changed by other processes: nothing is known to be as it was.
          changesOf: () => undefined,
          changed: () => {},
          position: async () => {
            const [found] = await database.query(sql, [names]);
            return found.views === names.length ? Number(found.position) : 0;
          },
        } satisfies Rows,
      };
    });
  }

  deadLetters() {
    return this.host.engine('dead letters on Kafka', async () => {
      const [options, checkpoints, store] = await Promise.all([this.kafka(), this.checkpoints(), this.log()]);
      const letters = new KafkaDeadLetters(options, { checkpoints, store });
      return { value: letters, stop: () => letters.close() };
    });
  }

  payments() {
    return this.host.engine('payment provider', async () => ({ value: stripeProviderOf(this.host) }));
  }

  clickhouse(): Promise<ClickHouseServer | undefined> {
    const { analytics, clickhouseUrl } = this.host.config;
    return this.host.engine('clickhouse', async () => {
      return { value: analytics && clickhouseUrl !== undefined ? clickHouseNamed(clickhouseUrl) : undefined };
    });
  }

  relay(): Promise<Relay> {
    const { host } = this;
    return host.engine('relay to Kafka', async () => {
      const [kafka, store] = await Promise.all([this.kafka(), this.log()]);
      const redis = await patientRedis(host, 'lease', this.redisUrl());
      const onTrouble = (error: unknown) => host.onRetry('relay', error);
      const lease = new RedisLease({ redis, name: `${host.config.kafkaPrefix}.relay`, ids: randomIds, onTrouble });
      const running = startKafkaRelay({ store, kafka, lease, onRetry: onTrouble });
      return { value: { ...running, taken: () => lease.taken() } };
    });
  }

  /** How to reach Kafka, which from now on is asked how it is. */
  private kafka(): Promise<KafkaOptions> {
    return this.host.engine('kafka', async () => {
      const options = kafkaOf(this.host.config);
      const client = new KafkaClient(options);
      const ready = async () => {
        const { brokers } = await client.asAdmin((admin) => admin.describeCluster());
        return `${brokers.length} brokers`;
      };
      return { value: options, ready, stop: () => client.close() };
    });
  }

  private redis(): Promise<Redis> {
    return redisOf(this.host, this.redisUrl());
  }

  private redisUrl(): string {
    return this.host.config.redisUrl ?? missing('REDIS_URL', 'a Redis, as redis://...');
  }

  protected async databaseUrl(): Promise<string> {
    return this.host.config.databaseUrl?.reveal() ?? missing('DATABASE_URL', 'a PostgreSQL, as postgres://...');
  }
}
