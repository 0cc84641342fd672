import type { DeadLetter } from '../../services/kernel/index.js';
import type { AnyTable, Match, RowKey, Table } from './table.js';
import type { View } from './view.js';

/** An event that a view could not take in, and why. The view went on without it. */
export interface BuriedEvent extends DeadLetter {
  readonly type: string;
  readonly version: number;
}

/** What a commit brings besides changed rows. */
export interface Also {
  /** Rows that cannot be there yet. They come first: what was added may be changed or removed by the same batch. */
  readonly added?: ReadonlyMap<AnyTable, readonly object[]>;
  readonly removed?: ReadonlyMap<AnyTable, readonly RowKey[]>;
  readonly letters?: readonly BuriedEvent[];
}

/** Where rows are kept. Rows, dead letters and checkpoint move together or not at all. */
export interface Sink {
  checkpoint(view: View): Promise<number>;
  load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]>;
  /** All rows with these values. */
  find(table: AnyTable, match: Match): Promise<readonly object[]>;
  /**
   * Commits the changes if the view still stands at `from`; a view that has moved is somebody else's. Rows that the sink
   * will never accept are SINK.REFUSED; any other failure may pass.
   */
  commit(
    view: View,
    from: number,
    to: number,
    changes: ReadonlyMap<AnyTable, readonly object[]>,
    also?: Also,
  ): Promise<void>;
  /** Forgets the view's rows, its dead letters and its checkpoint. */
  reset(view: View): Promise<void>;
  /** All rows of a table, in the order of its key: what comparisons and small queries need. */
  rows<Row extends object>(table: Table<Row>): Promise<readonly Row[]>;
  letters(view: View): Promise<readonly BuriedEvent[]>;
}

/** How far a view has come, by which rules. */
export interface Standing {
  readonly version: number;
  readonly position: number;
}

/** A sink that can build a view anew beside the one that serves, and put it in its place at one stroke. */
export interface RebuildingSink extends Sink {
  /** What serves; undefined when nothing does. */
  serving(view: View): Promise<Standing | undefined>;
  /** What is being built beside it; undefined when nothing is. */
  building(view: View): Promise<Standing | undefined>;
  /** Where the new rows go. Goes on with a build that was interrupted, unless it followed other rules. */
  beside(view: View): Promise<Sink>;
  /** Makes ready what only readers need of a build: indexes, and what plans are made by. */
  polish(view: View): Promise<void>;
  /** The build serves from now on. Refused with CHECKPOINT.MOVED while what serves is ahead of it. */
  swap(view: View): Promise<void>;
  /** Gives a build up. */
  abandon(view: View): Promise<void>;
}
