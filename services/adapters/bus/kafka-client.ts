import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs, { type Admin, type ITopicConfig, type KafkaConfig, type KafkaMessage } from 'kafkajs';
import { AgonError, type Ids, isAgonError } from '../../kernel/index.js';
import { deadLettersOf, Topics } from './message.js';

const PARTITIONS = 3;
const REPLICAS_MAX = 3;
/** Larger than a transaction of the relay, whose records for one partition are one batch. */
const BATCH_BYTES_MAX = 8 * 1024 * 1024;
const TAIL_RECORDS = 64;
const LEADERS_MS = 20_000;
export const FETCH_WAIT_MS = 100;

export interface KafkaOptions extends Pick<KafkaConfig, 'ssl' | 'sasl'> {
  /** host:port of one broker or more; the others are found by asking. */
  readonly brokers: readonly string[];
  readonly topics?: Topics;
  /** Of each topic of events. More give more room for reading, never another order. */
  readonly partitions?: number;
  /** Copies of each partition; three, or as many as there are brokers. */
  readonly replication?: number;
  /** How long a member of a group may be silent before another takes its place. Work may take longer than that. */
  readonly sessionMs?: number;
  readonly ids: Ids;
}

/** The one way to Kafka: names, topics and connections. Nothing outside of this folder knows the client. */
export class KafkaClient {
  readonly topics: Topics;
  readonly kafka: kafkajs.Kafka;
  private admin: Promise<Admin> | undefined;

  constructor(readonly options: KafkaOptions) {
    const { brokers, ssl, sasl, topics = new Topics() } = options;
    this.topics = topics;
    this.kafka = new kafkajs.Kafka({
      clientId: topics.prefix,
      brokers: [...brokers],
      // What goes wrong is thrown, and told by whoever catches it.
      logLevel: kafkajs.logLevel.NOTHING,
      connectionTimeout: 3_000,
      retry: { initialRetryTime: 50, maxRetryTime: 2_000, retries: 5 },
      ...(ssl === undefined ? {} : { ssl }),
      ...(sasl === undefined ? {} : { sasl }),
    });
  }

  asAdmin<T>(ask: (admin: Admin) => Promise<T>): Promise<T> {
    this.admin ??= this.connected();
    return this.admin.then(ask);
  }

  /** Makes the topics that are missing. Whoever publishes or reads does this first, so that the order does not matter. */
  async ensureTopics(): Promise<void> {
    const { events, watermark, replay } = this.topics;
    const known = new Set(await this.asAdmin((admin) => admin.listTopics()));
    const { brokers } = await this.asAdmin((admin) => admin.describeCluster());
    const copies = this.options.replication ?? Math.min(REPLICAS_MAX, brokers.length);
    const topic = (name: string, partitions: number, config: Readonly<Record<string, string>>) => ({
      topic: name,
      numPartitions: partitions,
      replicationFactor: copies,
      configEntries: Object.entries({
        'min.insync.replicas': copies > 2 ? '2' : '1',
        'max.message.bytes': `${BATCH_BYTES_MAX}`,
        ...config,
      }).map(([key, value]) => ({ name: key, value })),
    });
    const forever = { 'retention.ms': '-1' };
    const wanted = [
      ...events.map((name) => topic(name, this.options.partitions ?? PARTITIONS, forever)),
      // A dead letter that was replayed is deleted by its key.
      ...events.map((name) => topic(deadLettersOf(name), 1, { ...forever, 'cleanup.policy': 'compact' })),
      topic(watermark, 1, forever),
      topic(replay, 1, {}),
    ];
    const missing = wanted.filter(({ topic: name }) => !known.has(name));
    if (missing.length > 0) await this.create(missing);
    await this.led(wanted.map(({ topic: name }) => name));
  }

  private async create(topics: readonly ITopicConfig[]): Promise<void> {
    try {
      await this.asAdmin((admin) => admin.createTopics({ topics: [...topics], waitForLeaders: false }));
    } catch (error) {
      // Somebody else may have made some of them in the same moment.
      const errors = (error as { errors?: { type?: string }[] }).errors ?? [error as { type?: string }];
      if (errors.some(({ type }) => type !== 'TOPIC_ALREADY_EXISTS')) throw error;
    }
  }

  /** Until every partition has a leader: before that, Kafka says that there is no such topic. */
  private async led(topics: string[]): Promise<void> {
    for (let waitedMs = 0; ; waitedMs += FETCH_WAIT_MS) {
      try {
        const found = await this.asAdmin((admin) => admin.fetchTopicMetadata({ topics }));
        if (found.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))) return;
      } catch (error) {
        if (waitedMs >= LEADERS_MS) throw error;
      }
      await sleep(FETCH_WAIT_MS);
    }
  }

  /** Everything that is committed in a topic of one partition, from an offset to where it ends now. */
  async read(topic: string, from?: number): Promise<KafkaMessage[]> {
    const { low, high } = await this.ends(topic);
    const start = Math.max(low, from ?? low);
    if (start >= high) return [];
    const groupId = `${this.topics.prefix}.reader.${this.options.ids()}`;
    const consumer = this.kafka.consumer({ groupId, maxWaitTimeInMs: FETCH_WAIT_MS });
    const found: KafkaMessage[] = [];
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: [topic], fromBeginning: true });
      await new Promise<void>((resolve, reject) => {
        // Batches of nothing but transactions' marks and what they took back are told of here, and only here.
        consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
          if (Number(payload.lastOffset) >= high - 1) resolve();
        });
        consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
        const eachBatch = async ({ batch }: { batch: { messages: KafkaMessage[] } }) => {
          for (const message of batch.messages) if (Number(message.offset) < high) found.push(message);
        };
        consumer.run({ autoCommit: false, eachBatch }).catch(reject);
        consumer.seek({ topic, partition: 0, offset: `${start}` });
      });
      return found;
    } finally {
      await consumer.disconnect();
      await this.asAdmin((admin) => admin.deleteGroups([groupId])).catch(() => {});
    }
  }

  /** The last record that is committed, whatever was taken back after it. */
  async lastOf(topic: string): Promise<KafkaMessage | undefined> {
    const { low, high } = await this.ends(topic);
    for (let records = TAIL_RECORDS; ; records *= 8) {
      const last = (await this.read(topic, high - records)).at(-1);
      if (last || high - records <= low) return last;
    }
  }

  async close(): Promise<void> {
    const { admin } = this;
    this.admin = undefined;
    await admin?.then((each) => each.disconnect()).catch(() => {});
  }

  private async ends(topic: string): Promise<{ low: number; high: number }> {
    const [ends] = await this.asAdmin((admin) => admin.fetchTopicOffsets(topic));
    return { low: Number(ends?.low ?? 0), high: Number(ends?.high ?? 0) };
  }

  private async connected(): Promise<Admin> {
    const admin = this.kafka.admin();
    try {
      await admin.connect();
      return admin;
    } catch (error) {
      this.admin = undefined;
      const { brokers } = this.options;
      throw new AgonError(
        'BUS.UNREACHABLE',
        `Kafka does not answer at ${brokers.join(', ')}: ${(error as Error).message}. Is it running there?`,
        { brokers },
        { cause: error },
      );
    }
  }
}

/** What the client throws, under a code of ours. */
export const asBusError = (error: unknown): AgonError =>
  isAgonError(error) ? error : new AgonError('BUS.KAFKA', `Kafka: ${(error as Error).message}`, {}, { cause: error });
