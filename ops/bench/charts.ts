import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { type ChartName, charts } from '../../projections/analytics/charts.js';
import { feed } from '../../projections/analytics/feed.js';
import { ClickHouseSink, clickHouseAt } from '../../projections/sinks/clickhouse.js';
import type { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { invariant } from '../../services/kernel/index.js';
import type { ChdbEngine } from '../engines/chdb.js';
import { withPostgres } from '../harness/folders.js';
import { type BenchOptions, figures, type Report, thousands } from './rounds.js';

const CHART_ROUNDS = 3;
const ALWAYS = { from: '1970-01-01 00:00:00.000', to: '2100-01-01 00:00:00.000' };
const days = 'time >= $1 AND time < $2';
const day = "to_char(time AT TIME ZONE 'UTC', 'YYYY-MM-DD')";
/** All levels of one sort: PostgreSQL at its best. */
const levels = (name: string) => `percentile_disc(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY ${name})`;

/** The charts in PostgreSQL's words, over the same tables, with the same number of rows and the same sums. */
const inPostgres: Readonly<Record<ChartName, string>> = {
  matchesPerDay: `SELECT ${day} AS day, game, count(*) FILTER (WHERE outcome = 'settled') AS settled,
      count(*) FILTER (WHERE outcome = 'voided') AS voided, count(*) FILTER (WHERE outcome = 'reversed') AS reversed
    FROM matches_ended WHERE ${days} GROUP BY 1, 2 ORDER BY 1, 2`,
  agentPerformance: `SELECT agent_id, game, sum(sign) AS played, coalesce(sum(sign) FILTER (WHERE result = 'won'), 0) AS won,
      sum(sign) FILTER (WHERE result = 'drawn'), sum(sign) FILTER (WHERE result = 'lost'),
      sum(sign * score) / nullif(sum(sign), 0), sum(payout_cents - stake_cents)
    FROM agent_results WHERE ${days} GROUP BY 1, 2 HAVING sum(sign) <> 0 OR sum(payout_cents - stake_cents) <> 0
    ORDER BY played DESC, 1, 2 LIMIT 1000`,
  turnPercentiles: `SELECT ${day} AS day, count(*) AS turns, ${levels('fuel')}, ${levels('wall_ms')}
    FROM turns WHERE ${days} GROUP BY 1 ORDER BY 1`,
  matchLatency: `SELECT game, count(*) AS matches, ${levels('wait_ms')}, ${levels('play_ms')}
    FROM (SELECT max(game) AS game,
        greatest(0, extract(epoch FROM max(time) FILTER (WHERE step = 'MatchClaimed')
          - min(time) FILTER (WHERE step = 'MatchReady')) * 1000) AS wait_ms,
        greatest(0, extract(epoch FROM max(time) FILTER (WHERE step = 'MatchPlayed')
          - max(time) FILTER (WHERE step = 'MatchClaimed')) * 1000) AS play_ms
      FROM match_steps WHERE ${days} GROUP BY match_id
      HAVING count(*) FILTER (WHERE step = 'MatchReady') > 0 AND count(*) FILTER (WHERE step = 'MatchPlayed') > 0) m
    GROUP BY 1 ORDER BY 1`,
  resourceUse: `SELECT ${day} AS day, driver, count(*) AS seats, sum(fuel) AS fuel, sum(cpu_ms), sum(wall_ms),
      max(memory_bytes)
    FROM resource_use WHERE ${days} GROUP BY 1, 2 ORDER BY 1, 2`,
  revenue: `SELECT ${day} AS day, currency, sum(sign) AS matches, sum(pot_cents) AS "potCents", sum(rake_cents) AS "rakeCents",
      sum(paid_cents) AS "paidCents"
    FROM revenue WHERE ${days} GROUP BY 1, 2 ORDER BY 1, 2`,
  promptProofs: `SELECT ${day} AS day, count(*) AS proofs, count(DISTINCT agent_id) AS agents
    FROM prompt_proofs WHERE ${days} GROUP BY 1 ORDER BY 1`,
  submissionFunnel: `SELECT count(*) AS submitted, count(*) FILTER (WHERE matched) AS matched,
      count(*) FILTER (WHERE played) AS played, count(*) FILTER (WHERE won) AS won
    FROM (SELECT bool_or(step = 'matched') AS matched, sum(sign) FILTER (WHERE step = 'played') > 0 AS played,
        sum(sign) FILTER (WHERE step = 'won') > 0 AS won
      FROM submission_steps WHERE ${days} GROUP BY agent_id HAVING bool_or(step = 'submitted')) a`,
};

/** What both answers name the same must be the same. */
const common = 'day game settled played won turns matches seats fuel rakeCents proofs'.split(' ');

const tables: Readonly<Record<string, string>> = {
  matches_ended: 'position int8, time timestamptz, match_id text, game text, outcome text, reason text',
  agent_results:
    'position int8, time timestamptz, seat int4, match_id text, game text, agent_id text, score float8, result text, currency text, stake_cents numeric, payout_cents numeric, sign int2',
  turns: 'position int8, time timestamptz, match_id text, turn int4, seat int4, fuel int8, wall_ms float8',
  match_steps: 'position int8, time timestamptz, match_id text, game text, step text',
  resource_use:
    'position int8, time timestamptz, seat int4, match_id text, driver text, fuel int8, memory_bytes int8, cpu_ms float8, wall_ms float8',
  revenue:
    'position int8, time timestamptz, match_id text, game text, currency text, pot_cents numeric, rake_cents numeric, paid_cents numeric, sign int2',
  prompt_proofs: 'position int8, time timestamptz, agent_id text, stream text',
  submission_steps: 'position int8, time timestamptz, seat int4, step text, agent_id text, sign int2',
};

/** The time of each chart over so many events, in ClickHouse and in PostgreSQL. */
export async function raceCharts(
  engine: ChdbEngine,
  log: LmdbEventStore,
  events: number,
  options: BenchOptions,
): Promise<NonNullable<Report['times']>> {
  const sink = new ClickHouseSink(clickHouseAt(engine.writerUrl));
  await sink.migrate();
  await feed({ log, connect: async () => sink, once: true }).done;
  await multiply(sink, await log.lastPosition(), events);
  const [total] = await sink.query<{ n: string }>('SELECT count() AS n FROM events');
  options.progress(`${thousands(Number(total?.n))} events in ClickHouse`);
  return withPostgres(async (url, folder) => {
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      await copyAll(engine, client, join(folder, 'copy'), options);
      await client.query("SET work_mem = '256MB'");
      const times: Record<string, Awaited<ReturnType<typeof timesOf>>> = {};
      for (const name of Object.keys(charts) as ChartName[]) {
        times[name] = await timesOf(name, sink, client);
        const { clickhouseMs, postgresMs } = times[name];
        options.progress(`${name}  ${clickhouseMs.toFixed(0)} ms  PostgreSQL ${postgresMs.toFixed(0)} ms`);
      }
      return times;
    } finally {
      await client.end();
      await sink.close();
    }
  });
}

async function timesOf(name: ChartName, sink: ClickHouseSink, client: pg.Client) {
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round <= CHART_ROUNDS; round++) {
    const startedMs = performance.now();
    const rows = await sink.query<Record<string, unknown>>(charts[name].sql, ALWAYS);
    const betweenMs = performance.now();
    const { rows: expected } = await client.query(inPostgres[name], [`${ALWAYS.from}Z`, `${ALWAYS.to}Z`]);
    const endedMs = performance.now();
    assertSame(name, rows, expected);
    if (round === 0) continue;
    ours.push(betweenMs - startedMs);
    theirs.push(endedMs - betweenMs);
  }
  return { clickhouseMs: figures(ours).median, postgresMs: figures(theirs).median };
}

type Rows = readonly Readonly<Record<string, unknown>>[];

function assertSame(name: string, rows: Rows, expected: Rows): void {
  const same = rows.length > 0 && rows.length === expected.length;
  invariant(same, `${name}: ${rows.length} rows, PostgreSQL ${expected.length}.`);
  rows.forEach((row, i) => {
    for (const column of common) {
      const [ours, theirs] = [row[column], expected[i]?.[column]];
      if (ours === undefined || theirs === undefined) continue;
      invariant(`${ours}` === `${theirs}`, `${name}, row ${i}: ${column} is ${ours}, PostgreSQL says ${theirs}.`);
    }
  });
}

/** The same matches again and again, each time half a day earlier, with proofs and submissions, which the history lacks. */
async function multiply(sink: ClickHouseSink, count: number, events: number): Promise<void> {
  const { database } = sink;
  const table = `${database}.events`;
  for (let copy = 1; copy * count < events; copy++) {
    await sink.execute(
      `INSERT INTO ${table} SELECT * REPLACE (position + ${copy * count} AS position, time - INTERVAL ${copy * 12} HOUR AS time,
         if(match_id = '', '', concat(match_id, '-${copy}')) AS match_id) FROM ${table} AS e
       WHERE e.position <= ${count}`,
    );
  }
  await sink.execute(
    `INSERT INTO ${table} (position, time, type, agent_id, stream) SELECT e.position + 1000000000, e.time, 'PromptProven',
       concat('player-', toString(e.position % 1000), '.bot'), 'proofs-log' FROM ${table} AS e WHERE e.type = 'MatchReady'`,
  );
  await sink.execute(
    `INSERT INTO ${table} (position, time, type, agent_id, stream) SELECT 2000000000 + number, '2026-01-01 00:00:00.000',
       'AgentSubmitted', concat('player-', toString(number), '.bot'), 'agent-x' FROM numbers(1000)`,
  );
}

/** By way of files: PostgreSQL reads them as fast as it can. */
async function copyAll(engine: ChdbEngine, client: pg.Client, folder: string, options: BenchOptions): Promise<void> {
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  for (const [name, columns] of Object.entries(tables)) {
    const file = join(folder, name);
    const { username, password } = new URL(engine.writerUrl);
    const headers = { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
    const body = `SELECT * FROM agon.${name} FINAL`;
    const answer = await fetch(`${engine.url}/?default_format=CSV`, { method: 'POST', headers, body });
    invariant(answer.ok, `${name} could not be read: ${answer.status}.`);
    writeFileSync(file, new Uint8Array(await answer.arrayBuffer()), { mode: 0o644 });
    await client.query(`CREATE TABLE ${name} (${columns})`);
    await client.query("SET TIME ZONE 'UTC'");
    await client.query(`COPY ${name} FROM '${file}' (FORMAT csv)`);
    await client.query(`CREATE INDEX ON ${name} (time)`);
    await client.query(`VACUUM ANALYZE ${name}`);
    options.progress(`${name} copied`);
  }
}
