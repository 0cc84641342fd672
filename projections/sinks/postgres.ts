import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { DataSource } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import {
  alreadyBuilding,
  type BuildRequest,
  type BuildStatus,
  type BuriedEvent,
  type Commit,
  type Mark,
  movedFrom,
  type RebuildingSink,
  type RowSweep,
  type Sink,
  type Standing,
  SWEEP_ROWS,
} from '../engine/sink.js';
import { type AnyTable, type Cell, type ColumnType, columnName, type RowKey, type Table } from '../engine/table.js';
import type { View } from '../engine/view.js';
import { BuildLocks } from './build-locks.js';
import { addIndexes, copyOf, schemaOf, swapIn } from './shadow.js';

/**
 * Rows that serve are on disk before they count as taken in, whatever the database's own setting: one that came back from a
 * crash without the last moments would be behind, and whoever had written them would not know until the next event. A
 * build goes on from what it finds, and is on disk when it is swapped in.
 */
const DURABLE = 'SET LOCAL synchronous_commit TO on';
const HASTY = 'SET LOCAL synchronous_commit TO off';

type Query = (sql: string, values?: unknown[]) => Promise<Record<string, Cell>[]>;
type Copy = (table: AnyTable, rows: readonly object[]) => Promise<void>;

/**
 * Rows in PostgreSQL. A batch is one transaction: rows that are new by COPY, rows that changed by unnest, one statement a
 * table, and the checkpoint.
 */
export class PostgresSink implements RebuildingSink {
  private readonly query: Query;
  private readonly locks: BuildLocks;

  constructor(
    private readonly db: DataSource,
    /** Where the tables are. A view that is being built has a schema of its own, with tables of the same names. */
    private readonly schema = 'public',
  ) {
    this.query = (sql, values) => db.query(sql, values);
    this.locks = new BuildLocks(db);
  }

  async serving(view: View): Promise<Standing | undefined> {
    const sql = `SELECT version, position, generation FROM ${this.schema}.checkpoints WHERE view = $1`;
    const [row] = await this.query(sql, [view.name]);
    return row && { version: Number(row.version), position: Number(row.position), generation: `${row.generation}` };
  }

  async load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]> {
    if (keys.length === 0) return [];
    const { some, on } = keysGiven(table);
    const rows = await this.query(
      `SELECT t.* FROM ${some} JOIN ${this.schema}.${table.name} t ON ${on}`,
      byColumn(table, keys),
    );
    return rows.map((row) => fromDatabase(table, row));
  }

  pack(table: AnyTable, rows: readonly object[]): Buffer {
    return linesOf(table, rows);
  }

  async commit(view: View, from: Mark | undefined, to: number, commit: Commit): Promise<Mark> {
    return this.transaction(async (query, copy) => {
      const mark = await move(query, view, from, to);
      await write(query, copy, view, commit);
      return mark;
    });
  }

  /** By a cursor: PostgreSQL sorts the rows, on its disk if there are many, and hands them over some at a time. */
  async sweep(view: View, from: Mark | undefined, to: number, swept: RowSweep, end: () => Commit): Promise<Mark> {
    const { table, match, order, take } = swept;
    const where = Object.keys(match).map((property, i) => `${columnName(property)} = $${i + 1}`);
    const all = `SELECT * FROM ${table.name} WHERE ${where.join(' AND ')} ORDER BY ${columnName(order)}`;
    return this.transaction(async (query, copy) => {
      const mark = await move(query, view, from, to);
      await query(`DECLARE swept NO SCROLL CURSOR FOR ${all}`, Object.values(match).map(String));
      for (;;) {
        const rows = await query(`FETCH ${SWEEP_ROWS} FROM swept`);
        if (rows.length === 0) break;
        const made = take(rows.map((row) => fromDatabase(table, row)));
        await write(query, copy, view, { changes: made });
      }
      await write(query, copy, view, end());
      return mark;
    });
  }

  async reset(view: View): Promise<void> {
    await this.transaction(async (query) => {
      for (const table of view.tables) await query(`TRUNCATE ${table.name}`);
      await query('DELETE FROM checkpoints WHERE view = $1', [view.name]);
      await query('DELETE FROM dead_letters WHERE view = $1', [view.name]);
    });
  }

  async rows<Row extends object>(table: Table<Row>): Promise<readonly Row[]> {
    const order = table.key.map((property) => columnName(property)).join(', ');
    const rows = await this.query(`SELECT * FROM ${this.schema}.${table.name} ORDER BY ${order}`);
    return rows.map((row) => fromDatabase(table, row) as Row);
  }

  async letters(view: View): Promise<readonly BuriedEvent[]> {
    const all = `SELECT * FROM ${this.schema}.dead_letters WHERE view = $1 ORDER BY position`;
    const rows = await this.query(all, [view.name]);
    return rows.map((row) => ({
      group: `projection.${view.name}`,
      position: Number(row.position),
      eventId: `${row.event_id}`,
      type: `${row.type}`,
      version: Number(row.version),
      code: `${row.code}`,
      message: `${row.message}`,
      attempts: 1,
    }));
  }

  async ask(view: View): Promise<void> {
    const sql = `INSERT INTO public.builds (view, version) VALUES ($1, $2)
      ON CONFLICT (view) DO UPDATE SET version = EXCLUDED.version`;
    await this.query(sql, [view.name, view.version]);
  }

  async asked(): Promise<ReadonlyMap<string, BuildRequest>> {
    const rows = await this.query('SELECT view, version, status FROM public.builds');
    return new Map(
      rows.map(({ view, version, status }) => {
        return [`${view}`, { version: Number(version), status: (status ?? undefined) as BuildStatus | undefined }];
      }),
    );
  }

  async tell(view: View, status: BuildStatus): Promise<void> {
    await this.query('UPDATE public.builds SET status = $2 WHERE view = $1', [view.name, JSON.stringify(status)]);
  }

  async alone<T>(view: View, work: () => Promise<T>): Promise<T> {
    if (!(await this.locks.take(view.name))) throw alreadyBuilding(view);
    return work().finally(() => this.locks.give(view.name));
  }

  async building(view: View): Promise<Standing | undefined> {
    const [found] = await this.query('SELECT to_regnamespace($1) IS NOT NULL AS there', [schemaOf(view)]);
    return found?.there ? new PostgresSink(this.db, schemaOf(view)).serving(view) : undefined;
  }

  async beside(view: View): Promise<Sink> {
    await this.transaction((query) => copyOf(query, view));
    return new PostgresSink(this.db, schemaOf(view));
  }

  async polish(view: View): Promise<void> {
    await this.transaction((query) => addIndexes(query, view));
  }

  async swap(view: View): Promise<void> {
    try {
      await this.transaction((query) => swapIn(query, view));
    } catch (error) {
      if (!/^(55P03|40P01)$/.test(codeOf(error))) throw error;
      throw new AgonError('PROJECTION.BUSY', `Readers hold on to the tables of ${view.name}.`, {}, { cause: error });
    }
  }

  async abandon(view: View): Promise<void> {
    await this.query(`DROP SCHEMA IF EXISTS ${schemaOf(view)} CASCADE`);
    await this.query('DELETE FROM public.builds WHERE view = $1', [view.name]);
  }

  /** Names without a schema mean this sink's own, also in what triggers do. */
  private async transaction<T>(work: (query: Query, copy: Copy) => Promise<T>): Promise<T> {
    const runner = this.db.createQueryRunner();
    const query: Query = (sql, values) => runner.query(sql, values);
    const copy: Copy = async (table, rows) => copyRows((await runner.connect()) as PoolClient, table, rows);
    try {
      await runner.startTransaction();
      await query(this.schema === 'public' ? DURABLE : `SET LOCAL search_path TO ${this.schema}, public; ${HASTY}`);
      const result = await work(query, copy);
      await runner.commitTransaction();
      return result;
    } catch (error) {
      // What broke the connection broke the transaction as well.
      await runner.rollbackTransaction().catch(() => {});
      throw refusal(error) ?? error;
    } finally {
      await runner.release();
    }
  }
}

/** The row lock comes first: it serialises two projectors of one view, and the second sees that it is late. */
async function move(query: Query, view: View, from: Mark | undefined, to: number): Promise<Mark> {
  if (!from) {
    const begin = 'INSERT INTO checkpoints (view, version, position) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING';
    await query(begin, [view.name, view.version]);
  }
  const moved = `WITH moved AS (UPDATE checkpoints SET position = $2 WHERE view = $1 AND position = $3 AND version = $4
    AND ($5::text IS NULL OR generation = $5) RETURNING generation) SELECT generation FROM moved`;
  const values = [view.name, to, from?.position ?? 0, view.version, from?.generation ?? null];
  const [found] = await query(moved, values);
  if (!found) throw movedFrom(view, from);
  return { position: to, generation: `${found.generation}` };
}

async function write(query: Query, copy: Copy, view: View, commit: Commit): Promise<void> {
  for (const [table, rows] of commit.added ?? []) await copy(table, rows);
  for (const [table, keys] of commit.removed ?? []) await query(deletion(table), byColumn(table, keys));
  for (const [table, rows] of commit.changes ?? []) {
    if (rows.length > 0) await query(upsert(table), columnsOf(table, rows));
  }
  for (const letter of commit.letters ?? []) await query(BURY, letterValues(view, letter));
}

async function copyRows(client: PoolClient, table: AnyTable, rows: readonly object[]): Promise<void> {
  const columns = propertiesOf(table).map(([property]) => columnName(property));
  const packed = rows.filter((row) => Buffer.isBuffer(row));
  const loose = rows.filter((row) => !Buffer.isBuffer(row));
  const sent = client.query(copyFrom(`COPY ${table.name} (${columns.join(', ')}) FROM STDIN`));
  sent.end(Buffer.concat([...packed, linesOf(table, loose)]));
  await finished(sent);
}

function codeOf(error: unknown): string {
  const { driverError, code } = error as { driverError?: { code?: string }; code?: string };
  return driverError?.code ?? code ?? '';
}

/** PostgreSQL's classes for data that it will never take, however often it is offered. */
function refusal(error: unknown): AgonError | undefined {
  if (!/^(22|23|P0001)/.test(codeOf(error))) return undefined;
  return new AgonError('SINK.REFUSED', `PostgreSQL refuses it: ${(error as Error).message}`, {}, { cause: error });
}

const BURY = `INSERT INTO dead_letters (view, position, event_id, type, version, code, message)
  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (view, position) DO NOTHING`;

const letterValues = (view: View, { position, eventId, type, version, code, message }: BuriedEvent) =>
  [view.name, position, eventId, type, version, code, message].map((value) => `${value}`.replaceAll('\0', '\uFFFD'));

const propertiesOf = (table: AnyTable) => Object.entries(table.columns);

/** Keys as a table of their own, and what makes a row of `t` one of theirs. */
function keysGiven(table: AnyTable): { some: string; on: string } {
  const columns = table.key.map((property) => columnName(property));
  const arrays = table.key.map((property, i) => `$${i + 1}::${table.columns[property]}[]`);
  const on = columns.map((column) => `t.${column} = k.${column}`).join(' AND ');
  return { some: `unnest(${arrays.join(', ')}) AS k(${columns.join(', ')})`, on };
}

const byColumn = (table: AnyTable, keys: readonly RowKey[]) =>
  table.key.map((_property, i) => keys.map((key) => key[i]));

function deletion(table: AnyTable): string {
  const { some, on } = keysGiven(table);
  return `DELETE FROM ${table.name} t USING ${some} WHERE ${on}`;
}

/** Inserts any number of rows in one statement: nearly all that a commit writes goes through it. */
export function insertion(table: AnyTable): string {
  const properties = propertiesOf(table);
  const columns = properties.map(([property]) => columnName(property));
  const values = properties.map(([property, type], i) => {
    // An array of jsonb would be taken apart by unnest; it travels as text.
    return type === 'jsonb' ? `${columnName(property)}::jsonb` : (columns[i] as string);
  });
  const arrays = properties.map(([, type], i) => `$${i + 1}::${type === 'jsonb' ? 'text' : type}[]`);
  return (
    `INSERT INTO ${table.name} (${columns.join(', ')}) ` +
    `SELECT ${values.join(', ')} FROM unnest(${arrays.join(', ')}) AS u(${columns.join(', ')})`
  );
}

export function upsert(table: AnyTable): string {
  const keys = table.key.map((property) => columnName(property));
  const rest = propertiesOf(table)
    .map(([property]) => columnName(property))
    .filter((column) => !keys.includes(column));
  const update = rest.length > 0 ? `UPDATE SET ${rest.map((c) => `${c} = EXCLUDED.${c}`).join(', ')}` : 'NOTHING';
  return `${insertion(table)} ON CONFLICT (${keys.join(', ')}) DO ${update}`;
}

/**
 * Rows as one array a column, in PostgreSQL's own text. The driver would quote and escape every cell by itself, numbers
 * too, and take longer for that than the views for everything they do.
 */
export function columnsOf(table: AnyTable, rows: readonly object[]): string[] {
  return propertiesOf(table).map(([property, type]) => {
    const cellText = writers[type];
    const cells = rows.map((row) => {
      const cell = (row as Record<string, Cell | undefined>)[property] ?? null;
      return cell === null ? 'NULL' : cellText(cell);
    });
    return `{${cells.join(',')}}`;
  });
}

/** Rows as the lines that COPY reads: the cheapest way in, for PostgreSQL and for us. */
function linesOf(table: AnyTable, rows: readonly object[]): Buffer {
  const columns = propertiesOf(table).map(([property, type]) => [property, lineWriters[type]] as const);
  let text = '';
  for (const row of rows) {
    let separator = '';
    for (const [property, cellText] of columns) {
      const cell = (row as Record<string, Cell | undefined>)[property] ?? null;
      text += separator + (cell === null ? '\\N' : cellText(cell));
      separator = '\t';
    }
    text += '\n';
  }
  return Buffer.from(text);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\0': '\uFFFD',
};

const escaped = (text: string) =>
  /[\\\n\r\t\0]/.test(text) ? text.replace(/[\\\n\r\t\0]/g, (char) => ESCAPES[char] as string) : text;

/** PostgreSQL's text has no NUL. */
function quoted(text: string): string {
  if (!/["\\\0]/.test(text)) return `"${text}"`;
  return `"${text.replaceAll('\0', '\uFFFD').replace(/["\\]/g, '\\$&')}"`;
}

const plain = (cell: Cell) => `${cell}`;

const writers: Readonly<Record<ColumnType, (cell: Cell) => string>> = {
  jsonb: (cell) => quoted(JSON.stringify(cell).replaceAll('\\u0000', '\uFFFD')),
  text: (cell) => quoted(cell as string),
  timestamptz: (cell) => quoted(cell as string),
  int4: plain,
  int8: plain,
  numeric: plain,
  float8: plain,
  bool: plain,
};

const lineWriters: typeof writers = {
  ...writers,
  jsonb: (cell) => escaped(JSON.stringify(cell).replaceAll('\\u0000', '\uFFFD')),
  text: (cell) => escaped(cell as string),
  timestamptz: (cell) => cell as string,
};

/** A database row as the view's own row: camel case, bigint for int8, ISO 8601 for times. */
export function fromDatabase(table: AnyTable, row: Record<string, Cell>): object {
  const result: Record<string, Cell> = {};
  for (const [property, type] of propertiesOf(table)) {
    const cell = row[columnName(property)] ?? null;
    if (cell !== null && (type === 'int8' || type === 'numeric')) result[property] = BigInt(cell as string);
    else result[property] = cell instanceof Date ? cell.toISOString() : cell;
  }
  return result;
}
