import { hash } from 'node:crypto';
import { Projections } from '../../projections/engine/projections.js';
import { Projector, type Sink } from '../../projections/engine/projector.js';
import type { View } from '../../projections/engine/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast, views } from '../../projections/views.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { type Checkpoints, canonical, type EventStore, type RecordedEvent } from '../../services/kernel/index.js';

/** Lets the projections follow this log, as they do in the arena; a kill ends them wherever they are. */
export async function followWithProjections(store: EventStore, databaseUrl: string): Promise<void> {
  const sink = new PostgresSink(await openDatabase(databaseUrl));
  const makeBus = (checkpoints: Checkpoints) => new EmbeddedBus(store, checkpoints);
  await new Projections({ views, sink, store, upcast, makeBus }).start();
}

/** Catches up where the kill left the rows, and compares them with rows built from the beginning. */
export async function compareWithRebuild(log: readonly RecordedEvent[], databaseUrl: string): Promise<string[]> {
  const database = await openDatabase(databaseUrl);
  try {
    const kept = new PostgresSink(database);
    const rebuilt = new MemorySink();
    await project(kept, log);
    await project(rebuilt, log);
    const faults: string[] = [];
    for (const view of views) {
      const [rows, expected] = await Promise.all([hashOf(kept, view), hashOf(rebuilt, view)]);
      if (rows !== expected) faults.push(`The rows of ${view.name} are not those of a rebuild from scratch.`);
    }
    return faults;
  } finally {
    await database.destroy();
  }
}

/** One text for all rows of a view: two sinks with the same hash hold the same rows. */
export async function hashOf(sink: Sink, view: View): Promise<string> {
  const plain = (_key: string, cell: unknown) => (typeof cell === 'bigint' ? cell.toString() : cell);
  const tables = await Promise.all(view.tables.map((table) => sink.rows(table)));
  return hash('sha256', canonical(JSON.parse(JSON.stringify(tables, plain))));
}

async function project(sink: Sink, log: readonly RecordedEvent[]): Promise<void> {
  for (const view of views) await new Projector(view, sink, upcast).project(log);
}
