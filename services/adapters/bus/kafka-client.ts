import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs, { type Admin, type ITopicConfig, type KafkaMessage, type Producer, type Transaction } from 'kafkajs';
import { AgonError, type Ids, isAgonError } from '../../kernel/index.js';
import { clientSecurity, connectionError, type KafkaSecurity } from './kafka-security.js';
import { deadLettersOf, Topics } from './message.js';

const PARTITIONS = 3;
const REPLICAS_MAX = 3;
/** Larger than a transaction of the relay, whose records for one partition are one batch. */
const BATCH_BYTES_MAX = 8 * 1024 * 1024;
const TAIL_RECORDS = 64;
const LEADERS_MS = 20_000;
export const FETCH_WAIT_MS = 100;

export interface KafkaOptions {
  /** host:port of one broker or more; the others are found by asking. */
  readonly brokers: readonly string[];
  /** TLS and who we are; in clear and nobody when left out. */
  readonly security?: KafkaSecurity;
  readonly topics?: Topics;
  /** Of each topic of events. More give more room for reading, never another order. */
  readonly partitions?: number;
  /** Copies of each partition: topics are not made before there are so many brokers. Left out, three or as many as there are. */
  readonly replication?: number;
  /** How long partitions may be without a leader. */
  readonly leadersMs?: number;
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
    const { brokers, security, topics = new Topics() } = options;
    this.topics = topics;
    this.kafka = new kafkajs.Kafka({
      clientId: topics.prefix,
      brokers: [...brokers],
      // What goes wrong is thrown, and told by whoever catches it.
      logLevel: kafkajs.logLevel.NOTHING,
      connectionTimeout: 3_000,
      retry: { initialRetryTime: 50, maxRetryTime: 2_000, retries: 5 },
      ...clientSecurity(security),
    });
  }

  asAdmin<T>(ask: (admin: Admin) => Promise<T>): Promise<T> {
    this.admin ??= this.connected();
    return this.admin.then(ask);
  }

  /** Makes the topics that are missing. Whoever publishes or reads does this first, so that the order does not matter. */
  async ensureTopics(signal?: AbortSignal): Promise<void> {
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
    // Said of each topic, since the brokers' own defaults may forget by size, or all but the newest of a stream.
    const forever = { 'retention.ms': '-1', 'retention.bytes': '-1', 'cleanup.policy': 'delete' };
    const wanted = [
      ...events.map((name) => topic(name, this.options.partitions ?? PARTITIONS, forever)),
      // A dead letter that was replayed is deleted by its key.
      ...events.map((name) => topic(deadLettersOf(name), 1, { ...forever, 'cleanup.policy': 'compact' })),
      topic(watermark, 1, forever),
      topic(replay, 1, {}),
    ];
    const missing = wanted.filter(({ topic: name }) => !known.has(name));
    if (missing.length > 0 && brokers.length < copies) {
      // Copies are fixed when a topic is made, so whoever comes first must not settle for less.
      const message = `Topics shall have ${copies} copies, and Kafka has ${brokers.length} brokers. They are waited for.`;
      throw new AgonError('BUS.TOO_FEW_BROKERS', message, { copies, brokers: brokers.length });
    }
    if (missing.length > 0) await this.create(missing);
    const names = wanted.map(({ topic: name }) => name);
    await this.led(names, signal);
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
  private async led(topics: string[], signal?: AbortSignal): Promise<void> {
    const { leadersMs = LEADERS_MS } = this.options;
    for (let waitedMs = 0; ; waitedMs += FETCH_WAIT_MS) {
      try {
        const found = await this.asAdmin((admin) => admin.fetchTopicMetadata({ topics }));
        const alone = found.topics.find(({ partitions }) => partitions.some(({ leader }) => leader < 0));
        if (!alone) return;
        throw new AgonError('BUS.NO_LEADER', `A partition of ${alone.name} has no leader: its brokers are away.`);
      } catch (error) {
        if (waitedMs >= leadersMs) throw error;
      }
      await sleep(FETCH_WAIT_MS, undefined, { signal });
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
    const { leadersMs = LEADERS_MS } = this.options;
    const ask = (admin: Admin) => admin.fetchTopicOffsets(topic);
    for (let waitedMs = 0; ; waitedMs += FETCH_WAIT_MS) {
      try {
        const [ends] = await (waitedMs === 0 ? this.asAdmin(ask) : this.afresh(ask));
        return { low: Number(ends?.low ?? 0), high: Number(ends?.high ?? 0) };
      } catch (error) {
        // A leader may be named before it knows that it leads, and the client does not ask again by itself.
        if (!(error as { retriable?: boolean }).retriable || waitedMs >= leadersMs) throw error;
        await sleep(FETCH_WAIT_MS);
      }
    }
  }

  /** By a connection of its own, which believes nothing that an older one was told about who leads. */
  private async afresh<T>(ask: (admin: Admin) => Promise<T>): Promise<T> {
    const admin = await this.connected();
    try {
      return await ask(admin);
    } finally {
      await admin.disconnect();
    }
  }

  private async connected(): Promise<Admin> {
    const admin = this.kafka.admin();
    try {
      await admin.connect();
      // A port that wants a user lets everybody connect, and hangs up at the first question.
      await admin.describeCluster();
      return admin;
    } catch (error) {
      this.admin = undefined;
      await admin.disconnect().catch(() => {});
      throw await connectionError(error, this.options.brokers, this.options.security);
    }
  }
}

/** All that is sent in it, or nothing. */
export async function inTransaction(producer: Producer, send: (transaction: Transaction) => Promise<unknown>) {
  const transaction = await producer.transaction();
  try {
    await send(transaction);
    await transaction.commit();
  } catch (error) {
    await transaction.abort().catch(() => {});
    throw error;
  }
}

/** What the client throws, under a code of ours. */
export const asBusError = (error: unknown): AgonError =>
  isAgonError(error) ? error : new AgonError('BUS.KAFKA', `Kafka: ${(error as Error).message}`, {}, { cause: error });
