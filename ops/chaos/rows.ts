import { hash } from 'node:crypto';
import { Projections } from '../../projections/engine/projections.js';
import { Projector, type Sink } from '../../projections/engine/projector.js';
import type { View } from '../../projections/engine/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast, views } from '../../projections/views.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { canonical, type EventStore, type RecordedEvent } from '../../services/kernel/index.js';

type Choices = Partial<ConstructorParameters<typeof Projections>[0]>;

/** Projections that follow this log, as they do in the arena. */
export const projectionsOf = (store: EventStore, sink: PostgresSink, choices: Choices = {}): Projections =>
  new Projections({ views, sink, store, upcast, makeBus: (behind) => new EmbeddedBus(store, behind), ...choices });

/** Lets the projections follow a log; a kill ends them wherever they are. */
export async function followWithProjections(store: EventStore, databaseUrl: string): Promise<void> {
  await projectionsOf(store, new PostgresSink(await openDatabase(databaseUrl))).start();
}

/** Catches up where the kill left the rows, and compares them with rows built from the beginning. */
export async function compareWithRebuild(log: readonly RecordedEvent[], databaseUrl: string): Promise<string[]> {
  const database = await openDatabase(databaseUrl);
  try {
    const kept = new PostgresSink(database);
    await project(kept, log, views);
    return await rowFaults(kept, await rebuiltFrom(log));
  } finally {
    await database.destroy();
  }
}

/** The rows that the log alone gives. */
export async function rebuiltFrom(log: readonly RecordedEvent[], of: readonly View[] = views): Promise<MemorySink> {
  const rebuilt = new MemorySink();
  await project(rebuilt, log, of);
  return rebuilt;
}

export async function rowFaults(kept: Sink, rebuilt: Sink, of: readonly View[] = views): Promise<string[]> {
  const faults: string[] = [];
  for (const view of of) {
    const [rows, expected] = await Promise.all([hashOf(kept, view), hashOf(rebuilt, view)]);
    if (rows !== expected) faults.push(`The rows of ${view.name} are not those of a rebuild from scratch.`);
  }
  return faults;
}

/** One text for all rows of a view: two sinks with the same hash hold the same rows. */
async function hashOf(sink: Sink, view: View): Promise<string> {
  const plain = (_key: string, cell: unknown) => (typeof cell === 'bigint' ? cell.toString() : cell);
  const tables = await Promise.all(view.tables.map((table) => sink.rows(table)));
  return hash('sha256', canonical(JSON.parse(JSON.stringify(tables, plain))));
}

async function project(sink: Sink, log: readonly RecordedEvent[], of: readonly View[]): Promise<void> {
  for (const view of of) await new Projector(view, sink, upcast).project(log);
}
