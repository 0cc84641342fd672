import type { DataSource } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import { fromDatabase } from '../sinks/postgres.js';
import { type AnyTable, type ColumnType, columnName, type Table } from './table.js';

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Opaque; undefined when this was the last page. */
  readonly next: string | undefined;
}

export const PAGE_MAX = 200;

export interface PageRequest {
  readonly first?: number | undefined;
  readonly after?: string | undefined;
}

/**
 * Keyset pages: a page starts where the last one ended, whatever was added in between, and page 1,000 costs as much as
 * page 1. `order` must be unique and indexed.
 */
export async function pageOf<Row extends object>(
  db: DataSource,
  table: Table<Row>,
  request: PageRequest,
  query: { order: keyof Row & string; descending?: boolean; where?: readonly string[]; values?: readonly unknown[] },
): Promise<Page<Row>> {
  const first = pageSize(request);
  const column = columnName(query.order);
  const values = [...(query.values ?? [])];
  const where = [...(query.where ?? [])];
  // GraphQL says null for what is left out by name.
  if (request.after != null) {
    values.push(fromCursor(request.after, table.columns[query.order]));
    where.push(`${column} ${query.descending ? '<' : '>'} $${values.length}`);
  }
  const found = await select<Row>(
    db,
    table,
    `${where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''} ORDER BY ${column} ${query.descending ? 'DESC' : 'ASC'} ` +
      `LIMIT ${first + 1}`,
    values,
  );
  const rows = found.slice(0, first);
  const last = rows.at(-1);
  return { rows, next: found.length > first && last ? toCursor(last[query.order]) : undefined };
}

export function pageSize(request: PageRequest): number {
  const first = request.first ?? 20;
  if (Number.isInteger(first) && first >= 1 && first <= PAGE_MAX) return first;
  throw new AgonError('QUERY.BAD_PAGE', `first is ${first}; a page has 1 to ${PAGE_MAX} rows.`);
}

/** Rows of a table, with the rest of the statement given. */
export async function select<Row extends object>(
  db: DataSource,
  table: Table<Row>,
  rest: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const rows: Record<string, string>[] = await db.query(`SELECT * FROM ${table.name} ${rest}`, [...values]);
  return rows.map((row) => fromDatabase(table as AnyTable, row) as Row);
}

export const toCursor = (value: unknown) => Buffer.from(String(value)).toString('base64url');

function fromCursor(cursor: string, type: ColumnType): string {
  const value = Buffer.from(cursor, 'base64url').toString();
  const fits = type === 'text' ? value !== '' : /^\d{1,18}$/.test(value);
  if (!fits || toCursor(value) !== cursor) throw badCursor(cursor);
  return value;
}

export const badCursor = (cursor: string) =>
  new AgonError('QUERY.BAD_CURSOR', `"${cursor}" is not a cursor that this query gave out.`);
