import { argv, stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';
import { rebuild } from '../../projections/engine/rebuild.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { VIEWS } from './project.js';

// Started by the project benchmark, so that a build does not work in the memory that holds what its rivals are given. Every
// line on stdin is a round: both views are built, side by side. The answer is events a second.
const [folder = '', url = ''] = argv.slice(2);
const store = await LmdbEventStore.open(folder, { readOnly: true });
const db = await openDatabase(url);
const sink = new PostgresSink(db);
const count = await store.lastPosition();
for await (const _round of createInterface({ input: stdin })) {
  const startedMs = performance.now();
  await Promise.all(VIEWS.map((view) => rebuild({ view, sink, store, upcast })));
  stdout.write(`${(count / (performance.now() - startedMs)) * 1000}\n`);
}
await db.destroy();
await store.close();
