/** The PostgreSQL types that views use. `int8` and `numeric` travel as strings and are bigint in rows. */
export type ColumnType = 'text' | 'int4' | 'int8' | 'numeric' | 'float8' | 'bool' | 'jsonb' | 'timestamptz';

export type Cell = string | number | bigint | boolean | null | object;

/** A table of whatever rows: what the engine and the sinks handle. */
export interface AnyTable {
  readonly name: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly key: readonly string[];
  readonly nullable?: readonly string[];
  readonly indexes?: Readonly<Record<string, readonly string[]>>;
}

/** What a view keeps: a named table, its columns, and the columns that identify a row. */
export interface Table<Row extends object> extends AnyTable {
  readonly columns: { readonly [Column in keyof Row & string]: ColumnType };
  readonly key: readonly (keyof Row & string)[];
  /** Columns that may be without a value. */
  readonly nullable?: readonly (keyof Row & string)[];
  /** By their names, the columns that each sorts by. Text in a key or an index is compared by code units. */
  readonly indexes?: Readonly<Record<string, readonly (keyof Row & string)[]>>;
}

/** What a row of a table is. */
export type RowOf<T> = T extends Table<infer Row> ? Row : never;

interface Cells {
  readonly text: string;
  readonly int4: number;
  readonly int8: bigint;
  readonly numeric: bigint;
  readonly float8: number;
  readonly bool: boolean;
  readonly jsonb: object;
  readonly timestamptz: string;
}

declare const holds: unique symbol;
/** A column of which more is known than its type in PostgreSQL says. */
type Of<Type extends ColumnType, Value extends Cell> = Type & { readonly [holds]: Value };

export const text = <Value extends string>() => 'text' as Of<'text', Value>;
export const json = <Value extends object>() => 'jsonb' as Of<'jsonb', Value>;

type Columns = Readonly<Record<string, ColumnType>>;
type RowFrom<C extends Columns, Nullable> = {
  readonly [Name in keyof C]:
    | (C[Name] extends { readonly [holds]: infer Value } ? Value : Cells[C[Name]])
    | (Name extends Nullable ? null : never);
};

/** @example const ratings = defineTable({ name: 'ratings', columns: { ... }, key: ['game', 'agentId'] }); */
export const defineTable = <const C extends Columns, const Nullable extends keyof C & string = never>(table: {
  readonly name: string;
  readonly columns: C;
  readonly key: readonly (keyof C & string)[];
  readonly nullable?: readonly Nullable[];
  readonly indexes?: Readonly<Record<string, readonly (keyof C & string)[]>>;
}): Table<RowFrom<C, Nullable>> => table as unknown as Table<RowFrom<C, Nullable>>;

export type KeyPart = string | number | bigint;
export type RowKey = readonly KeyPart[];

/** Which row a view is going to look at. */
export interface RowRef {
  readonly table: AnyTable;
  readonly key: RowKey;
}

export const rowRef = (table: AnyTable, ...key: KeyPart[]): RowRef => ({ table, key });

/** Values that columns must have. */
export type Match = Readonly<Record<string, KeyPart>>;

export const fitsMatch = (row: object, match: Match): boolean =>
  Object.entries(match).every(([column, value]) => (row as Record<string, KeyPart>)[column] === value);

/** Every row that is read or written passes through here and through `rowText`: no arrays, no callbacks. */
export function keyText(key: RowKey): string {
  let text = `${key[0]}`;
  for (let i = 1; i < key.length; i++) text += `\u0000${key[i]}`;
  return text;
}

/** The same text as that of the row's key. */
export function rowText(table: AnyTable, row: object): string {
  const { key } = table;
  const cells = row as Record<string, KeyPart>;
  let text = `${cells[key[0] as string]}`;
  for (let i = 1; i < key.length; i++) text += `\u0000${cells[key[i] as string]}`;
  return text;
}

export const keyOf = (table: AnyTable, row: object): RowKey =>
  table.key.map((column) => (row as Record<string, KeyPart>)[column] as KeyPart);

/** matchId → match_id, so that SQL written by hand reads as SQL does. */
export const columnName = (property: string): string =>
  property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
