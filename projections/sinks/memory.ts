import { AgonError } from '../../services/kernel/index.js';
import type { Also, BuriedEvent, RebuildingSink, Sink, Standing } from '../engine/sink.js';
import {
  type AnyTable,
  fitsMatch,
  type KeyPart,
  keyOf,
  keyText,
  type Match,
  type RowKey,
  rowText,
  type Table,
} from '../engine/table.js';
import type { View } from '../engine/view.js';

/** Rows in memory: for the command line's offline reading, for rebuild comparisons and for tests. */
export class MemorySink implements RebuildingSink {
  private readonly standings = new Map<string, Standing>();
  private readonly buried = new Map<string, readonly BuriedEvent[]>();
  private readonly tables = new Map<string, Map<string, object>>();
  private readonly builds = new Map<string, { version: number; sink: MemorySink }>();

  async checkpoint(view: View): Promise<number> {
    const standing = this.standings.get(view.name);
    if (standing && standing.version !== view.version) await this.reset(view);
    return this.standings.get(view.name)?.position ?? 0;
  }

  async load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]> {
    const rows = this.tables.get(table.name);
    return keys.map((key) => rows?.get(keyText(key))).filter((row) => row !== undefined);
  }

  async find(table: AnyTable, match: Match): Promise<readonly object[]> {
    return [...(this.tables.get(table.name)?.values() ?? [])].filter((row) => fitsMatch(row, match));
  }

  async commit(
    view: View,
    from: number,
    to: number,
    changes: ReadonlyMap<AnyTable, readonly object[]>,
    also: Also = {},
  ): Promise<void> {
    if ((this.standings.get(view.name)?.position ?? 0) !== from) {
      throw new AgonError('CHECKPOINT.MOVED', `${view.name} is no longer at position ${from}.`);
    }
    for (const [table, added] of also.added ?? []) this.write(table, added);
    for (const [table, keys] of also.removed ?? []) {
      for (const key of keys) this.tables.get(table.name)?.delete(keyText(key));
    }
    for (const [table, changed] of changes) this.write(table, changed);
    this.buried.set(view.name, [...(this.buried.get(view.name) ?? []), ...(also.letters ?? [])]);
    this.standings.set(view.name, { version: view.version, position: to });
  }

  async reset(view: View): Promise<void> {
    this.standings.delete(view.name);
    this.buried.delete(view.name);
    for (const table of view.tables) this.tables.delete(table.name);
  }

  async rows<Row extends object>(table: Table<Row>): Promise<readonly Row[]> {
    const rows = [...(this.tables.get(table.name)?.values() ?? [])] as Row[];
    return rows.sort((a, b) => compare(keyOf(table, a), keyOf(table, b)));
  }

  async letters(view: View): Promise<readonly BuriedEvent[]> {
    return this.buried.get(view.name) ?? [];
  }

  async serving(view: View): Promise<Standing | undefined> {
    return this.standings.get(view.name);
  }

  async building(view: View): Promise<Standing | undefined> {
    const build = this.builds.get(view.name);
    return build && { version: build.version, position: await build.sink.checkpoint(view) };
  }

  async beside(view: View): Promise<Sink> {
    const build = this.builds.get(view.name);
    if (build?.version === view.version) return build.sink;
    const sink = new MemorySink();
    this.builds.set(view.name, { version: view.version, sink });
    return sink;
  }

  async polish(): Promise<void> {}

  async swap(view: View): Promise<void> {
    const build = this.builds.get(view.name)?.sink;
    const [served, built] = [this.standings.get(view.name), build?.standings.get(view.name)];
    if (!build || (built?.position ?? 0) < (served?.position ?? 0)) {
      throw new AgonError('CHECKPOINT.MOVED', `The build of ${view.name} is behind what serves.`);
    }
    for (const { name } of view.tables) this.tables.set(name, build.tables.get(name) ?? new Map());
    this.buried.set(view.name, build.buried.get(view.name) ?? []);
    this.standings.set(view.name, built ?? { version: view.version, position: 0 });
    this.builds.delete(view.name);
  }

  async abandon(view: View): Promise<void> {
    this.builds.delete(view.name);
  }

  private write(table: AnyTable, changed: readonly object[]): void {
    const rows = this.tables.get(table.name) ?? new Map<string, object>();
    this.tables.set(table.name, rows);
    for (const row of changed) rows.set(rowText(table, row), row);
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
