import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { feed } from '../../projections/analytics/feed.js';
import { rowOf } from '../../projections/analytics/row.js';
import { openChdb } from '../../projections/sinks/chdb.js';
import { ClickHouseSink, clickHouseAt } from '../../projections/sinks/clickhouse.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { invariant } from '../../services/kernel/index.js';
import { ChdbEngine } from '../engines/chdb.js';
import { pagesOfLog } from '../harness/write-side.js';
import { raceCharts } from './charts.js';
import { type Child, startContender } from './child.js';
import { withHistory } from './history.js';
import { type BenchOptions, compare, perSecond, type Report, scaled, thousands } from './rounds.js';

const EVENTS = 200_000;
const BATCH = 20_000;
const ROWS = 10_000_000;

/**
 * Taking the log in, checkpoint included, against the bare engine that is given the same batches, encoded beforehand, in
 * its own process; and the eight charts over ten million events, against the same rows in PostgreSQL.
 */
export function analytics(options: BenchOptions): Promise<Report> {
  return withHistory(EVENTS, options, async ({ store, path, folder, count }) => {
    const engine = new ChdbEngine(join(folder, 'ours'));
    const bare = startContender('inserter', path, join(folder, 'bare'), `${BATCH}`);
    try {
      await engine.ensure();
      const contenders = {
        feed: takeIn(engine, store, count),
        chdb: () => bare.round('views'),
        'chdb, wide table alone': () => bare.round('table'),
      };
      const compared = await compare(contenders, options, {
        ratios: { chdb: ['feed', 'chdb'], wideTable: ['feed', 'chdb, wide table alone'] },
        targets: { chdb: 0.7 },
      });
      await bare.stop();
      const times = await raceCharts(engine, store, scaled(options, ROWS, 20), options);
      const slower = Object.entries(times).filter(([, { clickhouseMs, postgresMs }]) => clickhouseMs > postgresMs);
      return {
        ...compared,
        times,
        notes: [
          `chdb: the same batches of ${thousands(BATCH)} into the same tables, with the views that fill them.`,
          chartTable(times),
          `${slower.length} of the charts take longer in ClickHouse than in PostgreSQL.`,
        ],
      };
    } finally {
      await engine.stop();
    }
  });
}

/** A round takes the whole log into tables of its own. */
function takeIn(engine: ChdbEngine, log: LmdbEventStore, count: number): () => Promise<number> {
  let round = 0;
  return async () => {
    const sink = new ClickHouseSink(clickHouseAt(engine.writerUrl), `round_${round++}`);
    await sink.migrate();
    const options = { log, connect: async () => sink, batchEvents: BATCH, once: true };
    const speed = await perSecond(count, () => feed(options).done);
    invariant((await sink.checkpoint()) === count, 'Not every event was taken in.');
    await sink.execute(`DROP DATABASE ${sink.database}`);
    await sink.close();
    return speed;
  };
}

/**
 * In a process of its own: the bare engine, and batches that were encoded beforehand. An order names the tables: all of
 * them, or the wide one alone.
 */
export async function inserter([log = '', folder = '', batchEvents = '']: string[]): Promise<Child> {
  // As the arena's own engine runs: after matches and commands.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const { batches, count } = await encoded(log, Number(batchEvents));
  const client = (await openChdb())(folder);
  let round = 0;
  return {
    round: async (order) => {
      const database = `round_${round++}`;
      await new ClickHouseSink(client, database).migrate();
      if (order === 'table') {
        const views = await client.query({
          query: `SHOW TABLES FROM ${database} LIKE '%_view'`,
          format: 'JSONEachRow',
        });
        for (const { name } of await views.json<{ name: string }>())
          await client.command({ query: `DROP VIEW ${database}.${name}` });
      }
      const speed = await perSecond(count, async () => {
        for (const batch of batches) {
          await client.command({ query: `INSERT INTO ${database}.events FORMAT JSONEachRow\n${batch}` });
        }
      });
      await client.command({ query: `DROP DATABASE ${database}` });
      return speed;
    },
    stop: () => client.close(),
  };
}

async function encoded(log: string, size: number): Promise<{ batches: string[]; count: number }> {
  const store = await LmdbEventStore.open(log, { readOnly: true });
  const batches: string[] = [];
  const lines: string[] = [];
  for await (const page of pagesOfLog(store, 0, 10_000)) {
    for (const event of page) lines.push(JSON.stringify(rowOf(event)));
    if (lines.length >= size) batches.push(lines.splice(0, size).join('\n'));
  }
  while (lines.length > 0) batches.push(lines.splice(0, size).join('\n'));
  const count = await store.lastPosition();
  await store.close();
  return { batches, count };
}

function chartTable(times: NonNullable<Report['times']>): string {
  const rows = Object.entries(times).map(([name, { clickhouseMs, postgresMs }]) => {
    const cells = [clickhouseMs, postgresMs].map((ms) => `${ms.toFixed(0)} ms`.padStart(11));
    return `${name.padEnd(18)}${cells.join('')}${`${(postgresMs / clickhouseMs).toFixed(1)} times`.padStart(13)}`;
  });
  return [`${'chart'.padEnd(18)}${'ClickHouse'.padStart(11)}${'PostgreSQL'.padStart(11)}`, ...rows].join('\n');
}
