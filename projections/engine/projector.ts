import { AgonError, asAgonError, isAgonError, type RecordedEvent, type Upcaster } from '../../services/kernel/index.js';
import { assertOwnRules, type BuriedEvent, type Mark, type Sink } from './sink.js';
import { type AnyTable, keyText, type RowKey, type RowRef } from './table.js';
import { type ChangeSet, type Sweep, type View, WorkingSet } from './view.js';

export type { Sink } from './sink.js';

const LETTERS_MAX = 10_000;

/** What an observer gets to know of each commit. */
export interface CommitReport extends ChangeSet {
  readonly view: View;
  readonly from: number;
  readonly to: number;
  /** Of the rows that changed. */
  readonly generation: string;
  readonly events: number;
  readonly letters: readonly BuriedEvent[];
}

/** Events that are in the rows of the working set, and not committed yet. */
interface PendingEvents {
  readonly from: number;
  readonly to: number;
  readonly events: number;
  readonly letters: BuriedEvent[];
}

/**
 * Takes batches of events into one view. Replayed and duplicated events are recognised by their position, and an event
 * that the view cannot take in is put aside with its error, so that the view goes on.
 */
export class Projector {
  private position: number | undefined;
  /** Of the rows in hand; undefined before there are any. */
  private generation: string | undefined;
  /** What the sink last said of itself, also when that may no longer be so. */
  private confirmed: Mark | undefined;
  private buried = 0;
  private queue: Promise<unknown> = Promise.resolve();
  private readonly types: ReadonlySet<string>;
  private readonly rows = new WorkingSet();
  /** Where the last batch of the bus ended, or where the bus was told to begin. */
  private heard: number | undefined;
  private folding: PendingEvents | undefined;
  /** The commit under way, while what comes next is being folded, and where it will have come to. */
  private writing: { readonly to: number; readonly done: Promise<void> } | undefined;

  constructor(
    readonly view: View,
    private readonly sink: Sink,
    private readonly upcast: Upcaster,
    private readonly onCommitted: (report: CommitReport) => void = () => {},
    /** The rows are other ones than it last knew of, and no report tells how: the answer to a commit was lost, say. */
    private readonly onMoved: () => void = () => {},
  ) {
    this.types = new Set(view.types);
  }

  async checkpoint(): Promise<number> {
    if (this.position === undefined) {
      const standing = await this.sink.serving(this.view);
      assertOwnRules(this.view, standing);
      this.buried = (await this.sink.letters(this.view)).length;
      this.generation = standing?.generation;
      this.position = standing?.position ?? 0;
      const { confirmed } = this;
      this.confirmed = standing ?? { position: 0, generation: '' };
      const { position, generation } = this.confirmed;
      if (confirmed && (confirmed.position !== position || confirmed.generation !== generation)) this.onMoved();
    }
    return this.position;
  }

  /** Where the bus is to begin; what `follow` is given next comes after it. */
  async begin(): Promise<number> {
    this.heard = await this.checkpoint();
    return this.heard;
  }

  /** Asks the sink anew how far it is: a database that came back from a crash may have lost what it had confirmed. */
  reload(): Promise<number> {
    return this.alone(() => {
      this.forget();
      return this.checkpoint();
    });
  }

  /** Takes in all events up to the last of these, which may repeat and need not be sorted. */
  project(events: readonly RecordedEvent[]): Promise<void> {
    return this.alone(() => this.take(events));
  }

  /**
   * For long stretches: folds the events and returns. So many of them are committed together, while the next are being
   * read and folded; there is one commit at a time, and rows and checkpoint of each move together. If one fails, what was
   * folded since the last is void, and the caller goes on from the checkpoint.
   */
  ahead(events: readonly RecordedEvent[], batchEvents: number): Promise<void> {
    return this.alone(() => this.voidIfItFails(() => this.takeAhead(events, batchEvents)));
  }

  /** Waits until all that was taken in is committed. */
  flush(): Promise<void> {
    return this.alone(() => this.voidIfItFails(() => this.written()));
  }

  /**
   * Takes events from a bus that keeps the log's order, each batch where the last one ended; positions may have gaps. If
   * the checkpoint has gone back since, as that of a database that lost its last moments does, these are not the next
   * events: CHECKPOINT.MOVED sends the bus back to it.
   */
  follow(events: readonly RecordedEvent[]): Promise<void> {
    return this.alone(async () => {
      const from = await this.checkpoint();
      const { heard } = this;
      if (heard !== undefined && from < heard) {
        this.heard = undefined;
        throw new AgonError('CHECKPOINT.MOVED', `${this.view.name} went back from position ${heard} to ${from}.`);
      }
      await this.take(events);
      this.heard = events.at(-1)?.position ?? heard;
    });
  }

  /** Runs while no event is taken in; what the sink says of the checkpoint is asked for again afterwards. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.alone(async () => {
      await this.voidIfItFails(() => this.written());
      try {
        const done = await work();
        // Whoever has done it knows what has become of the rows.
        this.confirmed = undefined;
        return done;
      } finally {
        this.forget();
      }
    });
  }

  /** Forgets all rows: they are built anew from the first event on. */
  reset(): Promise<void> {
    return this.exclusively(() => this.sink.reset(this.view));
  }

  /** What is known of the sink may no longer be so. */
  private forget(): void {
    this.position = undefined;
    this.generation = undefined;
    this.folding = undefined;
    this.writing = undefined;
    this.rows.forget();
  }

  private alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.queue.then(work, work);
    this.queue = done.catch(() => {});
    return done;
  }

  private async takeAhead(events: readonly RecordedEvent[], batchEvents: number): Promise<void> {
    let at = this.folding?.to ?? this.writing?.to ?? (await this.checkpoint());
    for (let rest = inOrder(events, at); rest.length > 0; ) {
      await this.lighten();
      const before = this.folding ?? { from: at, to: at, events: 0, letters: [] };
      const { mine, count, sweep } = await this.fold(rest, before.letters);
      const to = rest[count - 1]?.position ?? at;
      if (sweep) {
        await this.written();
        await this.commitSweep(at, to, count, before.letters, mine, sweep);
      } else {
        if (this.sink.pack) this.rows.pack(this.sink.pack.bind(this.sink));
        this.folding = { ...before, to, events: before.events + count };
      }
      at = to;
      rest = rest.slice(count);
      if (rest.length > 0) await this.written();
      else if ((this.folding?.events ?? 0) >= batchEvents) await this.write();
    }
  }

  private async lighten(): Promise<void> {
    if (!this.rows.heavy) return;
    await this.written();
    this.rows.forget();
  }

  /** Starts to commit what is folded, once the commit before it is done. */
  private async write(): Promise<void> {
    await this.writing?.done;
    const { folding } = this;
    this.folding = undefined;
    if (!folding) return;
    const done = this.commit(folding.from, folding.to, folding.events, folding.letters);
    // Looked at with the next one.
    done.catch(() => {});
    this.writing = { to: folding.to, done };
  }

  private async written(): Promise<void> {
    await this.write();
    await this.writing?.done;
    this.writing = undefined;
  }

  private async voidIfItFails(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // One commit may still be under way. Whether it comes through is for the checkpoint to say.
      await this.writing?.done.catch(() => {});
      this.forget();
      throw error;
    }
  }

  private async take(events: readonly RecordedEvent[]): Promise<void> {
    await this.voidIfItFails(() => this.written());
    const from = await this.checkpoint();
    let rest = inOrder(events, from);
    while (rest.length > 0) rest = rest.slice(await this.takeSome(rest));
  }

  /** Commits as many of the events as can go together, and returns how many. */
  private async takeSome(events: readonly RecordedEvent[]): Promise<number> {
    await this.lighten();
    const from = await this.checkpoint();
    const letters: BuriedEvent[] = [];
    const { mine, count, sweep } = await this.folded(events, letters);
    const to = (events[count - 1] as RecordedEvent).position;
    try {
      if (sweep) await this.commitSweep(from, to, count, letters, mine, sweep);
      else await this.commit(from, to, count, letters);
      return count;
    } catch (error) {
      if (!isAgonError(error, 'SINK.REFUSED')) throw error;
      if (count > 1) return this.takeSome(events.slice(0, Math.ceil(count / 2)));
      const [event] = mine;
      if (!event) throw error;
      await this.checkpoint();
      await this.commit(from, to, count, [this.letter(event, error)]);
      return count;
    }
  }

  private async folded(events: readonly RecordedEvent[], letters: BuriedEvent[]) {
    try {
      return await this.fold(events, letters);
    } catch (error) {
      // Half of the events are in the rows now.
      this.rows.forget();
      throw error;
    }
  }

  /** The rows as they are after these events, or after those before one that sweeps. Such a one goes alone. */
  private async fold(
    events: readonly RecordedEvent[],
    letters: BuriedEvent[],
  ): Promise<{ mine: readonly RecordedEvent[]; count: number; sweep?: Sweep }> {
    const mine: RecordedEvent[] = [];
    const wanted = new Map<AnyTable, Map<string, RowKey>>();
    for (const event of events) {
      if (!this.types.has(event.type) && this.upcast.knows(event.type)) continue;
      this.tried(event, letters, () => {
        const current = this.upcast(event);
        for (const ref of this.view.reads(current)) this.want(wanted, ref);
        mine.push(current);
      });
    }
    const { rows } = this;
    await this.load(wanted);
    await this.loadMore(mine, letters);
    for (const [i, event] of mine.entries()) {
      if (letters.some(({ position }) => position === event.position)) continue;
      const sweep = this.tried(event, letters, () => rows.attempt(() => this.view.apply(event, rows)));
      if (!sweep) continue;
      // It goes by rows of the sink, so all that came before it is committed first.
      const before = letters.filter(({ position }) => position < event.position);
      letters.splice(0, letters.length, ...before);
      const at = events.findIndex(({ position }) => position === event.position);
      const isFirst = i === 0 && !this.folding;
      return isFirst ? { mine: [event], count: at + 1, sweep } : { mine: mine.slice(0, i), count: at };
    }
    return { mine, count: events.length };
  }

  private async load(wanted: ReadonlyMap<AnyTable, ReadonlyMap<string, RowKey>>): Promise<void> {
    for (const [table, keys] of wanted) {
      for (const row of await this.sink.load(table, [...keys.values()])) this.rows.load(table, row);
      for (const text of keys.keys()) this.rows.learn(table, text);
    }
  }

  private want(wanted: Map<AnyTable, Map<string, RowKey>>, { table, key }: RowRef): void {
    const text = keyText(key);
    if (this.rows.asks(table, text)) return;
    const keys = wanted.get(table);
    if (keys) keys.set(text, key);
    else wanted.set(table, new Map([[text, key]]));
  }

  private async loadMore(events: readonly RecordedEvent[], letters: BuriedEvent[]): Promise<void> {
    if (!this.view.more) return;
    const { rows } = this;
    const wanted = new Map<AnyTable, Map<string, RowKey>>();
    for (const event of events) {
      this.tried(event, letters, () => {
        for (const ref of this.view.more?.(event, rows) ?? []) this.want(wanted, ref);
      });
    }
    await this.load(wanted);
  }

  /** Buries the event if the work fails. */
  private tried<T>(event: RecordedEvent, letters: BuriedEvent[], work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      if (!letters.some(({ position }) => position === event.position)) letters.push(this.letter(event, error));
      return undefined;
    }
  }

  private letter(event: RecordedEvent, error: unknown): BuriedEvent {
    const { code, message } = asAgonError(error);
    const { position, id: eventId, type, version } = event;
    return { group: groupOf(this.view), position, eventId, type, version, code, message, attempts: 1 };
  }

  /** An event that the view trips over in the middle of its sweep is put aside like every other. */
  private async commitSweep(
    from: number,
    to: number,
    events: number,
    letters: BuriedEvent[],
    mine: readonly RecordedEvent[],
    sweep: Sweep,
  ): Promise<void> {
    try {
      await this.commit(from, to, events, letters, sweep);
    } catch (error) {
      const [event] = mine;
      if (!(error instanceof ViewFailure) || !event) throw error;
      await this.checkpoint();
      await this.commit(from, to, events, [...letters, this.letter(event, error.cause)]);
    }
  }

  private async commit(from: number, to: number, events: number, letters: readonly BuriedEvent[], sweep?: Sweep) {
    if (letters.length > 0 && this.buried + letters.length > LETTERS_MAX) {
      this.forget();
      throw new AgonError(
        'PROJECTION.TOO_MANY_DEAD_LETTERS',
        `${this.view.name} has put ${this.buried} events aside and stops here: ${letters[0]?.message}`,
      );
    }
    const { view, sink, rows } = this;
    const mark = this.generation === undefined ? undefined : { position: from, generation: this.generation };
    let taken = rows.take();
    const written = sweep
      ? sink.sweep(view, mark, to, { ...sweep, take: (some) => stepped(() => sweep.take(some)) }, () => {
          stepped(() => rows.attempt(() => sweep.end(rows)));
          taken = rows.take();
          return { ...taken, letters };
        })
      : sink.commit(view, mark, to, { ...taken, letters });
    const { generation } = await written.catch((error: unknown) => {
      this.forget();
      throw error;
    });
    const { changes, added, removed, release } = taken;
    this.position = to;
    this.generation = generation;
    this.confirmed = { position: to, generation };
    this.buried += letters.length;
    release();
    this.onCommitted({ view, from, to, generation, events, changes, added, removed, letters });
  }
}

/** A view failed in the middle of a sweep: its own fault, and none of the sink that called it. */
class ViewFailure extends Error {}

function stepped<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw new ViewFailure('A view tripped in a sweep.', { cause: error });
  }
}

export const groupOf = (view: View): string => `projection.${view.name}`;

/** By position, each once, and only what is beyond the checkpoint. Most batches are in order already. */
function inOrder(events: readonly RecordedEvent[], from: number): readonly RecordedEvent[] {
  let last = from;
  const sorted = events.every(({ position }) => {
    const grows = position > last;
    last = position;
    return grows;
  });
  if (sorted) return events;
  const byPosition = new Map(events.map((event) => [event.position, event]));
  return [...byPosition.values()].filter((e) => e.position > from).sort((a, b) => a.position - b.position);
}
