import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  AgonError,
  type AppendResult,
  type BatchHandler,
  type EventStore,
  type LogPage,
  type RecordedEvent,
  type SealedEvent,
  type StreamHead,
  type StreamPage,
  type Subscription,
  storeLimits,
} from '../../kernel/index.js';
import { badPosition, checkShape, fits, repeatedOrConflict } from './append-rules.js';
import { corrupt, countEvents, decodeBlock, encodeBlock } from './block.js';
import { discardIndex, type LogEnvironment, openIndex, openLog } from './environments.js';
import { follow, Growth } from './follow.js';
import { Gate } from './gate.js';
import { probe } from './probe.js';
import { asStoreError, assertSpace, committed } from './store-error.js';
import { StreamIndex } from './stream-index.js';

const BLOCK_EVENTS_MAX = 1024;
const BLOCK_BYTES_MAX = 4 * 1024 * 1024;
const PAGE_BYTES_MAX = 32 * 1024 * 1024;
const DECODED_BLOCKS_MAX = 64;
const HEADS_MAX = 200_000;
const READER_POLL_MS = 100;
const BACKWARDS_EVENTS_MAX = 1_024;

interface Waiting {
  readonly events: readonly SealedEvent[];
  readonly bytes: number;
  resolve(result: AppendResult): void;
  reject(error: AgonError): void;
}

/**
 * The embedded log on LMDB. Appends that arrive while a commit is under way share the next one; a commit is one put of
 * one block, acknowledged when LMDB reports it flushed. Heads of streams live in memory, the stream index follows.
 */
export class LmdbEventStore implements EventStore {
  private readonly heads = new Map<string, StreamHead>();
  /** Blocks read lately: the events of a stream often stand close together. */
  private readonly decoded = new Map<number, RecordedEvent[]>();
  /** The block in which the last page of the log ended: the next page most likely begins there. */
  private unfinished: RecordedEvent[] | undefined;
  private readonly growth = new Growth();
  private readonly subscriptions = new Set<Subscription>();
  private queue: Waiting[] = [];
  private flushing: Promise<void> | undefined;
  /** The last durable position: readers see up to here. */
  private durable: number;
  private closed = false;

  private constructor(
    private readonly folder: string,
    private readonly log: LogEnvironment,
    private readonly index: StreamIndex,
    private readonly gate: Gate,
    private readonly readOnly: boolean,
  ) {
    this.durable = this.indexTail();
  }

  /**
   * Opens a log folder. A writer first lets a child process read the whole log: damage is reported before anything is
   * served, even damage that would take the reading process down. A damaged index is no loss: it is made anew.
   */
  static async open(folder: string, options: { readOnly?: boolean } = {}): Promise<LmdbEventStore> {
    const readOnly = options.readOnly ?? false;
    if (!readOnly) {
      mkdirSync(folder, { recursive: true });
      const { indexIsWhole } = await probe(folder, 'write');
      if (!indexIsWhole) discardIndex(folder);
    }
    const gate = Gate.of(folder);
    const opened: { close(): Promise<void> }[] = [gate];
    const kept = <T extends { close(): Promise<void> }>(env: T) => {
      opened.push(env);
      return env;
    };
    try {
      const files = gate.opening(() => ({
        index: kept(openIndex(folder, readOnly)),
        log: kept(openLog(folder, readOnly)),
      }));
      const index = new StreamIndex(folder, files.index, gate, readOnly);
      return new LmdbEventStore(folder, files.log, index, gate, readOnly);
    } catch (error) {
      // LMDB knows open files by their inode: one left open would be served again in place of the file that replaces it.
      for (const env of opened) await env.close();
      throw asStoreError(error);
    }
  }

  append(stream: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    try {
      this.assertOpen();
      if (this.readOnly) throw new AgonError('STORE.READ_ONLY', 'This log is open for reading only.');
      const bytes = checkShape(stream, expectedRevision, events);
      if (!fits(this.headOf(stream), expectedRevision, events)) {
        return this.repeatedOrConflict(stream, expectedRevision, events);
      }
      const { revision, hash } = events[events.length - 1] as SealedEvent;
      this.heads.set(stream, { revision, hash });
      return new Promise((resolve, reject) => {
        this.queue.push({ events, bytes, resolve, reject });
        // Waiting for the end of the turn lets everything that was asked for in it share one commit.
        this.flushing ??= new Promise<void>((turn) => setImmediate(turn)).then(() => this.flush());
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async readStream(stream: string, page: StreamPage = {}): Promise<readonly RecordedEvent[]> {
    this.assertOpen();
    if (this.readOnly) this.durable = this.indexTail();
    const limit = Math.min(page.limit ?? storeLimits.pageEventsMax, storeLimits.pageEventsMax);
    try {
      if (page.direction !== 'backwards') return this.revisions(stream, page.fromRevision ?? 0, limit);
      const last = this.index.last(stream)?.revision ?? -1;
      const from = Math.min(page.fromRevision ?? last, last);
      const first = Math.max(0, from - limit + 1);
      return this.revisions(stream, first, from - first + 1).reverse();
    } catch (error) {
      throw asStoreError(error);
    }
  }

  async readAll(page: LogPage = {}): Promise<readonly RecordedEvent[]> {
    this.assertOpen();
    const limit = Math.min(page.limit ?? storeLimits.pageEventsMax, storeLimits.pageEventsMax);
    if (this.readOnly) this.durable = this.lastInLog();
    if (page.before !== undefined) return this.backwards(page.before, limit);
    // Every number up to the last is an event's here.
    const after = page.from === undefined ? placeOf(page.after ?? 0) : Math.max(0, placeOf(page.from) - 1);
    return this.page(after, limit);
  }

  /** Forwards from after a position; may hold less than was asked for. */
  private page(after: number, limit: number): RecordedEvent[] {
    const end = Math.min(this.durable, after + limit);
    const events: RecordedEvent[] = [];
    if (after >= end) return events;
    try {
      let expected = this.blockStart(after + 1);
      let bytes = 0;
      for (const { key, value } of this.log.getRange({ start: expected, end: end + 1 })) {
        if (key !== expected) throw corrupt(expected, 'is missing');
        const block = this.unfinished?.[0]?.position === key ? this.unfinished : decodeBlock(value, key);
        expected = key + block.length;
        const inside = key > after && expected - 1 <= end;
        for (const event of block) if (inside || (event.position > after && event.position <= end)) events.push(event);
        this.unfinished = expected - 1 > end ? block : undefined;
        bytes += value.length;
        if (bytes > PAGE_BYTES_MAX && events.length > 0) return events;
      }
      if (expected <= end) throw corrupt(expected, 'is missing');
      return events;
    } catch (error) {
      throw asStoreError(error);
    }
  }

  /** The page is read forwards, since blocks are, in as many parts as it takes. */
  private backwards(before: number | 'end', limit: number): RecordedEvent[] {
    const beyond = this.durable + 1;
    const end = before === 'end' ? beyond : Math.min(beyond, placeOf(before));
    const start = Math.max(0, end - 1 - Math.min(limit, BACKWARDS_EVENTS_MAX));
    const events: RecordedEvent[] = [];
    for (let at = start; at < end - 1; at = events.at(-1)?.position ?? end) events.push(...this.page(at, end - 1 - at));
    return events.reverse();
  }

  async head(stream: string): Promise<StreamHead | undefined> {
    this.assertOpen();
    return this.headOf(stream);
  }

  async lastPosition(): Promise<number> {
    this.assertOpen();
    return this.readOnly ? this.lastInLog() : this.durable;
  }

  subscribe(options: { after: number; batchSize?: number }, handler: BatchHandler): Subscription {
    this.assertOpen();
    const changed = async (after: number, signal: AbortSignal) => {
      if (!this.readOnly) return this.durable > after ? undefined : this.growth.next(signal);
      while (!signal.aborted && this.lastInLog() <= after) await pause(READER_POLL_MS, signal);
    };
    const subscription = follow({ readAll: (page) => this.readAll(page), changed }, options, handler);
    this.subscriptions.add(subscription);
    const over = () => void this.subscriptions.delete(subscription);
    subscription.done.then(over, over);
    return subscription;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    await Promise.all([...this.subscriptions].map((subscription) => subscription.stop()));
    this.closed = true;
    await this.flushing?.catch(() => {});
    // An index that could not be written is read again from the log; it must not keep the log open.
    await this.index
      .close()
      .finally(() => this.log.close())
      .finally(() => this.gate.close());
  }

  private async flush(): Promise<void> {
    while (this.queue.length > 0) {
      const batch = this.nextBatch();
      try {
        await this.commit(batch);
      } catch (error) {
        this.fail(batch, asStoreError(error));
      }
    }
    this.flushing = undefined;
    if (this.heads.size > HEADS_MAX) this.heads.clear();
  }

  /** As many appends as fit one block. An append is never split: its events become durable together. */
  private nextBatch(): readonly Waiting[] {
    let count = 0;
    let events = 0;
    let bytes = 0;
    for (; count < this.queue.length && events < BLOCK_EVENTS_MAX && bytes < BLOCK_BYTES_MAX; count++) {
      const waiting = this.queue[count] as Waiting;
      events += waiting.events.length;
      bytes += waiting.bytes;
    }
    return this.queue.splice(0, count);
  }

  private async commit(batch: readonly Waiting[]): Promise<void> {
    const at = this.durable + 1;
    const block = encodeBlock(eventsOf(batch), at);
    assertSpace(this.folder, block.length);
    const put = () => this.log.put(at, block, { noOverwrite: true });
    const free = await committed(this.gate.committing(put), this.folder);
    if (!free) {
      throw new AgonError(
        'STORE.ANOTHER_WRITER',
        'Another process has written to this log. Stop it, then start again.',
      );
    }
    await committed(this.log.flushed, this.folder);
    for (const { events, resolve } of batch) {
      for (const event of events) this.index.add(event, ++this.durable);
      resolve({ revision: (events[events.length - 1] as SealedEvent).revision, position: this.durable });
    }
    this.growth.announce();
  }

  /** Nothing of a failed commit is in the log, so whatever was promised on top of it has to go too. */
  private fail(batch: readonly Waiting[], error: AgonError): void {
    const refused = [...batch, ...this.queue];
    this.queue = [];
    this.heads.clear();
    for (const waiting of refused) waiting.reject(error);
  }

  private async repeatedOrConflict(stream: string, expectedRevision: number, events: readonly SealedEvent[]) {
    await this.flushing?.catch(() => {});
    const there = await this.readStream(stream, { fromRevision: expectedRevision + 1, limit: events.length });
    return repeatedOrConflict(stream, expectedRevision, events, there, this.headOf(stream));
  }

  private headOf(stream: string): StreamHead | undefined {
    if (this.readOnly) this.durable = this.indexTail();
    const known = this.readOnly ? undefined : this.heads.get(stream);
    if (known) return known;
    const last = this.index.last(stream);
    if (!last) return undefined;
    const head = { revision: last.revision, hash: this.eventAt(last.position).hash };
    this.heads.set(stream, head);
    return head;
  }

  /** A stream's events by its index. What the index promises and the log does not hold is an error, never an answer. */
  private revisions(stream: string, first: number, limit: number): RecordedEvent[] {
    return this.index.positions(stream, first, limit).map((position, i) => {
      const event = this.eventAt(position);
      if (event.stream === stream && event.revision === first + i) return event;
      throw corrupt(position, `is not revision ${first + i} of ${stream}, as the index has it`);
    });
  }

  private eventAt(position: number): RecordedEvent {
    const start = this.blockStart(position);
    let block = this.decoded.get(start);
    if (!block) {
      const bytes = this.log.get(start);
      if (!bytes) throw corrupt(position, 'is missing');
      block = decodeBlock(bytes, start);
      this.decoded.set(start, block);
      if (this.decoded.size > DECODED_BLOCKS_MAX) this.decoded.delete(this.decoded.keys().next().value as number);
    }
    const event = block[position - start];
    if (!event) throw corrupt(position, 'is missing');
    return event;
  }

  /** The key of the block that holds this position. */
  private blockStart(position: number): number {
    for (const key of this.log.getKeys({ start: position, reverse: true, limit: 1 })) return key;
    throw corrupt(position, 'is missing');
  }

  private lastInLog(): number {
    // A reader keeps its snapshot for a while; what its writer has appended since is not in it.
    if (this.readOnly) this.log.resetReadTxn();
    for (const { key, value } of this.log.getRange({ reverse: true, limit: 1 })) {
      return key + countEvents(value, key) - 1;
    }
    return 0;
  }

  /**
   * Adds to the index what the log holds beyond it, and returns the log's last position. A reader does this before it
   * reads a stream, because its writer goes on. The index is looked at first, and follows the log: so the log that is
   * looked at afterwards is never the shorter one, unless it has lost something.
   */
  private indexTail(): number {
    let { indexed } = this.index;
    const last = this.lastInLog();
    if (indexed > last) {
      throw corrupt(last + 1, `is gone: the index has seen ${indexed} events, the log holds ${last}`);
    }
    if (indexed === last) return last;
    for (const { key, value } of this.log.getRange({ start: indexed > 0 ? this.blockStart(indexed) : 0 })) {
      for (const event of decodeBlock(value, key)) {
        if (event.position <= indexed) continue;
        this.index.add(event, event.position);
        indexed = event.position;
      }
    }
    return last;
  }

  private assertOpen(): void {
    if (this.closed) throw new AgonError('STORE.CLOSED', 'The event store is closed.');
  }
}

function eventsOf(batch: readonly Waiting[]): SealedEvent[] {
  const all: SealedEvent[] = [];
  for (const { events } of batch) for (const event of events) all.push(event);
  return all;
}

function placeOf(position: number): number {
  if (!Number.isSafeInteger(position) || position < 0) throw badPosition(position);
  return position;
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => {});
