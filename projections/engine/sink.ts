import { AgonError, type DeadLetter } from '../../services/kernel/index.js';
import type { AnyTable, RowKey, Table } from './table.js';
import type { Sweep, View } from './view.js';

/** An event that a view could not take in, and why. The view went on without it. */
export interface BuriedEvent extends DeadLetter {
  readonly type: string;
  readonly version: number;
}

/** What a commit brings. */
export interface Commit {
  /** Rows that are put in the place of those with the same key, or beside the others. */
  readonly changes?: ReadonlyMap<AnyTable, readonly object[]>;
  /**
   * Rows that cannot be there yet, some of them as the sink has packed them. They come first: what was added may be changed
   * or removed by the same batch.
   */
  readonly added?: ReadonlyMap<AnyTable, readonly object[]>;
  readonly removed?: ReadonlyMap<AnyTable, readonly RowKey[]>;
  readonly letters?: readonly BuriedEvent[];
}

/** How many rows of a sweep are read at once, and the most that a view is given together. */
export const SWEEP_ROWS = 1_000;

/** What a sink needs to know of a sweep. */
export type RowSweep = Omit<Sweep, 'end'>;

/** Which rows, and how far they have come. */
export interface Mark {
  readonly position: number;
  /** New whenever rows begin anew or a build takes their place: what was loaded from others is no longer so. */
  readonly generation: string;
}

/** How far a view has come, by which rules. */
export interface Standing extends Mark {
  readonly version: number;
}

/** Where rows are kept. Rows, dead letters and checkpoint move together or not at all. */
export interface Sink {
  /** How the rows stand; undefined when there are none. */
  serving(view: View): Promise<Standing | undefined>;
  load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]>;
  /** New rows in the form in which `commit` writes them: it takes less to keep than the rows, where many wait. */
  pack?(table: AnyTable, rows: readonly object[]): object;
  /**
   * Commits the changes if the view still stands at `from`, and returns where it stands then; undefined is the beginning.
   * CHECKPOINT.MOVED if others have moved it, or put other rows in its place. Rows that the sink will never accept are
   * SINK.REFUSED; any other failure may pass.
   */
  commit(view: View, from: Mark | undefined, to: number, commit: Commit): Promise<Mark>;
  /**
   * A commit with a sweep before it: no more than SWEEP_ROWS are in hand at a time, and what is made of them is written with
   * what `end` returns and the checkpoint, or not at all.
   */
  sweep(view: View, from: Mark | undefined, to: number, sweep: RowSweep, end: () => Commit): Promise<Mark>;
  /** Forgets the view's rows, its dead letters and its checkpoint. */
  reset(view: View): Promise<void>;
  /** All rows of a table, in the order of its key: what comparisons and small queries need. */
  rows<Row extends object>(table: Table<Row>): Promise<readonly Row[]>;
  letters(view: View): Promise<readonly BuriedEvent[]>;
}

export interface BuildProgress {
  readonly position: number;
  /** Where this build was started or resumed. */
  readonly from?: number;
  /** The end of the log, when last looked at. */
  readonly total: number;
  /** Events taken in since this build was started or resumed. */
  readonly events: number;
  readonly phase: 'building' | 'swapping' | 'swapped';
}

/** How fast a build goes, and what kept it from going on. */
export interface BuildStatus extends BuildProgress {
  readonly eventsPerSecond: number;
  readonly secondsLeft: number;
  readonly trouble: string | null;
}

/** A build that somebody wants, or that is under way. */
export interface BuildRequest {
  /** By whose rules at least: older code leaves it to newer. */
  readonly version: number;
  /** As its builder told it last; undefined before the first word. */
  readonly status: BuildStatus | undefined;
}

/** A sink that can build a view anew beside the one that serves, and put it in its place at one stroke. */
export interface RebuildingSink extends Sink {
  /** Wants the view built anew, by whichever process keeps it. Stands until a build is swapped in or given up. */
  ask(view: View): Promise<void>;
  /** What is wanted, by the views' names. */
  asked(): Promise<ReadonlyMap<string, BuildRequest>>;
  /** Lets those who asked know how it goes. */
  tell(view: View, status: BuildStatus): Promise<void>;
  /**
   * Runs while no other process builds this view; PROJECTION.BUILDING if one does. It saves work and guards nothing: two
   * builds in one place would be told apart by their checkpoint.
   */
  alone<T>(view: View, work: () => Promise<T>): Promise<T>;
  /** What is being built beside it; undefined when nothing is. */
  building(view: View): Promise<Standing | undefined>;
  /** Where the new rows go. Goes on with a build that was interrupted, unless it followed other rules. */
  beside(view: View): Promise<Sink>;
  /** Makes ready what only readers need of a build: indexes, and what plans are made by. */
  polish(view: View): Promise<void>;
  /**
   * The build serves from now on. Refused with CHECKPOINT.MOVED while what serves is ahead of it, and with
   * PROJECTION.BUSY while readers hold on to what it would replace.
   */
  swap(view: View): Promise<void>;
  /** Gives a build up. */
  abandon(view: View): Promise<void>;
}

/** Rows by other rules are left alone: by older code, which waits to be replaced, and by newer, which builds beside. */
export function assertOwnRules(view: View, standing: Standing | undefined): void {
  if (!standing || standing.version === view.version) return;
  throw new AgonError(
    'PROJECTION.OTHER_VERSION',
    `The rows of ${view.name} follow version ${standing.version}, and this build knows version ${view.version}.`,
  );
}

export const movedFrom = (view: View, from: Mark | undefined) =>
  new AgonError('CHECKPOINT.MOVED', `${view.name} is no longer at position ${from?.position ?? 0}, or has other rows.`);

export const alreadyBuilding = (view: View) =>
  new AgonError('PROJECTION.BUILDING', `Another process builds ${view.name}.`);
