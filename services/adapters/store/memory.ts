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
import { checkShape, fits, repeatedOrConflict } from './append-rules.js';
import { follow, Growth } from './follow.js';

/** The log in memory, for tests and simulations: the same rules, nothing kept. */
export class MemoryEventStore implements EventStore {
  private readonly log: RecordedEvent[] = [];
  private readonly streams = new Map<string, RecordedEvent[]>();
  private readonly growth = new Growth();
  private readonly subscriptions = new Set<Subscription>();
  private closed = false;

  async append(stream: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    this.assertOpen();
    checkShape(stream, expectedRevision, events);
    const there = this.streams.get(stream) ?? [];
    const head = there.at(-1);
    if (!fits(head, expectedRevision, events)) {
      const first = expectedRevision + 1;
      return repeatedOrConflict(stream, expectedRevision, events, there.slice(first, first + events.length), head);
    }
    const recorded = events.map((event, i) => ({ ...event, position: this.log.length + 1 + i }));
    this.log.push(...recorded);
    this.streams.set(stream, there);
    there.push(...recorded);
    this.growth.announce();
    return { revision: expectedRevision + events.length, position: this.log.length };
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
    const after = page.after ?? 0;
    return this.log.slice(after, after + Math.min(page.limit ?? storeLimits.pageEventsMax, storeLimits.pageEventsMax));
  }

  async head(stream: string): Promise<StreamHead | undefined> {
    this.assertOpen();
    const last = this.streams.get(stream)?.at(-1);
    return last && { revision: last.revision, hash: last.hash };
  }

  async lastPosition(): Promise<number> {
    this.assertOpen();
    return this.log.length;
  }

  subscribe(options: { after: number; batchSize?: number }, handler: BatchHandler): Subscription {
    this.assertOpen();
    const changed = (after: number, signal: AbortSignal) =>
      this.log.length > after ? Promise.resolve() : this.growth.next(signal);
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

  private assertOpen(): void {
    if (this.closed) throw new AgonError('STORE.CLOSED', 'The event store is closed.');
  }
}
