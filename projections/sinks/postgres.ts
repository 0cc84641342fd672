import type { DataSource, EntityManager } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import type { Also, BuriedEvent, RebuildingSink, Sink, Standing } from '../engine/sink.js';
import {
  type AnyTable,
  type Cell,
  type ColumnType,
  columnName,
  type Match,
  type RowKey,
  type Table,
} from '../engine/table.js';
import type { View } from '../engine/view.js';
import { addIndexes, copyOf, schemaOf, swapIn } from './shadow.js';

type Query = (sql: string, values?: unknown[]) => Promise<Record<string, Cell>[]>;

/** Rows in PostgreSQL. A batch is one transaction: folded rows by unnest, one statement a table, and the checkpoint. */
export class PostgresSink implements RebuildingSink {
  private readonly query: Query;

  constructor(
    private readonly db: DataSource,
    /** Where the tables are. A view that is being built has a schema of its own, with tables of the same names. */
    private readonly schema = 'public',
  ) {
    this.query = (sql, values) => db.query(sql, values);
  }

  /** A view whose version was raised starts over: its rows follow from other rules than these. */
  async checkpoint(view: View): Promise<number> {
    const standing = await this.serving(view);
    if (standing && standing.version !== view.version) await this.reset(view);
    return standing?.version === view.version ? standing.position : 0;
  }

  async load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]> {
    if (keys.length === 0) return [];
    const { columns, arrays } = keyArrays(table);
    const on = columns.map((column) => `t.${column} = k.${column}`).join(' AND ');
    const rows = await this.query(
      `SELECT t.* FROM unnest(${arrays}) AS k(${columns.join(', ')}) JOIN ${this.named(table)} t ON ${on}`,
      byColumn(table, keys),
    );
    return rows.map((row) => fromDatabase(table, row));
  }

  async find(table: AnyTable, match: Match): Promise<readonly object[]> {
    const where = Object.keys(match).map((property, i) => `${columnName(property)} = $${i + 1}`);
    const rows = await this.query(
      `SELECT * FROM ${this.named(table)} WHERE ${where.join(' AND ')}`,
      Object.values(match).map(String),
    );
    return rows.map((row) => fromDatabase(table, row));
  }

  async commit(
    view: View,
    from: number,
    to: number,
    changes: ReadonlyMap<AnyTable, readonly object[]>,
    also: Also = {},
  ): Promise<void> {
    await this.transaction(async (query) => {
      // The row lock comes first: it serialises two projectors of one view, and the second sees that it is late.
      if (from === 0) {
        await query(`INSERT INTO checkpoints (view, version, position) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`, [
          view.name,
          view.version,
        ]);
      }
      const moved = `WITH moved AS (UPDATE checkpoints SET position = $2 WHERE view = $1 AND position = $3 AND version = $4
        RETURNING 1) SELECT count(*)::int AS n FROM moved`;
      const [found] = await query(moved, [view.name, to, from, view.version]);
      if (found?.n !== 1) throw new AgonError('CHECKPOINT.MOVED', `${view.name} is no longer at position ${from}.`);
      for (const [table, rows] of also.added ?? []) await query(insertion(table), columnsOf(table, rows));
      for (const [table, keys] of also.removed ?? []) await query(deletion(table), byColumn(table, keys));
      for (const [table, rows] of changes) await query(upsert(table), columnsOf(table, rows));
      for (const letter of also.letters ?? []) await query(BURY, letterValues(view, letter));
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
    const rows = await this.query(`SELECT * FROM ${this.named(table)} ORDER BY ${order}`);
    return rows.map((row) => fromDatabase(table, row) as Row);
  }

  async letters(view: View): Promise<readonly BuriedEvent[]> {
    const rows = await this.query(`SELECT * FROM ${this.schema}.dead_letters WHERE view = $1 ORDER BY position`, [
      view.name,
    ]);
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

  async serving(view: View): Promise<Standing | undefined> {
    const [row] = await this.query(`SELECT version, position FROM ${this.schema}.checkpoints WHERE view = $1`, [
      view.name,
    ]);
    return row && { version: Number(row.version), position: Number(row.position) };
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
    await this.transaction((query) => swapIn(query, view));
  }

  async abandon(view: View): Promise<void> {
    await this.query(`DROP SCHEMA IF EXISTS ${schemaOf(view)} CASCADE`);
  }

  private named(table: AnyTable): string {
    return `${this.schema}.${table.name}`;
  }

  /** Names without a schema mean this sink's own, also in what triggers do. */
  private async transaction(work: (query: Query) => Promise<void>): Promise<void> {
    try {
      await this.db.transaction(async (manager: EntityManager) => {
        const query: Query = (sql, values) => manager.query(sql, values);
        if (this.schema !== 'public') await query(`SET LOCAL search_path TO ${this.schema}, public`);
        await work(query);
      });
    } catch (error) {
      throw refusal(error) ?? error;
    }
  }
}

/** PostgreSQL's classes for data that it will never take, however often it is offered. */
function refusal(error: unknown): AgonError | undefined {
  const { driverError } = error as { driverError?: { code?: string } };
  if (!/^(22|23|P0001)/.test(driverError?.code ?? '')) return undefined;
  return new AgonError('SINK.REFUSED', `PostgreSQL refuses it: ${(error as Error).message}`, {}, { cause: error });
}

const BURY = `INSERT INTO dead_letters (view, position, event_id, type, version, code, message)
  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (view, position) DO NOTHING`;

const letterValues = (view: View, { position, eventId, type, version, code, message }: BuriedEvent) =>
  [view.name, position, eventId, type, version, code, message].map((value) => `${value}`.replaceAll('\0', '\uFFFD'));

const propertiesOf = (table: AnyTable) => Object.entries(table.columns);

function keyArrays(table: AnyTable): { columns: string[]; arrays: string } {
  const columns = table.key.map((property) => columnName(property));
  return { columns, arrays: table.key.map((property, i) => `$${i + 1}::${table.columns[property]}[]`).join(', ') };
}

const byColumn = (table: AnyTable, keys: readonly RowKey[]) =>
  table.key.map((_property, i) => keys.map((key) => key[i]));

function deletion(table: AnyTable): string {
  const { columns, arrays } = keyArrays(table);
  const on = columns.map((column) => `t.${column} = k.${column}`).join(' AND ');
  return `DELETE FROM ${table.name} t USING unnest(${arrays}) AS k(${columns.join(', ')}) WHERE ${on}`;
}

/** The statement that the hot path stands on: any number of rows in one, whatever table it is. */
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
