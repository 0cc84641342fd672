import type { DataSource, QueryRunner } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import type { Sink } from '../engine/projector.js';
import { type AnyTable, type Cell, columnName, type RowKey, type Table } from '../engine/table.js';
import type { View } from '../engine/view.js';

/** Rows in PostgreSQL. A batch is one transaction: folded rows by unnest, one statement a table, and the checkpoint. */
export class PostgresSink implements Sink {
  constructor(private readonly db: DataSource) {}

  /** A view whose version was raised starts over: its rows follow from other rules than these. */
  async checkpoint(view: View): Promise<number> {
    const [row] = await this.db.query('SELECT version, position FROM checkpoints WHERE view = $1', [view.name]);
    if (row && row.version !== view.version) await this.reset(view);
    return row?.version === view.version ? Number(row.position) : 0;
  }

  async load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]> {
    if (keys.length === 0) return [];
    const columns = table.key.map((property) => columnName(property));
    const arrays = table.key.map((property, i) => `$${i + 1}::${table.columns[property]}[]`);
    const on = columns.map((column) => `t.${column} = k.${column}`).join(' AND ');
    const rows: Record<string, Cell>[] = await this.db.query(
      `SELECT t.* FROM unnest(${arrays.join(', ')}) AS k(${columns.join(', ')}) JOIN ${table.name} t ON ${on}`,
      table.key.map((_property, i) => keys.map((key) => key[i])),
    );
    return rows.map((row) => fromDatabase(table, row));
  }

  async commit(view: View, from: number, to: number, changes: ReadonlyMap<AnyTable, readonly object[]>): Promise<void> {
    await this.db.transaction(async ({ queryRunner }) => {
      const runner = queryRunner as QueryRunner;
      for (const [table, rows] of changes) await runner.query(upsert(table), columnsOf(table, rows));
      // The row lock serialises two projectors of one view; the one that comes second sees that it is late.
      if (from === 0) {
        const start = `INSERT INTO checkpoints (view, version, position) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`;
        await runner.query(start, [view.name, view.version]);
      }
      const [moved] = await runner.query(
        'UPDATE checkpoints SET position = $2 WHERE view = $1 AND position = $3 RETURNING position',
        [view.name, to, from],
      );
      if (moved.length !== 1) throw new AgonError('CHECKPOINT.MOVED', `${view.name} is no longer at position ${from}.`);
    });
  }

  async reset(view: View): Promise<void> {
    await this.db.transaction(async (manager) => {
      for (const table of view.tables) await manager.query(`TRUNCATE ${table.name}`);
      await manager.query('DELETE FROM checkpoints WHERE view = $1', [view.name]);
    });
  }

  async rows<Row extends object>(table: Table<Row>): Promise<readonly Row[]> {
    const order = table.key.map((property) => columnName(property)).join(', ');
    const rows: Record<string, Cell>[] = await this.db.query(`SELECT * FROM ${table.name} ORDER BY ${order}`);
    return rows.map((row) => fromDatabase(table, row) as Row);
  }
}

const propertiesOf = (table: AnyTable) => Object.entries(table.columns);

function upsert(table: AnyTable): string {
  const properties = propertiesOf(table);
  const columns = properties.map(([property]) => columnName(property));
  const values = properties.map(([property, type], i) => {
    // An array of jsonb would be taken apart by unnest; it travels as text.
    return type === 'jsonb' ? `${columnName(property)}::jsonb` : (columns[i] as string);
  });
  const arrays = properties.map(([, type], i) => `$${i + 1}::${type === 'jsonb' ? 'text' : type}[]`);
  const keys = table.key.map((property) => columnName(property));
  const rest = columns.filter((column) => !keys.includes(column));
  const update = rest.length > 0 ? `UPDATE SET ${rest.map((c) => `${c} = EXCLUDED.${c}`).join(', ')}` : 'NOTHING';
  return (
    `INSERT INTO ${table.name} (${columns.join(', ')}) ` +
    `SELECT ${values.join(', ')} FROM unnest(${arrays.join(', ')}) AS u(${columns.join(', ')}) ` +
    `ON CONFLICT (${keys.join(', ')}) DO ${update}`
  );
}

function columnsOf(table: AnyTable, rows: readonly object[]): unknown[][] {
  return propertiesOf(table).map(([property, type]) =>
    rows.map((row) => {
      const cell = (row as Record<string, Cell>)[property] ?? null;
      if (cell === null) return null;
      if (type === 'jsonb') return JSON.stringify(cell).replaceAll('\\u0000', '\uFFFD');
      if (type === 'text') return (cell as string).replaceAll('\0', '\uFFFD');
      return type === 'int8' || type === 'numeric' ? cell.toString() : cell;
    }),
  );
}

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
