import type {
  BatchHandler,
  EventStore,
  LogPage,
  RecordedEvent,
  SealedEvent,
  StreamPage,
  Subscription,
} from '../../kernel/index.js';

/**
 * A store whose positions have gaps, seen by rank: its first event is 1, the next is 2. Positions "grow, start at 1, and
 * belong to a store", which is all that consumers need; the contract suite counts, so that it can tell a lost event
 * from a gap. Every position that the store names has to be an event's.
 */
export class Ranked implements EventStore {
  private readonly positions: number[] = [];
  private reading: Promise<void> = Promise.resolve();

  constructor(private readonly store: EventStore) {}

  async append(stream: string, expectedRevision: number, events: readonly SealedEvent[]) {
    const { revision, position } = await this.store.append(stream, expectedRevision, events);
    return { revision, position: await this.rankOf(position) };
  }

  async readStream(stream: string, page?: StreamPage) {
    return this.ranked(await this.store.readStream(stream, page));
  }

  async readAll({ after = 0, ...rest }: LogPage = {}) {
    await this.catchUp();
    // Beyond the end by rank is beyond the end by position, too; there is nothing to name it by.
    if (after > this.positions.length) return [];
    return this.ranked(await this.store.readAll({ after: this.positions[after - 1] ?? 0, ...rest }));
  }

  head(stream: string) {
    return this.store.head(stream);
  }

  async lastPosition() {
    const last = await this.store.lastPosition();
    return last === 0 ? 0 : this.rankOf(last);
  }

  subscribe({ after, ...rest }: { after: number; batchSize?: number }, handler: BatchHandler): Subscription {
    const known = Math.min(after, this.positions.length);
    return this.store.subscribe({ after: this.positions[known - 1] ?? 0, ...rest }, async (events) => {
      const wanted = (await this.ranked(events)).filter(({ position }) => position > after);
      if (wanted.length > 0) await handler(wanted);
    });
  }

  close() {
    return this.store.close();
  }

  private async ranked(events: readonly RecordedEvent[]): Promise<RecordedEvent[]> {
    const ranked: RecordedEvent[] = [];
    for (const event of events) ranked.push({ ...event, position: await this.rankOf(event.position) });
    return ranked;
  }

  private async rankOf(position: number): Promise<number> {
    if ((this.positions.at(-1) ?? 0) < position) await this.catchUp();
    let [low, high] = [0, this.positions.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.positions[middle] as number) < position) low = middle + 1;
      else high = middle;
    }
    if (this.positions[low] !== position) throw new Error(`No event stands at position ${position}.`);
    return low + 1;
  }

  private catchUp(): Promise<void> {
    this.reading = this.reading.then(async () => {
      for (;;) {
        const page = await this.store.readAll({ after: this.positions.at(-1) ?? 0 });
        if (page.length === 0) return;
        for (const { position } of page) {
          if (position <= (this.positions.at(-1) ?? 0)) throw new Error(`Position ${position} does not grow.`);
          this.positions.push(position);
        }
      }
    });
    return this.reading;
  }
}

/** A dense log with gaps put in between, as a real server has them. */
export class Gappy implements EventStore {
  constructor(private readonly store: EventStore) {}

  async append(stream: string, expectedRevision: number, events: readonly SealedEvent[]) {
    const { revision, position } = await this.store.append(stream, expectedRevision, events);
    return { revision, position: widened(position) };
  }

  async readStream(stream: string, page?: StreamPage) {
    return (await this.store.readStream(stream, page)).map(widenedEvent);
  }

  async readAll({ after = 0, ...rest }: LogPage = {}) {
    return (await this.store.readAll({ after: narrowed(after), ...rest })).map(widenedEvent);
  }

  head(stream: string) {
    return this.store.head(stream);
  }

  async lastPosition() {
    const last = await this.store.lastPosition();
    return last === 0 ? 0 : widened(last);
  }

  subscribe({ after, ...rest }: { after: number; batchSize?: number }, handler: BatchHandler) {
    return this.store.subscribe({ after: narrowed(after), ...rest }, (events) => handler(events.map(widenedEvent)));
  }

  close() {
    return this.store.close();
  }
}

const widened = (position: number) => 1_000 + position * 37;
const narrowed = (position: number) => Math.max(0, Math.floor((position - 1_000) / 37));
const widenedEvent = (event: RecordedEvent) => ({ ...event, position: widened(event.position) });
