import type { DataSource } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import { fromDatabase } from '../sinks/postgres.js';
import { type AnyTable, type ColumnType, columnName, type Table } from './table.js';

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** One a row, opaque: what comes after it, or before it, is the next page in that direction. */
  readonly cursors: readonly string[];
  /** The cursor of the last row; undefined when this was the last page. */
  readonly next: string | undefined;
  readonly hasPrevious: boolean;
}

export const PAGE_MAX = 200;

/** `first` after a cursor, or `last` before one. */
export interface PageRequest {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

/** In which order pages come. Together the columns are unique, and an index has them in this order. */
interface PageOrder<Row> {
  readonly order: readonly (keyof Row & string)[];
  readonly descending?: readonly (keyof Row & string)[];
}

interface PageQuery<Row> extends PageOrder<Row> {
  /** Where rows are found by way of another table: the join, and the name in it whose columns have the order. */
  readonly by?: { readonly join: string; readonly name: string };
  readonly where?: readonly string[];
  readonly values?: readonly unknown[];
}

/**
 * Keyset pages: a page starts where the last one ended, whatever was added in between, and page 1,000 costs as much as
 * page 1.
 */
export async function pageOf<Row extends object>(
  db: DataSource,
  table: Table<Row>,
  request: PageRequest,
  query: PageQuery<Row>,
): Promise<Page<Row>> {
  const cut = cutOf(table, request, query);
  const found = await select<Row>(db, table, cut.sql, cut.values, query.by?.join);
  return cut.page(found);
}

/**
 * The same page of several parents at once, in one statement. `on` says which rows are a parent's, whose key is
 * `parent.key`.
 */
export async function pagesOf<Row extends object>(
  db: DataSource,
  table: Table<Row>,
  parents: { readonly keys: readonly string[]; readonly on: string },
  request: PageRequest,
  query: PageQuery<Row>,
): Promise<Map<string, Page<Row>>> {
  const { where = [], values = [] } = query;
  const cut = cutOf(table, request, { ...query, where: [...where, parents.on], values: [...values, parents.keys] });
  assertText(cut.values.flat());
  const found: Record<string, string>[] = await db.query(
    `SELECT parent.key AS parent_key, child.* FROM unnest($${values.length + 1}::text[]) WITH ORDINALITY AS parent(key, place)
     CROSS JOIN LATERAL (SELECT ${table.name}.* FROM ${query.by?.join ?? table.name} ${cut.sql}) child ORDER BY parent.place, ${cut.orderBy}`,
    [...cut.values],
  );
  const rowsOf = new Map<string, Row[]>(parents.keys.map((key) => [key, []]));
  for (const row of found) rowsOf.get(row.parent_key ?? '')?.push(fromDatabase(table as AnyTable, row) as Row);
  return new Map([...rowsOf].map(([key, rows]) => [key, cut.page(rows)]));
}

/** The end of a statement that finds one row more than a page has, and what makes a page of the rows it finds. */
function cutOf<Row extends object>(table: Table<Row>, request: PageRequest, query: PageQuery<Row>) {
  const { size, backward } = sizeOf(request);
  const values = [...(query.values ?? [])];
  const where = [...(query.where ?? [])];
  const behind = (cursor: string | null | undefined, turned: boolean) => {
    if (cursor == null) return;
    const from = fromCursor(table, query, cursor).map((value) => `$${values.push(value)}`);
    where.push(beyond(table, query, from, turned));
  };
  behind(request.after, false);
  behind(request.before, true);
  const orders = query.order.map((property) => {
    return `${columnName(property)} ${isDescending(query, property) !== backward ? 'DESC' : 'ASC'}`;
  });
  const page = (found: readonly Row[]): Page<Row> => {
    const more = found.length > size;
    const rows = backward ? found.slice(0, size).reverse() : found.slice(0, size);
    const cursors = rows.map((row) => cursorOf(table, query, row));
    // What lies on the other side of the cursor that was given is not looked for: there was the row that gave it.
    const [hasNext, hasPrevious] = backward ? [request.before != null, more] : [more, request.after != null];
    return { rows, cursors, next: hasNext ? (cursors.at(-1) ?? undefined) : undefined, hasPrevious };
  };
  const condition = where.length > 0 ? `WHERE ${where.join(' AND ')}` : '';
  const inner = orders.map((order) => placeOf(query) + order).join(', ');
  return { sql: `${condition} ORDER BY ${inner} LIMIT ${size + 1}`, orderBy: orders.join(', '), values, page };
}

const placeOf = <Row>({ by }: PageQuery<Row>) => (by ? `${by.name}.` : '');

const isDescending = <Row>({ descending = [] }: PageOrder<Row>, property: keyof Row & string) =>
  descending.includes(property);

/**
 * Rows behind these values in the order of the page, or before them if it is turned. Written out, since PostgreSQL
 * compares rows of several columns in one direction only; the first comparison is what an index takes.
 */
function beyond<Row extends object>(
  table: Table<Row>,
  query: PageQuery<Row>,
  from: readonly string[],
  turned: boolean,
): string {
  const [property, ...rest] = query.order;
  if (property === undefined) return 'false';
  const [value, ...values] = from;
  const [column, typed] = [placeOf(query) + columnName(property), `${value}::${table.columns[property]}`];
  const sign = isDescending(query, property) !== turned ? '<' : '>';
  if (rest.length === 0) return `${column} ${sign} ${typed}`;
  const inner = beyond(table, { ...query, order: rest }, values, turned);
  return `${column} ${sign}= ${typed} AND (${column} ${sign} ${typed} OR ${inner})`;
}

function sizeOf({ first, last }: PageRequest): { size: number; backward: boolean } {
  if (first != null && last != null) {
    throw new AgonError('QUERY.BAD_PAGE', 'A page is the first or the last rows, not both.');
  }
  const [name, size] = last == null ? ['first', first ?? 20] : ['last', last];
  if (Number.isInteger(size) && size >= 1 && size <= PAGE_MAX) return { size, backward: last != null };
  throw new AgonError('QUERY.BAD_PAGE', `${name} is ${size}; a page has 1 to ${PAGE_MAX} rows.`);
}

/** Rows of a table, alone or in a join, with the rest of the statement given. */
export async function select<Row extends object>(
  db: DataSource,
  table: Table<Row>,
  rest: string,
  values: readonly unknown[] = [],
  join = table.name,
): Promise<Row[]> {
  assertText(values.flat());
  const rows: Record<string, string>[] = await db.query(`SELECT ${table.name}.* FROM ${join} ${rest}`, [...values]);
  return rows.map((row) => fromDatabase(table as AnyTable, row) as Row);
}

/** PostgreSQL's text has no NUL, and would say so in words of its own. */
function assertText(values: readonly unknown[]): void {
  if (!values.some((value) => typeof value === 'string' && /\0|\\u0000/.test(value))) return;
  throw new AgonError('QUERY.BAD_TEXT', 'A text has a NUL in it, and nothing that is kept here has.');
}

/** The cursor of a row, or of a place where no row has to be: all it takes is the columns of the order. */
export function cursorOf<Row extends object>(table: Table<Row>, { order }: PageOrder<Row>, row: Partial<Row>): string {
  const values = order.map((property) => `${row[property]}`);
  return Buffer.from(JSON.stringify([table.name, ...order, ...values])).toString('base64url');
}

/** A cursor says what it is of, so that one that another query gave out is not taken for one of this. */
function fromCursor<Row extends object>(table: Table<Row>, { order }: PageOrder<Row>, cursor: string): string[] {
  const parts = partsOf(cursor);
  const values = parts.slice(order.length + 1);
  const ours = JSON.stringify(parts.slice(0, order.length + 1)) === JSON.stringify([table.name, ...order]);
  const fits =
    values.length === order.length && order.every((property, i) => isOf(table.columns[property], values[i] ?? ''));
  if (ours && fits) return values;
  throw new AgonError('QUERY.BAD_CURSOR', `"${cursor}" is not a cursor that this query gave out.`);
}

function partsOf(cursor: string): string[] {
  try {
    const parts = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown;
    return Array.isArray(parts) && parts.every((part) => typeof part === 'string') ? parts : [];
  } catch {
    return [];
  }
}

const FORMS: Partial<Record<ColumnType, RegExp>> = {
  text: /^[^\0]*$/,
  int4: /^\d{1,9}$/,
  int8: /^\d{1,18}$/,
  float8: /^-?\d{1,9}(\.\d{1,20})?(e-\d{1,2})?$/,
};

const isOf = (type: ColumnType, value: string): boolean => FORMS[type]?.test(value) ?? false;
