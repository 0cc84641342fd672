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
import { follow, Growth } from './follow.js';

interface MemoryOptions {
  /** Positions with gaps in between, as on a server where they are offsets of bytes; counted from 1 otherwise. */
  readonly gaps?: boolean;
}

const COUNTED = { first: 1, step: 1 };
/** Like those of a server whose events are of one size. */
const OFFSETS = { first: 733, step: 115 };

/** The log in memory, for tests and simulations: the same rules, nothing kept. */
export class MemoryEventStore implements EventStore {
  private readonly places: typeof COUNTED;
  private readonly log: RecordedEvent[] = [];
  private readonly streams = new Map<string, RecordedEvent[]>();
  private readonly growth = new Growth();
  private readonly subscriptions = new Set<Subscription>();
  private closed = false;

  constructor({ gaps = false }: MemoryOptions = {}) {
    this.places = gaps ? OFFSETS : COUNTED;
  }

  async append(stream: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    this.assertOpen();
    checkShape(stream, expectedRevision, events);
    const there = this.streams.get(stream) ?? [];
    const head = there.at(-1);
    if (!fits(head, expectedRevision, events)) {
      const next = expectedRevision + 1;
      return repeatedOrConflict(stream, expectedRevision, events, there.slice(next, next + events.length), head);
    }
    const { first, step } = this.places;
    const recorded = events.map((event, i) => ({ ...event, position: first + step * (this.log.length + i) }));
    this.log.push(...recorded);
    this.streams.set(stream, there);
    there.push(...recorded);
    this.growth.announce();
    return { revision: expectedRevision + events.length, position: this.last };
  }

  async readStream(stream: string, page: StreamPage = {}): Promise<readonly RecordedEvent[]> {
    this.assertOpen();
    const events = this.streams.get(stream) ?? [];
    const limit = Math.min(page.limit ?? storeLimits.pageEventsMax, storeLimits.pageEventsMax);
    if (page.direction === 'backwards') {
      const from = Math.min(page.fromRevision ?? events.length - 1, events.length - 1);
      return events.slice(Math.max(0, from - limit + 1), from + 1).reverse();
    }
    const from = page.fromRevision ?? 0;
    return events.slice(from, from + limit);
  }

  async readAll(page: LogPage = {}): Promise<readonly RecordedEvent[]> {
    this.assertOpen();
    const limit = Math.min(page.limit ?? storeLimits.pageEventsMax, storeLimits.pageEventsMax);
    const { after = 0, from, before } = page;
    if (before !== undefined) {
      const end = before === 'end' ? this.log.length : this.indexOf(before);
      return this.log.slice(Math.max(0, end - limit), end).reverse();
    }
    const start = from === undefined ? this.indexOf(after) + (after > 0 ? 1 : 0) : this.indexOf(from);
    return this.log.slice(start, start + limit);
  }

  async head(stream: string): Promise<StreamHead | undefined> {
    this.assertOpen();
    const last = this.streams.get(stream)?.at(-1);
    return last && { revision: last.revision, hash: last.hash };
  }

  async lastPosition(): Promise<number> {
    this.assertOpen();
    return this.last;
  }

  subscribe(options: { after: number; batchSize?: number }, handler: BatchHandler): Subscription {
    this.assertOpen();
    const changed = (after: number, signal: AbortSignal) =>
      this.last > after ? Promise.resolve() : this.growth.next(signal);
    const subscription = follow({ readAll: (page) => this.readAll(page), changed }, options, handler);
    this.subscriptions.add(subscription);
    const over = () => void this.subscriptions.delete(subscription);
    subscription.done.then(over, over);
    return subscription;
  }

  async close(): Promise<void> {
    await Promise.all([...this.subscriptions].map((subscription) => subscription.stop()));
    this.closed = true;
  }

  private get last(): number {
    return this.log.at(-1)?.position ?? 0;
  }

  /** Which event stands at this position, counted from 0; the first one at 0, and beyond the end the next one to come. */
  private indexOf(position: number): number {
    if (position === 0) return 0;
    if (position > this.last) return this.log.length;
    const index = (position - this.places.first) / this.places.step;
    if (!Number.isSafeInteger(index) || index < 0) throw badPosition(position);
    return index;
  }

  private assertOpen(): void {
    if (this.closed) throw new AgonError('STORE.CLOSED', 'The event store is closed.');
  }
}
