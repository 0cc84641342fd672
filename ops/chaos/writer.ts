import { writeSync } from 'node:fs';
import { argv } from 'node:process';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { createHandle, invariant, seededIds } from '../../services/kernel/index.js';
import type { Acknowledged, Line } from './protocol.js';
import { commandOf, errand, type Sent, seededRandom } from './workload.js';

// Started by the chaos run, and killed by it. Writes on and on, and tells the pipe at once what it was promised.
const PIPE = 3;
const WRITERS = 12;
const REPEATS = 0.05;

const [folder = '', run = '', databaseUrl] = argv.slice(2);
const store = await LmdbEventStore.open(folder);
if (databaseUrl) {
  // Loaded only where it is wanted: most writers have no projections, and start faster for it.
  const { followWithProjections } = await import('./projections.js');
  await followWithProjections(store, databaseUrl);
}
const handle = createHandle({ store });
const tell = (line: Line) => writeSync(PIPE, `${JSON.stringify(line)}\n`);

async function send(sent: Sent, random: () => number): Promise<readonly { readonly type: string }[]> {
  const { context, command } = commandOf(sent);
  tell({ kind: 'sent', sent });
  const { stream, revision, position, events } = await handle(context, command);
  if (events.length === 0) return events;
  const acknowledged: Acknowledged = { commandId: command.meta.id, stream, revision, position, events: events.length };
  tell({ kind: 'acknowledged', acknowledged });
  if (random() < REPEATS) {
    const again = await handle(context, command);
    invariant(again.repeated && again.position === position, `${command.meta.id} was carried out twice.`);
  }
  return events;
}

async function write(writer: number): Promise<never> {
  const random = seededRandom(run, writer);
  const ids = seededIds(`${run}/${writer}`);
  for (;;) await errand(random, ids, (sent) => send(sent, random));
}

await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
