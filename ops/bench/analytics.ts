import { join } from 'node:path';
import { execPath } from 'node:process';
import { feed } from '../../projections/analytics/feed.js';
import { ClickHouseSink, clickHouseAt } from '../../projections/sinks/clickhouse.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { invariant } from '../../services/kernel/index.js';
import { compiled } from '../../services/runtime/package.js';
import { ChdbEngine } from '../engines/chdb.js';
import { raceCharts } from './charts.js';
import { startChild } from './child.js';
import { withFolder } from './folders.js';
import { writeHistory } from './history.js';
import { type BenchOptions, type Contender, figures, type Report, race, ratio, thousands } from './rounds.js';

const EVENTS = 200_000;
const BATCH = 20_000;
const ROWS = 10_000_000;

/**
 * Taking the log in, checkpoint included, against the bare engine that is given the same batches, encoded beforehand, in
 * its own process; and the eight charts over ten million events, against the same rows in PostgreSQL.
 */
export async function analytics(options: BenchOptions): Promise<Report> {
  return withFolder(async (folder) => {
    const log = join(folder, 'log');
    const store = await LmdbEventStore.open(log);
    const count = await writeHistory(store, options.quick ? EVENTS / 20 : EVENTS);
    options.progress(`${thousands(count)} events written`);
    const engine = new ChdbEngine(join(folder, 'ours'));
    const bare = startChild(execPath, [
      compiled(import.meta.url, './inserter.js'),
      log,
      join(folder, 'bare'),
      `${BATCH}`,
    ]);
    try {
      await engine.ensure();
      const contenders: Contender[] = [
        { name: 'feed', run: takeIn(engine, store, count) },
        { name: 'chdb', run: () => bare.round('views') },
        { name: 'chdb, wide table alone', run: () => bare.round('table') },
      ];
      const measured = await race(contenders, options);
      await bare.stop();
      const times = await raceCharts(engine, store, options.quick ? ROWS / 20 : ROWS, options);
      const slower = Object.entries(times).filter(([, { clickhouseMs, postgresMs }]) => clickhouseMs > postgresMs);
      return {
        results: Object.fromEntries([...measured].map(([name, rounds]) => [name, figures(rounds)])),
        ratios: { chdb: ratio(measured, 'feed', 'chdb'), wideTable: ratio(measured, 'feed', 'chdb, wide table alone') },
        targets: { chdb: 0.7 },
        times,
        notes: [
          `chdb: the same batches of ${thousands(BATCH)} into the same tables, with the views that fill them.`,
          chartTable(times),
          `${slower.length} of the charts take longer in ClickHouse than in PostgreSQL.`,
        ],
      };
    } finally {
      await engine.stop();
      await store.close();
    }
  });
}

/** A round takes the whole log into tables of its own. */
function takeIn(engine: ChdbEngine, log: LmdbEventStore, count: number): () => Promise<number> {
  let round = 0;
  return async () => {
    const sink = new ClickHouseSink(clickHouseAt(engine.writerUrl), `round_${round++}`);
    await sink.migrate();
    const startedMs = performance.now();
    await feed({ log, connect: async () => sink, batchEvents: BATCH, once: true }).done;
    const ms = performance.now() - startedMs;
    invariant((await sink.checkpoint()) === count, 'Not every event was taken in.');
    await sink.execute(`DROP DATABASE ${sink.database}`);
    await sink.close();
    return (count / ms) * 1000;
  };
}

function chartTable(times: NonNullable<Report['times']>): string {
  const rows = Object.entries(times).map(([name, { clickhouseMs, postgresMs }]) => {
    const cells = [clickhouseMs, postgresMs].map((ms) => `${ms.toFixed(0)} ms`.padStart(11));
    return `${name.padEnd(18)}${cells.join('')}${`${(postgresMs / clickhouseMs).toFixed(1)} times`.padStart(13)}`;
  });
  return [`${'chart'.padEnd(18)}${'ClickHouse'.padStart(11)}${'PostgreSQL'.padStart(11)}`, ...rows].join('\n');
}
