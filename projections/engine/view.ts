import { AgonError, type DomainEvent, type RecordedEvent } from '../../services/kernel/index.js';
import {
  type AnyTable,
  type KeyPart,
  keyText,
  type Match,
  type RowKey,
  type RowRef,
  rowRef,
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
  /** For the rare event that needs more rows than fit into memory. It does nothing else: the rest is for the end. */
  sweep<Row extends object>(table: Table<Row>, sweep: SweepOf<Row>): void;
}

/** All rows with these values go by, some at a time; what is made of some is written before the next are read. */
interface SweepOf<Row extends object> {
  readonly match: { readonly [Column in keyof Row & string]?: Row[Column] & KeyPart };
  /** The column that they go by in the order of; each has another value. */
  readonly order: keyof Row & string;
  /** Rows to write, by their tables. They are not read again before the sweep is over. */
  take(some: readonly Row[]): ReadonlyMap<AnyTable, readonly object[]>;
  /** When all have gone by: what else the event does, with the rows that `reads` and `more` asked for. */
  end(rows: Rows): void;
}

/** A sweep over whatever rows: what the engine and the sinks handle. */
export interface Sweep {
  readonly table: AnyTable;
  readonly match: Match;
  readonly order: string;
  take(some: readonly object[]): ReadonlyMap<AnyTable, readonly object[]>;
  end(rows: Rows): void;
}

export interface Reaction<E> {
  /** The rows that `apply` will get; they are loaded for a whole batch at once. */
  reads?(event: E): readonly RowRef[];
  /** What else it needs, now that the rows of `reads` are there. For rare events: each costs a statement more. */
  more?(event: E, rows: Rows): readonly RowRef[];
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
  more?(event: RecordedEvent, rows: Rows): readonly RowRef[];
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

/** What a reaction that changes one row gets to see of its event. */
export interface Facts<Data> {
  readonly data: Data;
  readonly time: string;
}

export type Change<Data, Row> = (data: Data, row: Row, time: string) => Partial<Row>;

/** The reaction to an event that changes a row, if it is there or `absent` says what it begins as. */
export const changing = <Data, Row extends object>(
  table: Table<Row>,
  keyOf: (data: Data) => KeyPart,
  change: Change<Data, Row>,
  absent: (data: Data) => Row | undefined = () => undefined,
): Reaction<Facts<Data>> => ({
  reads: ({ data }) => [rowRef(table, keyOf(data))],
  apply: ({ data, time }, rows) => {
    const row = rows.get(table, keyOf(data)) ?? absent(data);
    if (row) rows.put(table, { ...row, ...change(data, row, time) });
  },
});

/** A row in hand. There are as many as there are changes, so it is changed in place. */
interface CachedRow {
  readonly text: string;
  /** Undefined if there is none. */
  row: object | undefined;
  /** Of a row that was removed. */
  key: RowKey | undefined;
  changed: boolean;
  /** Whether events asked for it: what one asked for, another one will. */
  asked: boolean;
}

interface CachedTable {
  readonly rows: Map<string, CachedRow>;
  /** What has changed since the last commit, and is to be written. */
  changed: CachedRow[];
  added: object[];
  packed: object[];
}

/** How to undo a change: what was there before, and whether that had been changed since the last commit. */
interface Undo {
  readonly held: CachedTable;
  readonly kept: CachedRow;
  readonly row: object | undefined;
  readonly key: RowKey | undefined;
  readonly changed: boolean;
  readonly isNew: boolean;
}

/** Every row that changed, once, in its final form; rows that are new; and the keys of those that are gone. */
export interface ChangeSet {
  readonly changes: ReadonlyMap<AnyTable, readonly object[]>;
  readonly added: ReadonlyMap<AnyTable, readonly object[]>;
  readonly removed: ReadonlyMap<AnyTable, readonly RowKey[]>;
}

/** More rows than this are not kept from batch to batch. */
const KEPT_ROWS_MAX = 50_000;

/**
 * The rows that a view is at work on: what was loaded, and what has changed since. It is kept from one commit to the next,
 * so that rows which many events change are loaded once. Nobody else writes them: rows move with the view's checkpoint,
 * and a commit from a checkpoint that has moved is refused.
 */
export class WorkingSet implements Rows {
  private readonly tables = new Map<AnyTable, CachedTable>();
  /** What the event in hand wants to go by, if it does. */
  private swept: Sweep | undefined;
  /** What the event in hand has done so far. */
  private journal: Undo[] = [];
  private addedSince: CachedTable[] = [];
  /** The key that was looked for last: what is written next is most often its row. */
  private last: { readonly table: AnyTable; readonly key: RowKey; readonly text: string } | undefined;

  /** An event asks for this row. False if it has to be loaded; true if it is here, and then it stays. */
  asks(table: AnyTable, text: string): boolean {
    const kept = this.tables.get(table)?.rows.get(text);
    if (kept) kept.asked = true;
    return kept !== undefined;
  }

  load(table: AnyTable, row: object): void {
    this.learn(table, rowText(table, row), row);
  }

  /** There is no such row, unless it was loaded. */
  learn(table: AnyTable, text: string, row?: object): void {
    const { rows } = this.held(table);
    if (!rows.has(text)) rows.set(text, { text, row, key: undefined, changed: false, asked: true });
  }

  get<Row extends object>(table: Table<Row>, ...key: KeyPart[]): Row | undefined {
    const text = keyText(key);
    this.last = { table, key, text };
    return this.tables.get(table)?.rows.get(text)?.row as Row | undefined;
  }

  put<Row extends object>(table: Table<Row>, row: Row): void {
    const { last } = this;
    const text = last?.table === table && hasKey(table, row, last.key) ? last.text : rowText(table, row);
    this.change(this.held(table), text, row, undefined);
  }

  add<Row extends object>(table: Table<Row>, row: Row): void {
    const held = this.held(table);
    held.added.push(row);
    this.addedSince.push(held);
  }

  remove<Row extends object>(table: Table<Row>, ...key: KeyPart[]): void {
    this.change(this.held(table), keyText(key), undefined, key);
  }

  sweep<Row extends object>(table: Table<Row>, sweep: SweepOf<Row>): void {
    this.swept = { table, ...sweep } as unknown as Sweep;
  }

  /** Lets an event do its changes, or say what it wants to sweep; if it fails, none of them happened. */
  attempt(change: () => void): Sweep | undefined {
    this.journal = [];
    this.addedSince = [];
    this.swept = undefined;
    try {
      change();
      if (this.swept && this.journal.length + this.addedSince.length > 0) throw mixedSweep();
      return this.swept;
    } catch (error) {
      for (const { held, kept, row, key, changed, isNew } of this.journal.reverse()) {
        if (!changed) held.changed.pop();
        Object.assign(kept, { row, key, changed });
        if (isNew) held.rows.delete(kept.text);
      }
      for (const held of this.addedSince) held.added.pop();
      throw error;
    }
  }

  /** Lets rows that were added be kept in another form until they are committed. */
  pack(packed: (table: AnyTable, rows: readonly object[]) => object): void {
    for (const [table, held] of this.tables) {
      if (held.added.length > 0) held.packed.push(packed(table, held.added));
      held.added = [];
    }
  }

  /** What is to be committed. It counts as done from here on; `release` lets go of what nobody asks for, once it is. */
  take(): ChangeSet & { release(): void } {
    const changes = new Map<AnyTable, object[]>();
    const removed = new Map<AnyTable, RowKey[]>();
    const added = new Map<AnyTable, readonly object[]>();
    const settled: [CachedTable, readonly CachedRow[]][] = [];
    for (const [table, held] of this.tables) {
      const [rows, keys]: [object[], RowKey[]] = [[], []];
      for (const kept of held.changed) {
        if (kept.row) rows.push(kept.row);
        else if (kept.key) keys.push(kept.key);
        kept.key = undefined;
        kept.changed = false;
      }
      if (rows.length > 0) changes.set(table, rows);
      if (keys.length > 0) removed.set(table, keys);
      if (held.packed.length + held.added.length > 0) added.set(table, [...held.packed, ...held.added]);
      if (held.changed.length > 0) settled.push([held, held.changed]);
      held.changed = [];
      held.added = [];
      held.packed = [];
    }
    const release = () => {
      for (const [held, all] of settled) {
        for (const { text, asked, changed } of all) if (!asked && !changed) held.rows.delete(text);
      }
    };
    return { changes, added, removed, release };
  }

  /** Too much to keep. */
  get heavy(): boolean {
    let kept = 0;
    for (const { rows } of this.tables.values()) kept += rows.size;
    return kept > KEPT_ROWS_MAX;
  }

  forget(): void {
    this.tables.clear();
  }

  private change(held: CachedTable, text: string, row: object | undefined, key: RowKey | undefined): void {
    const known = held.rows.get(text);
    const kept = known ?? { text, row: undefined, key: undefined, changed: false, asked: false };
    if (!known) held.rows.set(text, kept);
    this.journal.push({ held, kept, row: kept.row, key: kept.key, changed: kept.changed, isNew: !known });
    if (!kept.changed) held.changed.push(kept);
    kept.row = row;
    kept.key = key;
    kept.changed = true;
  }

  private held(table: AnyTable): CachedTable {
    let held = this.tables.get(table);
    if (!held) {
      held = { rows: new Map(), changed: [], added: [], packed: [] };
      this.tables.set(table, held);
    }
    return held;
  }
}

/** The event may be cut off from its batch and come again: what it has done before would then be done twice. */
const mixedSweep = () =>
  new AgonError('PROJECTION.MIXED_SWEEP', 'A view changed rows outside of a sweep that it asked for.');

function hasKey(table: AnyTable, row: object, key: RowKey): boolean {
  for (let i = 0; i < key.length; i++) {
    if ((row as Record<string, unknown>)[table.key[i] as string] !== key[i]) return false;
  }
  return true;
}
