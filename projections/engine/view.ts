import type { DomainEvent, RecordedEvent } from '../../services/kernel/index.js';
import { type AnyTable, type KeyPart, keyOf, keyText, type RowRef, type Table } from './table.js';

/** The rows that a view may read and write while it takes in a batch. */
export interface Rows {
  get<Row extends object>(table: Table<Row>, ...key: KeyPart[]): Row | undefined;
  put<Row extends object>(table: Table<Row>, row: Row): void;
}

interface Reaction<E> {
  /** The rows that `apply` will get; they are loaded for a whole batch at once. */
  reads?(event: E): readonly RowRef[];
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
    apply: (event, rows) => reactions.get(event.type)?.apply(event, rows),
  };
}

/** The rows of one batch: what was loaded, and what has changed since. */
export class WorkingSet implements Rows {
  private readonly rows = new Map<AnyTable, Map<string, object>>();
  private readonly dirty = new Map<AnyTable, Map<string, object>>();

  load(table: AnyTable, row: object): void {
    mapOf(this.rows, table).set(keyText(keyOf(table, row)), row);
  }

  get<Row extends object>(table: Table<Row>, ...key: KeyPart[]): Row | undefined {
    return this.rows.get(table)?.get(keyText(key)) as Row | undefined;
  }

  put<Row extends object>(table: Table<Row>, row: Row): void {
    const key = keyText(keyOf(table, row));
    mapOf(this.rows, table).set(key, row);
    mapOf(this.dirty, table).set(key, row);
  }

  /** Every row that changed, once, in its final form. */
  changes(): ReadonlyMap<AnyTable, readonly object[]> {
    return new Map([...this.dirty].map(([table, rows]) => [table, [...rows.values()]]));
  }
}

function mapOf(maps: Map<AnyTable, Map<string, object>>, table: AnyTable): Map<string, object> {
  let map = maps.get(table);
  if (!map) {
    map = new Map();
    maps.set(table, map);
  }
  return map;
}
