import type {
  BatchHandler,
  EventStore,
  LogPage,
  RecordedEvent,
  SealedEvent,
  StreamPage,
  Subscription,
} from '../../kernel/index.js';

/** A store whose events are seen under other positions than its own. */
abstract class Renumbering implements EventStore {
  constructor(protected readonly store: EventStore) {}

  /** What a position of the store is seen as. */
  protected abstract numberOf(position: number): number | Promise<number>;
  /** The position of the store after which that begins which comes after this number. */
  protected abstract positionOf(number: number): number;

  async append(stream: string, expectedRevision: number, events: readonly SealedEvent[]) {
    const { revision, position } = await this.store.append(stream, expectedRevision, events);
    return { revision, position: await this.numberOf(position) };
  }

  async readStream(stream: string, page?: StreamPage) {
    return this.renumbered(await this.store.readStream(stream, page));
  }

  async readAll({ after = 0, ...rest }: LogPage = {}) {
    return this.renumbered(await this.store.readAll({ after: this.positionOf(after), ...rest }));
  }

  head(stream: string) {
    return this.store.head(stream);
  }

  async lastPosition() {
    const last = await this.store.lastPosition();
    return last === 0 ? 0 : this.numberOf(last);
  }

  subscribe({ after, ...rest }: { after: number; batchSize?: number }, handler: BatchHandler): Subscription {
    return this.store.subscribe({ after: this.positionOf(after), ...rest }, async (events) => {
      const wanted = (await this.renumbered(events)).filter(({ position }) => position > after);
      if (wanted.length > 0) await handler(wanted);
    });
  }

  close() {
    return this.store.close();
  }

  private async renumbered(events: readonly RecordedEvent[]): Promise<RecordedEvent[]> {
    const seen: RecordedEvent[] = [];
    for (const event of events) seen.push({ ...event, position: await this.numberOf(event.position) });
    return seen;
  }
}

/**
 * A store whose positions have gaps, seen by rank: its first event is 1, the next is 2. Positions "grow, start at 1, and
 * belong to a store", which is all that consumers need; the contract suite counts, so that it can tell a lost event
 * from a gap. Every position that the store names has to be an event's.
 */
export class Ranked extends Renumbering {
  private readonly positions: number[] = [];
  private reading: Promise<void> = Promise.resolve();

  override async readAll(page: LogPage = {}) {
    await this.catchUp();
    // Beyond the end by rank is beyond the end by position, too; there is nothing to name it by.
    return (page.after ?? 0) > this.positions.length ? [] : super.readAll(page);
  }

  protected positionOf(rank: number): number {
    return this.positions[Math.min(rank, this.positions.length) - 1] ?? 0;
  }

  protected async numberOf(position: number): Promise<number> {
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
export class Gappy extends Renumbering {
  protected numberOf(position: number): number {
    return 1_000 + position * 37;
  }

  protected positionOf(number: number): number {
    return Math.max(0, Math.floor((number - 1_000) / 37));
  }
}
