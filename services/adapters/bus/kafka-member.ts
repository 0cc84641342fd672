import { setTimeout as sleep } from 'node:timers/promises';
import type { EachBatchPayload, Consumer as KafkaConsumer, KafkaMessage, Message } from 'kafkajs';
import type { BatchHandler, Checkpoints, ConsumerOptions, DeadLetter, RecordedEvent } from '../../kernel/index.js';
import { backoffMs } from '../relay.js';
import { type Delivery, deliver, deliverOne } from './delivery.js';
import { asBusError, FETCH_WAIT_MS, type KafkaClient } from './kafka-client.js';
import { allToOne, Pressure } from './kafka-group.js';
import { buriedMessage } from './kafka-letters.js';
import { type Entry, Merger } from './merge.js';
import { deadLettersOf, decodeEvent, decodeWatermark, headerOf, positionOf, typeOf } from './message.js';

const BATCH_EVENTS = 256;
const COMMIT_MS = 1_000;
/** How long a batch waits to become full while more is known to come. */
const LINGER_MS = 100;
const OPEN_WAIT_MS = 1_000;
const SESSION_MS = 10_000;

interface Origin {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
}

interface Replay {
  readonly next: number;
  readonly message: KafkaMessage;
}

interface MemberOptions {
  readonly client: KafkaClient;
  readonly checkpoints: Checkpoints;
  readonly options: ConsumerOptions;
  readonly handler: BatchHandler;
  /** Writes a dead letter. */
  send(topic: string, message: Message): Promise<void>;
  onRetry(group: string, error: unknown): void;
}

/**
 * One member of one consumer group. Reading and delivering are two loops that meet in the merger, so that a handler that
 * takes long holds up neither the heartbeats nor the reading. The checkpoint says what was done; Kafka's offsets only
 * say where reading can begin, and follow behind it.
 */
export class Member {
  position = 0;
  readonly done: Promise<void>;
  private readonly consumer: KafkaConsumer;
  private readonly pressure: Pressure;
  private readonly stopping = new AbortController();
  private readonly delivery: Delivery;
  private readonly origins = new Map<string, Origin>();
  private readonly replays: Replay[] = [];
  private merger: Merger<Origin> | undefined;
  private assigned = false;
  private memberId = '';
  private readonly bell = new Bell();
  /** Since when a batch that is not full has been waiting. */
  private lingeringMs: number | undefined;
  private finish: () => void = () => {};
  private joining: Promise<void> | undefined;
  private committedMs = 0;
  private loop: Promise<void> | undefined;

  constructor(private readonly parts: MemberOptions) {
    const { client, options, handler, onRetry } = parts;
    const { sessionMs = SESSION_MS } = client.options;
    this.consumer = client.kafka.consumer({
      groupId: `${client.topics.prefix}.${options.group}`,
      partitionAssigners: [allToOne(() => this.assigned)],
      maxWaitTimeInMs: FETCH_WAIT_MS,
      sessionTimeout: sessionMs,
      heartbeatInterval: sessionMs / 10,
      rebalanceTimeout: sessionMs * 2,
    });
    this.pressure = new Pressure(this.consumer);
    const bury = (deadLetter: DeadLetter, event: RecordedEvent) => this.bury(deadLetter, event);
    this.delivery = { options, handler, signal: this.stopping.signal, onRetry, bury };
    this.done = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  get active(): boolean {
    return this.assigned;
  }

  async start(): Promise<void> {
    const { consumer } = this;
    const { events, watermark, replay } = this.parts.client.topics;
    const topics = [...events, watermark, replay];
    this.position = await this.parts.checkpoints.load(this.parts.options.group);
    consumer.on(consumer.events.GROUP_JOIN, ({ payload: { memberAssignment, memberId } }) => {
      const assigned = (memberAssignment[watermark] ?? []).length > 0;
      // Under the same name it was in the group all the time, and nobody else had the partitions.
      const kept = assigned && this.assigned && memberId === this.memberId;
      [this.assigned, this.memberId] = [assigned, memberId];
      this.replays.length = 0;
      if (!kept) this.reopen();
    });
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      this.tell(payload.error);
      // What the client takes for final, we do not: somebody may be mending it right now.
      if (!payload.restart) this.joining = this.join(topics, 1);
    });
    this.joining = this.join(topics);
    this.loop = this.deliverAll();
  }

  /** Kafka may come up after us. */
  private async join(topics: string[], failed = 0): Promise<void> {
    const { consumer } = this;
    const { signal } = this.stopping;
    for (let failures = failed; !signal.aborted; failures++) {
      if (failures > 0) await sleep(backoffMs(failures), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      try {
        await this.parts.client.ensureTopics(signal);
        await consumer.connect();
        await consumer.subscribe({ topics, fromBeginning: true });
        return await consumer.run({
          autoCommit: false,
          eachBatchAutoResolve: false,
          partitionsConsumedConcurrently: 4,
          eachBatch: (payload) => this.read(payload),
        });
      } catch (error) {
        this.tell(error);
      }
    }
  }

  /** Ends the batch in hand, says how far it came, and leaves the group, so that a stand-by takes over at once. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.bell.ring();
    await Promise.all([this.joining, this.loop]);
    await this.commit(true);
    await this.consumer.disconnect();
    this.finish();
  }

  private async read({ batch, resolveOffset, isStale, isRunning }: EachBatchPayload): Promise<void> {
    for (let waitedMs = 0; !this.merger && waitedMs < OPEN_WAIT_MS && isRunning(); waitedMs += 10) await sleep(10);
    const { merger } = this;
    // What is not taken is read again.
    if (!merger || isStale() || !isRunning()) return;
    const { topic, partition, messages } = batch;
    const { watermark, replay } = this.parts.client.topics;
    if (topic === watermark) {
      for (const message of messages) merger.addWatermark(Number(message.offset), decodeWatermark(message));
      merger.behind(Number(batch.offsetLag()) > 0);
    } else if (topic === replay) this.addReplays(messages);
    else {
      const carried = (message: KafkaMessage): Entry<Origin> => ({
        offset: Number(message.offset),
        position: positionOf(message),
        what: { topic, partition, message },
      });
      // Nothing but the relay should write here; what others write is no event, and no watermark names it.
      merger.add(topic, partition, messages.filter(({ headers }) => headers?.ce_position).map(carried));
    }
    resolveOffset(messages.at(-1)?.offset ?? batch.lastOffset());
    this.pressure.relieve(topic, partition, (...place) => merger.crowded(...place));
    this.bell.ring();
  }

  private addReplays(messages: readonly KafkaMessage[]): void {
    for (const message of messages) {
      if (headerOf(message, 'dl_group') !== this.parts.options.group) continue;
      this.replays.push({ next: Number(message.offset) + 1, message });
    }
  }

  private async deliverAll(): Promise<void> {
    const { signal } = this.stopping;
    for (let failures = 0; !signal.aborted; ) {
      try {
        if (await this.deliverSome()) failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.tell(error);
        failures += 1;
        await sleep(backoffMs(failures), undefined, { signal }).catch(() => {});
        this.reopen();
      }
    }
  }

  /** False when there was nothing to do and it rested. */
  private async deliverSome(): Promise<boolean> {
    const { batchSize = BATCH_EVENTS } = this.parts.options;
    if (!this.assigned) {
      await this.bell.wait();
      return false;
    }
    this.merger ??= await this.open();
    const { merger } = this;
    const replay = this.replays[0];
    if (replay) {
      await this.deliverAgain(replay);
      return true;
    }
    const batch = merger.next(batchSize, this.lingered());
    if (!batch) {
      await this.bell.wait(merger.waiting() ? LINGER_MS : undefined);
      return false;
    }
    this.lingeringMs = undefined;
    await this.deliver(batch.items);
    // Another member may have the group by now, and be further: its checkpoint stands, and these come again.
    if (merger !== this.merger) return true;
    await this.parts.checkpoints.save(this.parts.options.group, batch.to);
    this.position = batch.to;
    merger.done(batch.to);
    this.pressure.review((...place) => merger.crowded(...place));
    await this.commit();
    return true;
  }

  private lingered(): boolean {
    if (!this.merger?.waiting()) this.lingeringMs = undefined;
    else this.lingeringMs ??= performance.now();
    return this.lingeringMs !== undefined && performance.now() - this.lingeringMs >= LINGER_MS;
  }

  private async deliver(items: readonly Entry<Origin>[]): Promise<void> {
    const { types } = this.parts.options;
    const wanted = types && new Set(types);
    this.origins.clear();
    const events: RecordedEvent[] = [];
    for (const { what } of items) {
      if (wanted && !wanted.has(typeOf(what.message))) continue;
      const event = decodeEvent(what.message);
      this.origins.set(event.id, what);
      events.push(event);
    }
    if (events.length > 0) await deliver(this.delivery, events);
  }

  private async deliverAgain(replay: Replay): Promise<void> {
    const { message, next } = replay;
    const { replay: topic } = this.parts.client.topics;
    const event = decodeEvent(message);
    this.origins.set(event.id, { topic, partition: 0, message });
    const { group } = this.parts.options;
    if (await deliverOne(this.delivery, event)) await this.parts.checkpoints.unbury(group, event.id);
    // A rebalance in between has read it anew: then it comes once more, as everything may.
    if (this.replays[0] !== replay) return;
    this.replays.shift();
    await this.consumer.commitOffsets([{ topic, partition: 0, offset: `${next}` }]);
  }

  private async bury(deadLetter: DeadLetter, event: RecordedEvent): Promise<void> {
    const origin = this.origins.get(event.id) as Origin;
    await this.parts.checkpoints.bury(deadLetter);
    const topic = deadLettersOf(this.parts.client.topics.of(event.stream));
    const at = { topic: origin.topic, partition: origin.partition, offset: origin.message.offset };
    await this.parts.send(topic, buriedMessage(origin.message, deadLetter, at));
  }

  /** Begins anew at the checkpoint: what is in memory may belong to another one. */
  private reopen(): void {
    this.merger = undefined;
    this.bell.ring();
  }

  private async open(): Promise<Merger<Origin>> {
    const { client, checkpoints, options } = this.parts;
    const { events, watermark, prefix } = client.topics;
    const position = await checkpoints.load(options.group);
    const topics = [...events, watermark];
    const offsets = await client.asAdmin((admin) =>
      admin.fetchOffsets({ groupId: `${prefix}.${options.group}`, topics }),
    );
    const kept = offsets.find(({ topic }) => topic === watermark)?.partitions[0]?.metadata;
    // A checkpoint that went back, as that of a database after a crash does, makes the offsets worthless.
    const usable = Number(kept ?? 0) <= position;
    for (const { topic, partitions } of offsets) {
      const ends = await client.asAdmin((admin) => admin.fetchTopicOffsets(topic));
      for (const { partition, offset } of partitions) {
        const low = Number(ends.find((end) => end.partition === partition)?.low ?? 0);
        this.consumer.seek({ topic, partition, offset: `${usable ? Math.max(Number(offset), low) : low}` });
      }
    }
    this.position = position;
    const merger = new Merger<Origin>(watermark, position);
    this.pressure.review((...place) => merger.crowded(...place));
    return merger;
  }

  private async commit(now = false): Promise<void> {
    if (!this.merger || (!now && performance.now() - this.committedMs < COMMIT_MS)) return;
    const { merger } = this;
    this.committedMs = performance.now();
    // Only a hint: without it, more is read again after the next start, and ignored.
    try {
      // Some groups save less than they have heard. Offsets beyond what was saved would be worthless at the next start.
      const { checkpoints, options } = this.parts;
      const saved = await (checkpoints.saved?.(options.group) ?? checkpoints.load(options.group));
      const upTo = Math.min(this.position, saved);
      const offsets = merger.settled(upTo).map(({ offset, ...place }) => ({
        ...place,
        offset: `${offset}`,
        metadata: `${upTo}`,
      }));
      if (offsets.length > 0) await this.consumer.commitOffsets(offsets);
    } catch (error) {
      this.tell(error);
    }
  }

  private tell(error: unknown): void {
    this.parts.onRetry(this.parts.options.group, asBusError(error));
  }
}

/** Wakes the one who waits, or who is about to. */
class Bell {
  private rung = false;
  private wake: () => void = () => {};

  ring(): void {
    this.rung = true;
    this.wake();
  }

  async wait(ms?: number): Promise<void> {
    if (!this.rung) {
      await new Promise<void>((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.rung = false;
  }
}
