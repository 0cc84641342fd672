import { constants, setPriority } from 'node:os';
import { argv, stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';
import { rowOf } from '../../projections/analytics/row.js';
import { openChdb } from '../../projections/sinks/chdb.js';
import { ClickHouseSink } from '../../projections/sinks/clickhouse.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';

// Started by the analytics benchmark: the engine in this process, and batches that were encoded beforehand. Every line
// on stdin is a round, and names the tables: all of them, or the wide one alone. The answer is rows a second.
// As the arena's own engine runs: after matches and commands.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
const [log = '', folder = '', batchEvents = '20000'] = argv.slice(2);
const { batches, count } = await encoded(Number(batchEvents));
const client = (await openChdb())(folder);
let round = 0;

for await (const line of createInterface({ input: stdin })) {
  const database = `round_${round++}`;
  await new ClickHouseSink(client, database).migrate();
  if (line === 'table') {
    const views = await client.query({ query: `SHOW TABLES FROM ${database} LIKE '%_view'`, format: 'JSONEachRow' });
    for (const { name } of await views.json<{ name: string }>())
      await client.command({ query: `DROP VIEW ${database}.${name}` });
  }
  const startedMs = performance.now();
  for (const batch of batches) {
    await client.command({ query: `INSERT INTO ${database}.events FORMAT JSONEachRow\n${batch}` });
  }
  const ms = performance.now() - startedMs;
  await client.command({ query: `DROP DATABASE ${database}` });
  stdout.write(`${(count / ms) * 1000}\n`);
}
await client.close();

async function encoded(size: number): Promise<{ batches: string[]; count: number }> {
  const store = await LmdbEventStore.open(log, { readOnly: true });
  const batches: string[] = [];
  const lines: string[] = [];
  let after = 0;
  for (;;) {
    const page = await store.readAll({ after, limit: 10_000 });
    for (const event of page) lines.push(JSON.stringify(rowOf(event)));
    const last = page.at(-1);
    if (lines.length >= size || (!last && lines.length > 0)) batches.push(lines.splice(0, size).join('\n'));
    if (!last && lines.length === 0) break;
    after = last?.position ?? after;
  }
  await store.close();
  return { batches, count: after };
}
