import { AgonError, randomIds } from '../../services/kernel/index.js';
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
import {
  type AnyTable,
  fitsMatch,
  type KeyPart,
  keyOf,
  keyText,
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
  private readonly wanted = new Map<string, BuildRequest>();
  private readonly held = new Set<string>();

  async serving(view: View): Promise<Standing | undefined> {
    return this.standings.get(view.name);
  }

  async load(table: AnyTable, keys: readonly RowKey[]): Promise<readonly object[]> {
    const rows = this.tables.get(table.name);
    return keys.map((key) => rows?.get(keyText(key))).filter((row) => row !== undefined);
  }

  async commit(view: View, from: Mark | undefined, to: number, commit: Commit): Promise<Mark> {
    const standing = this.standings.get(view.name);
    const same =
      (!from || from.generation === standing?.generation) && (standing?.version ?? view.version) === view.version;
    if (!same || (standing?.position ?? 0) !== (from?.position ?? 0)) throw movedFrom(view, from);
    for (const [table, added] of commit.added ?? []) this.write(table, added);
    for (const [table, keys] of commit.removed ?? []) {
      for (const key of keys) this.tables.get(table.name)?.delete(keyText(key));
    }
    for (const [table, changed] of commit.changes ?? []) this.write(table, changed);
    this.buried.set(view.name, [...(this.buried.get(view.name) ?? []), ...(commit.letters ?? [])]);
    const mark = { position: to, generation: standing?.generation ?? randomIds() };
    this.standings.set(view.name, { version: view.version, ...mark });
    return mark;
  }

  async sweep(view: View, from: Mark | undefined, to: number, swept: RowSweep, end: () => Commit): Promise<Mark> {
    const { table, match, order, take } = swept;
    const all = [...(this.tables.get(table.name)?.values() ?? [])].filter((row) => fitsMatch(row, match));
    const place = (row: object) => [(row as Record<string, KeyPart>)[order] as KeyPart];
    all.sort((a, b) => compare(place(a), place(b)));
    const made = new Map<AnyTable, object[]>();
    for (let at = 0; at < all.length; at += SWEEP_ROWS) {
      for (const [of, rows] of take(all.slice(at, at + SWEEP_ROWS))) made.set(of, [...(made.get(of) ?? []), ...rows]);
    }
    const commit = end();
    for (const [of, rows] of commit.added ?? []) made.set(of, [...(made.get(of) ?? []), ...rows]);
    return this.commit(view, from, to, { ...commit, added: made });
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

  async ask(view: View): Promise<void> {
    this.wanted.set(view.name, { version: view.version, status: this.wanted.get(view.name)?.status });
  }

  async asked(): Promise<ReadonlyMap<string, BuildRequest>> {
    return new Map(this.wanted);
  }

  async tell(view: View, status: BuildStatus): Promise<void> {
    const asked = this.wanted.get(view.name);
    if (asked) this.wanted.set(view.name, { ...asked, status });
  }

  async alone<T>(view: View, work: () => Promise<T>): Promise<T> {
    if (this.held.has(view.name)) throw alreadyBuilding(view);
    this.held.add(view.name);
    return work().finally(() => this.held.delete(view.name));
  }

  async building(view: View): Promise<Standing | undefined> {
    return this.builds.get(view.name)?.sink.standings.get(view.name);
  }

  async beside(view: View): Promise<Sink> {
    const build = this.builds.get(view.name);
    if (build?.version === view.version) return build.sink;
    const sink = new MemorySink();
    sink.standings.set(view.name, { version: view.version, position: 0, generation: randomIds() });
    this.builds.set(view.name, { version: view.version, sink });
    return sink;
  }

  async polish(): Promise<void> {}

  async swap(view: View): Promise<void> {
    const build = this.builds.get(view.name)?.sink;
    const [served, built] = [this.standings.get(view.name), build?.standings.get(view.name)];
    if (!build || !built || built.position < (served?.position ?? 0)) {
      throw new AgonError('CHECKPOINT.MOVED', `The build of ${view.name} is behind what serves.`);
    }
    for (const { name } of view.tables) this.tables.set(name, build.tables.get(name) ?? new Map());
    this.buried.set(view.name, build.buried.get(view.name) ?? []);
    this.standings.set(view.name, built);
    this.builds.delete(view.name);
    this.wanted.delete(view.name);
  }

  async abandon(view: View): Promise<void> {
    this.builds.delete(view.name);
    this.wanted.delete(view.name);
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
