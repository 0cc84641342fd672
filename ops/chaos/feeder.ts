import { argv, exit, stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { feed } from '../../projections/analytics/feed.js';
import { ClickHouseSink, clickHouseAt } from '../../projections/sinks/clickhouse.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { isAgonError } from '../../services/kernel/index.js';
import { ChdbEngine } from '../engines/chdb.js';
import type { FeederLine } from './analytics.js';

// Started by the chaos run, and killed by it, or its engine is: takes a log into ClickHouse as the arena does. Once it is
// through, it builds a second set of tables in one go and says what both hold.
const [log = '', folder = '', batchEvents = '100'] = argv.slice(2);
const say = (line: FeederLine) => stdout.write(`${JSON.stringify(line)}\n`);

const store = await LmdbEventStore.open(log, { readOnly: true });
const last = await store.lastPosition();
const engine = new ChdbEngine(folder);
const sinkOf = async (database?: string) => {
  await engine.ensure();
  const sink = new ClickHouseSink(clickHouseAt(engine.writerUrl), database);
  await sink.migrate();
  return sink;
};

const following = feed({
  log: store,
  batchEvents: Number(batchEvents),
  gatherMs: 20,
  alive: () => engine.running,
  connect: async () => {
    const sink = await sinkOf();
    if (engine.pid !== undefined) say({ kind: 'engine', pid: engine.pid });
    return sink;
  },
  onProgress: (position) => say({ kind: 'progress', position }),
});
while (following.position() < last) await sleep(20);
await following.stop();

for (;;) {
  try {
    say(await compared());
    await engine.stop();
    exit(0);
  } catch (error) {
    // The engine may be killed now as well: what it holds is there again when it is.
    if (!isAgonError(error, 'ANALYTICS.UNAVAILABLE')) throw error;
  }
}

async function compared(): Promise<FeederLine> {
  const kept = await sinkOf();
  const rebuilt = await sinkOf('rebuilt');
  await feed({ log: store, connect: async () => rebuilt, once: true }).done;
  return { kind: 'through', kept: await kept.fingerprints(), rebuilt: await rebuilt.fingerprints() };
}
