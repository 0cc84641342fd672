import { writeSync } from 'node:fs';
import { argv } from 'node:process';
import { Projections } from '../../projections/engine/projections.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast, views } from '../../projections/views.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import type { Moment } from './rebuilds.js';
import { between, seededRandom } from './workload.js';

// Started by the chaos run, and killed by it: follows a log in small batches, and rebuilds one view after the other.
const [folder = '', databaseUrl = '', run = '', raised = '0'] = argv.slice(2);
const random = seededRandom('rebuilder', run);
const tell = (moment: Moment) => writeSync(1, `${moment}\n`);

const store = await LmdbEventStore.open(folder, { readOnly: true });
const projections = new Projections({
  views: views.map((view) => ({ ...view, version: view.version + Number(raised) })),
  sink: new PostgresSink(await openDatabase(databaseUrl)),
  store,
  upcast,
  makeBus: (checkpoints) => new EmbeddedBus(store, checkpoints),
  batchEvents: between(random, 3, 40),
  buildBatchEvents: between(random, 5, 80),
  onCommitted: () => tell('batching'),
  onProgress: (_view, { phase }) => tell(phase),
  onBuildFailed: (_view, error) => writeSync(2, `${String(error)}\n`),
});
await projections.start();
for (;;) {
  // Whoever waits for a batch must not wait for ever where there is nothing left to catch up with.
  tell('batching');
  await projections.rebuild(views[between(random, 0, views.length - 1)]?.name ?? '');
}
