import {
  AgonError,
  type Bus,
  type Checkpoints,
  type Consumer,
  type DeadLetter,
  type RecordedEvent,
  type Upcaster,
} from '../../services/kernel/index.js';
import { type AnyTable, keyText, type RowKey, type Table } from './table.js';
import { type View, WorkingSet } from './view.js';

/** Where rows are kept. Rows and checkpoint move together or not at all. */
export interface Sink {
  checkpoint(view: View): Promise<number>;
  load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]>;
  /** Commits the changes if the view still stands at `from`; a view that has moved is somebody else's. */
  commit(view: View, from: number, to: number, changes: ReadonlyMap<AnyTable, readonly object[]>): Promise<void>;
  /** Forgets the view's rows and its checkpoint. */
  reset(view: View): Promise<void>;
  /** All rows of a table, in the order of its key: what comparisons and small queries need. */
  rows<Row extends object>(table: Table<Row>): Promise<readonly Row[]>;
}

/** Takes batches of events into one view. Replayed and duplicated events are recognised by their position. */
export class Projector {
  private position: number | undefined;

  constructor(
    readonly view: View,
    private readonly sink: Sink,
    private readonly upcast: Upcaster,
  ) {}

  async checkpoint(): Promise<number> {
    this.position ??= await this.sink.checkpoint(this.view);
    return this.position;
  }

  async project(events: readonly RecordedEvent[]): Promise<void> {
    const from = await this.checkpoint();
    const fresh = events.filter((event) => event.position > from).map(this.upcast);
    const last = fresh.at(-1);
    if (!last) return;
    const rows = new WorkingSet();
    for (const [table, keys] of this.wanted(fresh)) {
      for (const row of await this.sink.load(table, [...keys.values()])) rows.load(table, row);
    }
    for (const event of fresh) this.view.apply(event, rows);
    await this.commit(from, last.position, rows.changes());
  }

  /** Forgets all rows: they are built anew from the first event on. */
  async reset(): Promise<void> {
    this.position = undefined;
    await this.sink.reset(this.view);
  }

  /** Moves the checkpoint over events that do not concern this view. */
  async skipTo(position: number): Promise<void> {
    const from = await this.checkpoint();
    if (position > from) await this.commit(from, position, new Map());
  }

  private async commit(from: number, to: number, changes: ReadonlyMap<AnyTable, readonly object[]>): Promise<void> {
    try {
      await this.sink.commit(this.view, from, to, changes);
      this.position = to;
    } catch (error) {
      this.position = undefined;
      throw error;
    }
  }

  private wanted(events: readonly RecordedEvent[]): Map<AnyTable, Map<string, RowKey>> {
    const wanted = new Map<AnyTable, Map<string, RowKey>>();
    for (const event of events) {
      for (const { table, key } of this.view.reads(event)) {
        const keys = wanted.get(table) ?? new Map<string, RowKey>();
        wanted.set(table, keys.set(keyText(key), key));
      }
    }
    return wanted;
  }
}

/** Projectors keep their checkpoint with their rows; the bus asks for it here instead of keeping one of its own. */
export class ProjectionCheckpoints implements Checkpoints {
  constructor(private readonly projectors: ReadonlyMap<string, Projector>) {}

  async load(group: string): Promise<number> {
    return (await this.projectors.get(group)?.checkpoint()) ?? 0;
  }

  async save(group: string, position: number): Promise<void> {
    await this.projectors.get(group)?.skipTo(position);
  }

  async reset(group: string): Promise<void> {
    await this.projectors.get(group)?.reset();
  }

  /** Nothing is put aside: a view that left out an event would be wrong from there on. */
  async bury(letter: DeadLetter): Promise<void> {
    throw new AgonError(letter.code, letter.message);
  }

  async deadLetters(): Promise<readonly DeadLetter[]> {
    return [];
  }
}

export const groupOf = (view: View): string => `projection.${view.name}`;

/** Keeps the views up to date from the bus. */
export async function runProjections(
  makeBus: (checkpoints: Checkpoints) => Bus,
  projectors: readonly Projector[],
): Promise<{ consumers: ReadonlyMap<string, Consumer>; stop(): Promise<void> }> {
  const bus = makeBus(new ProjectionCheckpoints(new Map(projectors.map((p) => [groupOf(p.view), p]))));
  const consumers = new Map<string, Consumer>();
  for (const projector of projectors) {
    const { types, name } = projector.view;
    const options = { group: groupOf(projector.view), types, batchSize: 2048 };
    consumers.set(name, await bus.consume(options, (events) => projector.project(events)));
  }
  return { consumers, stop: () => bus.close() };
}
