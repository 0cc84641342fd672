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
  /** Undefined once it is removed. */
  readonly row: object | undefined;
  /** Of a row that was removed. */
  readonly key: RowKey | undefined;
  readonly changed: boolean;
}

type Held = Map<string, Kept>;

/** The rows of one batch: what was loaded, and what has changed since. */
export class WorkingSet implements Rows {
  private readonly rows = new Map<AnyTable, Held>();
  private readonly ranges = new Set<string>();
  /** How to undo what the event in hand has done so far: where, what, and what was there before. */
  private journal: [Held, string, Kept | undefined][] = [];

  load(table: AnyTable, row: object): void {
    const held = this.held(table);
    const text = rowText(table, row);
    if (!held.has(text)) held.set(text, { row, key: undefined, changed: false });
  }

  loadRange({ table, match }: RangeRef, rows: readonly object[]): void {
    for (const row of rows) this.load(table, row);
    this.ranges.add(rangeText(table, match));
  }

  get<Row extends object>(table: Table<Row>, ...key: KeyPart[]): Row | undefined {
    return this.rows.get(table)?.get(keyText(key))?.row as Row | undefined;
  }

  put<Row extends object>(table: Table<Row>, row: Row): void {
    this.change(this.held(table), rowText(table, row), { row, key: undefined, changed: true });
  }

  remove<Row extends object>(table: Table<Row>, ...key: KeyPart[]): void {
    this.change(this.held(table), keyText(key), { row: undefined, key, changed: true });
  }

  where<Row extends object>(table: Table<Row>, match: { readonly [Column in keyof Row]?: Row[Column] }): Row[] {
    if (!this.ranges.has(rangeText(table, match as Match))) throw new RangeNotLoaded(table.name);
    const all = [...(this.rows.get(table)?.values() ?? [])].map(({ row }) => row as Row | undefined);
    return all.filter((row) => row !== undefined).filter((row) => fitsMatch(row, match as Match));
  }

  /** Lets an event do its changes; if it fails, none of them happened. */
  attempt(change: () => void): void {
    this.journal = [];
    try {
      change();
    } catch (error) {
      for (const [held, text, before] of this.journal.reverse()) {
        if (before) held.set(text, before);
        else held.delete(text);
      }
      throw error;
    }
  }

  /** Every row that changed, once, in its final form. */
  changes(): ReadonlyMap<AnyTable, readonly object[]> {
    return this.collect(({ row }) => row);
  }

  /** The keys of rows that are gone. */
  removed(): ReadonlyMap<AnyTable, readonly RowKey[]> {
    return this.collect(({ key }) => key);
  }

  private collect<T>(pick: (kept: Kept) => T | undefined): Map<AnyTable, T[]> {
    const found = new Map<AnyTable, T[]>();
    for (const [table, held] of this.rows) {
      const picked: T[] = [];
      for (const kept of held.values()) {
        const each = kept.changed ? pick(kept) : undefined;
        if (each !== undefined) picked.push(each);
      }
      if (picked.length > 0) found.set(table, picked);
    }
    return found;
  }

  private change(held: Held, text: string, kept: Kept): void {
    this.journal.push([held, text, held.get(text)]);
    held.set(text, kept);
  }

  private held(table: AnyTable): Held {
    let held = this.rows.get(table);
    if (!held) {
      held = new Map();
      this.rows.set(table, held);
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
