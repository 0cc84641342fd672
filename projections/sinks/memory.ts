import { AgonError } from '../../services/kernel/index.js';
import type { Sink } from '../engine/projector.js';
import { type AnyTable, type KeyPart, keyOf, keyText, type RowKey, type Table } from '../engine/table.js';
import type { View } from '../engine/view.js';

/** Rows in memory: for the command line's offline reading, for rebuild comparisons and for tests. */
export class MemorySink implements Sink {
  private readonly positions = new Map<string, number>();
  private readonly versions = new Map<string, number>();
  private readonly tables = new Map<string, Map<string, object>>();

  async checkpoint(view: View): Promise<number> {
    if ((this.versions.get(view.name) ?? view.version) !== view.version) await this.reset(view);
    return this.positions.get(view.name) ?? 0;
  }

  async load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]> {
    const rows = this.tables.get(table.name);
    return keys.map((key) => rows?.get(keyText(key))).filter((row) => row !== undefined);
  }

  async commit(view: View, from: number, to: number, changes: ReadonlyMap<AnyTable, readonly object[]>): Promise<void> {
    if ((this.positions.get(view.name) ?? 0) !== from) {
      throw new AgonError('CHECKPOINT.MOVED', `${view.name} is no longer at position ${from}.`);
    }
    for (const [table, changed] of changes) {
      const rows = this.tables.get(table.name) ?? new Map<string, object>();
      this.tables.set(table.name, rows);
      for (const row of changed) rows.set(keyText(keyOf(table, row)), row);
    }
    this.positions.set(view.name, to);
    this.versions.set(view.name, view.version);
  }

  async reset(view: View): Promise<void> {
    this.positions.delete(view.name);
    this.versions.delete(view.name);
    for (const table of view.tables) this.tables.delete(table.name);
  }

  async rows<Row extends object>(table: Table<Row>): Promise<readonly Row[]> {
    const rows = [...(this.tables.get(table.name)?.values() ?? [])] as Row[];
    return rows.sort((a, b) => compare(keyOf(table, a), keyOf(table, b)));
  }
}

/** Numbers by value, text by code units: the order of the C collation that our PostgreSQL uses. */
function compare(a: RowKey, b: RowKey): number {
  for (let i = 0; i < a.length; i++) {
    const [left, right] = [a[i] as KeyPart, b[i] as KeyPart];
    if (left < right) return -1;
    if (left > right) return 1;
  }
  return 0;
}
