import { AgonError, type DomainEvent, type RecordedEvent } from '../../services/kernel/index.js';
import {
  type AnyTable,
  fitsMatch,
  type KeyPart,
  keyText,
  type Match,
  matchText,
  type RangeRef,
  type RowKey,
  type RowRef,
  rowText,
  type Table,
} from './table.js';

/** The rows that a view may read and write while it takes in a batch. */
export interface Rows {
  get<Row extends object>(table: Table<Row>, ...key: KeyPart[]): Row | undefined;
  put<Row extends object>(table: Table<Row>, row: Row): void;
  /**
   * A row that cannot be there yet, because its key names the event that makes it. It is inserted without a look, and
   * is not read again while events are taken in: such a table is written here and read by queries.
   */
  add<Row extends object>(table: Table<Row>, row: Row): void;
  remove<Row extends object>(table: Table<Row>, ...key: KeyPart[]): void;
  /** Every row with these values, in no particular order. `more` has to have asked for them. */
  where<Row extends object>(table: Table<Row>, match: { readonly [Column in keyof Row]?: Row[Column] }): Row[];
}

interface Reaction<E> {
  /** The rows that `apply` will get; they are loaded for a whole batch at once. */
  reads?(event: E): readonly RowRef[];
  /** What else it needs, now that the rows of `reads` are there. For rare events: whole ranges cost. */
  more?(event: E, rows: Rows): readonly (RowRef | RangeRef)[];
  apply(event: E, rows: Rows): void;
}

type Recorded<E extends DomainEvent, Type extends string> = RecordedEvent & Extract<E, { readonly type: Type }>;

/**
 * A read model: what it keeps, and how each event changes it. Deterministic and without I/O: the same events in the
 * same order give the same rows on every sink. Raise `version` when rows must be built anew.
 */
export interface View {
  readonly name: string;
  readonly version: number;
  readonly tables: readonly AnyTable[];
  readonly types: readonly string[];
  reads(event: RecordedEvent): readonly RowRef[];
  more?(event: RecordedEvent, rows: Rows): readonly (RowRef | RangeRef)[];
  apply(event: RecordedEvent, rows: Rows): void;
}

/** @example defineView<WalletEvent>({ name: 'balances', version: 1, tables: [...], on: { FundsHeld: { apply } } }) */
export function defineView<E extends DomainEvent>(spec: {
  name: string;
  version: number;
  tables: readonly AnyTable[];
  on: { readonly [Type in E['type']]?: Reaction<Recorded<E, Type>> };
}): View {
  const reactions = new Map(Object.entries(spec.on) as [string, Reaction<RecordedEvent>][]);
  return {
    name: spec.name,
    version: spec.version,
    tables: spec.tables,
    types: [...reactions.keys()],
    reads: (event) => reactions.get(event.type)?.reads?.(event) ?? [],
    more: (event, rows) => reactions.get(event.type)?.more?.(event, rows) ?? [],
    apply: (event, rows) => reactions.get(event.type)?.apply(event, rows),
  };
}

interface Kept {
  /** Undefined if there is none. */
  readonly row: object | undefined;
  /** Of a row that was removed. */
  readonly key: RowKey | undefined;
  readonly changed: boolean;
  /** Whether events asked for it: what one asked for, another one will. */
  readonly asked: boolean;
}

interface Held {
  readonly rows: Map<string, Kept>;
  /** What has changed since the last commit, and is to be written. */
  changed: string[];
  added: object[];
}

/** Every row that changed, once, in its final form; rows that are new; and the keys of those that are gone. */
interface Taken {
  readonly changes: ReadonlyMap<AnyTable, readonly object[]>;
  readonly added: ReadonlyMap<AnyTable, readonly object[]>;
  readonly removed: ReadonlyMap<AnyTable, readonly RowKey[]>;
  release(): void;
}

/** More rows than this are not kept from batch to batch. */
const KEPT_ROWS_MAX = 50_000;

/**
 * The rows that a view is at work on: what was loaded, and what has changed since. It is kept from one commit to the next,
 * so that rows which many events change are loaded once. Nobody else writes them: rows move with the view's checkpoint,
 * and a commit from a checkpoint that has moved is refused.
 */
export class WorkingSet implements Rows {
  private readonly tables = new Map<AnyTable, Held>();
  private readonly ranges = new Set<string>();
  /** How to undo what the event in hand has done so far: where, what, and what was there before. */
  private journal: [Held, string, Kept | undefined][] = [];
  private addedSince: Held[] = [];

  /** An event asks for this row. False if it has to be loaded; true if it is here, and then it stays. */
  asks(table: AnyTable, text: string): boolean {
    const rows = this.tables.get(table)?.rows;
    const kept = rows?.get(text);
    if (kept && !kept.asked) rows?.set(text, { ...kept, asked: true });
    return kept !== undefined;
  }

  load(table: AnyTable, row: object): void {
    this.learn(table, rowText(table, row), row);
  }

  /** There is no such row, unless it was loaded. */
  learn(table: AnyTable, text: string, row?: object): void {
    const { rows } = this.held(table);
    if (!rows.has(text)) rows.set(text, { row, key: undefined, changed: false, asked: true });
  }

  loadRange({ table, match }: RangeRef, rows: readonly object[]): void {
    for (const row of rows) this.load(table, row);
    this.ranges.add(rangeText(table, match));
  }

  get<Row extends object>(table: Table<Row>, ...key: KeyPart[]): Row | undefined {
    return this.tables.get(table)?.rows.get(keyText(key))?.row as Row | undefined;
  }

  put<Row extends object>(table: Table<Row>, row: Row): void {
    this.change(this.held(table), rowText(table, row), row, undefined);
  }

  add<Row extends object>(table: Table<Row>, row: Row): void {
    const held = this.held(table);
    held.added.push(row);
    this.addedSince.push(held);
  }

  remove<Row extends object>(table: Table<Row>, ...key: KeyPart[]): void {
    this.change(this.held(table), keyText(key), undefined, key);
  }

  where<Row extends object>(table: Table<Row>, match: { readonly [Column in keyof Row]?: Row[Column] }): Row[] {
    if (!this.ranges.has(rangeText(table, match as Match))) throw new RangeNotLoaded(table.name);
    const all = [...(this.tables.get(table)?.rows.values() ?? [])].map(({ row }) => row as Row | undefined);
    return all.filter((row) => row !== undefined).filter((row) => fitsMatch(row, match as Match));
  }

  /** Lets an event do its changes; if it fails, none of them happened. */
  attempt(change: () => void): void {
    this.journal = [];
    this.addedSince = [];
    try {
      change();
    } catch (error) {
      for (const [held, text, before] of this.journal.reverse()) {
        if (!before?.changed) held.changed.pop();
        if (before) held.rows.set(text, before);
        else held.rows.delete(text);
      }
      for (const held of this.addedSince) held.added.pop();
      throw error;
    }
  }

  /** What is to be committed. It counts as done from here on; `release` lets go of what nobody asks for, once it is. */
  take(): Taken {
    const changes = new Map<AnyTable, object[]>();
    const removed = new Map<AnyTable, RowKey[]>();
    const added = new Map<AnyTable, readonly object[]>();
    const settled: [Held, string, Kept][] = [];
    for (const [table, held] of this.tables) {
      const [rows, keys]: [object[], RowKey[]] = [[], []];
      for (const text of held.changed) {
        const { row, key, asked } = held.rows.get(text) as Kept;
        if (row) rows.push(row);
        else if (key) keys.push(key);
        const now = { row, key: undefined, changed: false, asked };
        held.rows.set(text, now);
        if (!asked) settled.push([held, text, now]);
      }
      if (rows.length > 0) changes.set(table, rows);
      if (keys.length > 0) removed.set(table, keys);
      if (held.added.length > 0) added.set(table, held.added);
      held.changed = [];
      held.added = [];
    }
    const release = () => {
      for (const [held, text, now] of settled) if (held.rows.get(text) === now) held.rows.delete(text);
    };
    return { changes, added, removed, release };
  }

  /** Too much to keep: a great many rows, or a range, which is the whole of something, for one event that wanted it. */
  get heavy(): boolean {
    let kept = 0;
    for (const { rows } of this.tables.values()) kept += rows.size;
    return kept > KEPT_ROWS_MAX || this.ranges.size > 0;
  }

  forget(): void {
    this.tables.clear();
    this.ranges.clear();
  }

  private change(held: Held, text: string, row: object | undefined, key: RowKey | undefined): void {
    const before = held.rows.get(text);
    this.journal.push([held, text, before]);
    if (!before?.changed) held.changed.push(text);
    held.rows.set(text, { row, key, changed: true, asked: before?.asked ?? false });
  }

  private held(table: AnyTable): Held {
    let held = this.tables.get(table);
    if (!held) {
      held = { rows: new Map(), changed: [], added: [] };
      this.tables.set(table, held);
    }
    return held;
  }
}

/** A view asked for a range that this batch has not loaded: the batch is cut before the event that asked. */
export class RangeNotLoaded extends AgonError {
  constructor(table: string) {
    super('PROJECTION.RANGE_NOT_LOADED', `A view looked for rows of ${table} that it had not asked for.`);
  }
}

const rangeText = (table: AnyTable, match: Match) => `${table.name} ${matchText(match)}`;
