import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs, { type PartitionMetadata, type Producer, type Transaction } from 'kafkajs';
import {
  AgonError,
  type Consumer,
  type EventStore,
  type HeldLease,
  isPlaceIn,
  type Lease,
  type RecordedEvent,
} from '../../kernel/index.js';
import { backoffMs } from '../relay.js';
import { GapCheck } from './gap-check.js';
import { asBusError, inTransaction, KafkaClient, type KafkaOptions } from './kafka-client.js';
import { AHEAD_MAX } from './merge.js';
import { encodeEvent, encodeWatermark, positionOf, type Range } from './message.js';

/** A transaction is one batch a partition at most, and readers hold all of it: so it is bounded both ways. */
const LIMITS = { events: AHEAD_MAX.events / 2, bytes: 4 * 1024 * 1024 };
const BATCH_EVENTS = 2_048;
const TRANSACTION_MS = 15_000;

interface KafkaRelayOptions {
  readonly store: EventStore;
  readonly kafka: KafkaOptions;
  /** Says which relay publishes. It may err: what keeps the order is Kafka's own fence. */
  readonly lease: Lease;
  readonly batchEvents?: number;
  readonly onRetry?: (error: unknown) => void;
  readonly onState?: (state: RelayState) => void;
}

type RelayState = 'stand-by' | 'taking over' | 'publishing';

interface KafkaRelay extends Consumer {
  state(): RelayState;
}

/**
 * Tails the store and publishes to Kafka, each event once and in order. How far it has come is in Kafka too, written in
 * the same transaction as the events: after whatever failure, the next one looks there. Relays share a transactional id,
 * so that whoever starts last is the only one whose transactions count; one that was paused cannot publish late.
 */
export function startKafkaRelay(options: KafkaRelayOptions): KafkaRelay {
  const { lease, onRetry = () => {}, onState = () => {} } = options;
  const client = new KafkaClient(options.kafka);
  const stopping = new AbortController();
  const { signal } = stopping;
  let position = 0;
  let state: RelayState = 'stand-by';
  const turn = (next: RelayState) => {
    state = next;
    onState(next);
  };

  async function run(): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      let held: HeldLease | undefined;
      try {
        held = await lease.acquire(signal);
        turn('taking over');
        const from = position;
        await publishing(held).finally(() => {
          if (position > from) failures = 0;
        });
      } catch (error) {
        if (signal.aborted) break;
        onRetry(asBusError(error));
        failures += 1;
      }
      turn('stand-by');
      await held?.release();
      if (failures > 0) await sleep(backoffMs(failures), undefined, { signal }).catch(() => {});
    }
    await client.close();
  }

  async function publishing(held: HeldLease): Promise<void> {
    await client.ensureTopics(signal);
    const publisher = await Publisher.open(client);
    try {
      position = publisher.position;
      const last = await options.store.lastPosition();
      if (!(await isPlaceIn(options.store, position))) {
        throw new AgonError(
          'RELAY.AHEAD_OF_LOG',
          `Kafka holds events up to position ${position}, the log ends at ${last}: they belong to different logs. ` +
            'Give this log topics of its own by another prefix.',
        );
      }
      turn('publishing');
      const over = AbortSignal.any([signal, held.lost]);
      const { batchEvents = BATCH_EVENTS } = options;
      const gaps = new GapCheck(options.store, position);
      const tail = options.store.subscribe({ after: position, batchSize: batchEvents }, async (events) => {
        await gaps.check(events);
        for (const part of parted(publisher.encoded(events), LIMITS)) {
          if (over.aborted) return;
          await publisher.publish(part);
          position = publisher.position;
        }
      });
      over.addEventListener('abort', () => tail.stop(), { once: true });
      if (over.aborted) await tail.stop();
      await tail.done;
    } finally {
      await publisher.close();
    }
  }

  const done = run();
  done.catch(() => {});
  const stop = async () => {
    stopping.abort();
    await done.catch(() => {});
  };
  return { done, stop, position: () => position, state: () => state };
}

/** Cuts a batch so that no part is larger than a transaction may be. An event alone always fits. */
export function parted<E extends { readonly bytes: number }>(
  events: readonly E[],
  limits: { readonly events: number; readonly bytes: number },
): E[][] {
  const parts: E[][] = [];
  let [part, bytes]: [E[], number] = [[], 0];
  for (const event of events) {
    if (part.length > 0 && (part.length >= limits.events || bytes + event.bytes > limits.bytes)) {
      parts.push(part);
      [part, bytes] = [[], 0];
    }
    part.push(event);
    bytes += event.bytes;
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

/** An event on its way, with the place it goes to. */
interface Outbound {
  readonly topic: string;
  readonly position: number;
  readonly bytes: number;
  readonly message: ReturnType<typeof encodeEvent> & { readonly partition: number };
}

/** What the headers of an event take, at most. */
const HEADERS_BYTES = 1_024;

/** One epoch of the transactional producer: from taking over until anything at all goes wrong. */
class Publisher {
  /** The one that Java's clients use as well: other producers' keys would go the same way. */
  private readonly partitionOf = kafkajs.Partitioners.DefaultPartitioner();

  private constructor(
    private readonly client: KafkaClient,
    private readonly producer: Producer,
    private readonly partitions: ReadonlyMap<string, PartitionMetadata[]>,
    public position: number,
  ) {}

  /** The order matters: nobody else can publish any more before we look at how far they came. */
  static async open(client: KafkaClient): Promise<Publisher> {
    const producer = client.kafka.producer({
      transactionalId: `${client.topics.prefix}.relay`,
      idempotent: true,
      maxInFlightRequests: 1,
      transactionTimeout: TRANSACTION_MS,
      // After a commit Kafka may ask for a moment before the next transaction.
      retry: { initialRetryTime: 5, maxRetryTime: 1_000, retries: 12 },
    });
    try {
      await producer.connect();
      // The client takes its epoch with its first transaction; connecting alone would fence nobody.
      await (await producer.transaction()).abort();
      const last = await client.lastOf(client.topics.watermark);
      const { topics } = await client.asAdmin((admin) =>
        admin.fetchTopicMetadata({ topics: [...client.topics.events] }),
      );
      const partitions = new Map(topics.map(({ name, partitions: all }) => [name, all]));
      return new Publisher(client, producer, partitions, last ? positionOf(last) : 0);
    } catch (error) {
      await producer.disconnect().catch(() => {});
      throw error;
    }
  }

  encoded(events: readonly RecordedEvent[]): Outbound[] {
    const { topics } = this.client;
    return events.map((event) => {
      const topic = topics.of(event.stream);
      const source = `/${topics.prefix}/${topics.contextOf(event.stream)}`;
      const message = encodeEvent(event, source);
      const partitionMetadata = this.partitions.get(topic) ?? [];
      const partition = this.partitionOf({ topic, partitionMetadata, message });
      const bytes = HEADERS_BYTES + Buffer.byteLength(message.value);
      return { topic, position: event.position, bytes, message: { ...message, partition } };
    });
  }

  async publish(events: readonly Outbound[]): Promise<void> {
    const to = events.at(-1)?.position;
    if (to === undefined) return;
    const { topics } = this.client;
    await inTransaction(this.producer, async (transaction) => {
      const ranges = await this.send(transaction, events);
      const watermark = encodeWatermark({ after: this.position, position: to, ranges });
      await transaction.send({ topic: topics.watermark, acks: -1, messages: [{ ...watermark, partition: 0 }] });
    }).catch((error: unknown) => {
      throw asFenced(error);
    });
    this.position = to;
  }

  close(): Promise<void> {
    return this.producer.disconnect().catch(() => {});
  }

  private async send(transaction: Transaction, events: readonly Outbound[]): Promise<Range[]> {
    const byTopic = new Map<string, Outbound['message'][]>();
    const counts = new Map<string, number>();
    for (const { topic, message } of events) {
      const messages = byTopic.get(topic);
      if (messages) messages.push(message);
      else byTopic.set(topic, [message]);
      const place = `${topic}/${message.partition}`;
      counts.set(place, (counts.get(place) ?? 0) + 1);
    }
    const topicMessages = [...byTopic].map(([topic, messages]) => ({ topic, messages }));
    const written = await transaction.sendBatch({ acks: -1, topicMessages });
    return written.map(({ topicName, partition, baseOffset }) => {
      const offset = Number(baseOffset ?? -1);
      const count = counts.get(`${topicName}/${partition}`);
      if (offset < 0 || count === undefined) {
        throw new AgonError('RELAY.NO_OFFSET', `Kafka did not say where it wrote to ${topicName}/${partition}.`);
      }
      return [topicName, partition, offset, count] as const;
    });
  }
}

function asFenced(error: unknown): unknown {
  const { type = '' } = error as { type?: string };
  if (!/^(INVALID_PRODUCER_EPOCH|PRODUCER_FENCED|INVALID_PRODUCER_ID_MAPPING)$/.test(type)) return error;
  const message = 'Another relay has taken over; this one published nothing since.';
  return new AgonError('RELAY.FENCED', message, {}, { cause: error });
}
