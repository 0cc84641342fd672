import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OwnDatabase, ownDatabase } from '../../ops/engines/shared.contract.js';
import { auditOf, organisationsNaming } from '../accounts/query.js';
import {
  accountById,
  accountsById,
  agentById,
  agentPagesOf,
  agentsById,
  agentsOfOwners,
  countAgents,
  listAccounts,
  listAgents,
  versionPagesOf,
  versionsOf,
} from '../agents/query.js';
import { balancesOf, listBalances, statementOf } from '../balances/query.js';
import { statementCsv } from '../balances/statement.js';
import { Projector } from '../engine/projector.js';
import { listDeadLetters } from '../engine/query.js';
import { longHistory, playedHistory } from '../history.contract.js';
import { periodOf } from '../leaderboards/glicko2.js';
import {
  boardPage,
  glickoAt,
  headToHeadOf,
  headToHeadPage,
  historyPagesOf,
  leaderboard,
  pairingOf,
  pairingsOf,
  ratingAt,
  ratingHistoryOf,
  seasonsOf,
  standingsOf,
} from '../leaderboards/query.js';
import { ratings } from '../leaderboards/table.js';
import { leaderboardsView } from '../leaderboards/view.js';
import {
  countMatches,
  countOpenMatches,
  listMatches,
  listOpenMatches,
  matchById,
  matchPagesOf,
  turnPagesOf,
  turnsOf,
} from '../matches/query.js';
import { listPayments, payerById, paymentsById } from '../payments/query.js';
import { leasePagesOf, leasesOn, listRunners, runnersById } from '../runners/query.js';
import { upcast } from '../views.js';
import { openDatabase } from './database.js';
import { MemorySink } from './memory.js';
import { SEATS_OF_MATCHES } from './migrations.js';
import { PostgresSink } from './postgres.js';

let database: OwnDatabase;
let db: DataSource;

beforeAll(async () => {
  database = await ownDatabase();
  db = await openDatabase(database.url);
});

afterAll(async () => {
  await db?.destroy();
  await database?.drop();
});

describe('the queries of the gateway on filled tables', () => {
  beforeAll(async () => {
    // The newest quarter is not over yet. Some agents have played lately, one long ago only, and one in every match.
    await db.query(`INSERT INTO matches SELECT md5(i::text), 'g' || i % 5, 's',
      CASE WHEN i <= 15000 THEN 'settled' ELSE (ARRAY['proposed', 'ready', 'playing'])[1 + i % 3] END, '', '',
      jsonb_build_array(
        jsonb_build_object('agentId', CASE WHEN i <= 30 THEN 'old' ELSE 'a' || i % 500 END, 'accountId', 'o' || i % 500),
        jsonb_build_object('agentId', 'b' || i % 70, 'accountId', 'p' || i % 70),
        jsonb_build_object('agentId', 'busy', 'accountId', 'house')),
      0, 1, 1, 1, 'PLAY', 3, 1, '2026-01-01T00:00:00Z'::timestamptz + i * interval '10 minutes', now(), 1000000 + i
      FROM generate_series(1, 20000) i`);
    await db.query(SEATS_OF_MATCHES);
    await db.query(
      `INSERT INTO turns SELECT md5(i::text), t, t % 2, '1', 1 FROM generate_series(1, 5000) i, generate_series(1, 5) t`,
    );
    await db.query(
      `INSERT INTO agents SELECT 'a' || i, 'o' || i % 300, 'n', '[]', 'node', 1, 'd', now(), now() FROM generate_series(1, 10000) i`,
    );
    await db.query(
      `INSERT INTO agent_versions SELECT 'a' || i, v, 'd', 1, now() FROM generate_series(1, 10000) i, generate_series(1, 2) v`,
    );
    await db.query(`INSERT INTO accounts SELECT 'o' || i, 'n', now() FROM generate_series(1, 10000) i`);
    await db.query(`INSERT INTO ratings (season, game, agent_id, rating, glicko, games, wins, draws, losses, last_match_id,
        updated_at, streak, best_streak, deviation, volatility, period, start_glicko, start_deviation, start_volatility,
        information, surprise)
      SELECT s, 'g' || i % 5, 'a' || i, 1500 + i % 997, 1500 + i % 787, 1, 1, 0, 0, 'm', now(), 0, 0, 350, 0.06, 0, 1500, 350,
        0.06, 0, 0 FROM generate_series(1, 10000) i, unnest(ARRAY['all', '2026-Q1', '2026-Q2']) s`);
    await db.query(`INSERT INTO rating_history (season, game, agent_id, position, games, match_id, before, after, at, glicko,
        deviation, volatility, period)
      SELECT 'all', 'g1', 'a' || i % 200, 1000000 + i, i, 'm', 1, 2, now(), 1500, 350, 0.06, 0
      FROM generate_series(1, 30000) i`);
    await db.query(
      `INSERT INTO head_to_head SELECT 'all', 'g' || i % 5, 'a' || i % 300, 'a' || i, 1, 0, 0 FROM generate_series(1, 20000) i`,
    );
    await db.query(
      `INSERT INTO balances SELECT 'player:p' || i, 'PLAY', 0, 1 FROM generate_series(1, 20000) i ON CONFLICT DO NOTHING`,
    );
    await db.query(
      `INSERT INTO runners SELECT 'r' || i, '', '', '', now(), now(), 0, 0 FROM generate_series(1, 20000) i`,
    );
    await db.query(`INSERT INTO members SELECT 'o' || i, 'org' || i % 40, 'member' FROM generate_series(1, 20000) i`);
    await db.query(
      `INSERT INTO audit SELECT 'o' || i % 100, i, now(), 't', 'a', 'r', '{}' FROM generate_series(1, 20000) i`,
    );
    await db.query(`INSERT INTO payments SELECT 'p' || i, 'o' || i % 300, 'deposit', 1, 'USD', 'open', NULL, '', now(), now(), i, 0
      FROM generate_series(1, 20000) i`);
    await db.query(
      `INSERT INTO payers SELECT 'o' || i, 'pro', 'active', NULL, false, '' FROM generate_series(1, 20000) i`,
    );
    await db.query(`INSERT INTO postings SELECT i, l, 'player:p' || (i + l) % 300, 'PLAY', 1 - 2 * l, 'X', NULL, now()
      FROM generate_series(1, 20000) i, generate_series(0, 1) l`);
    await db.query(
      `INSERT INTO dead_letters SELECT 'v' || i % 7, i, 'e', 'T', 1, 'C', 'm' FROM generate_series(1, 5000) i`,
    );
    await db.query(`INSERT INTO leases SELECT 'm' || i, 'r' || i % 500, 1, now() FROM generate_series(1, 20000) i`);
    await db.query('ANALYZE');
  });

  /** Runs the query, and has every statement that it made explained by running it once more. */
  const plansOf = async (ask: (recording: DataSource) => Promise<unknown>): Promise<Plan[]> => {
    const made: [string, unknown[]][] = [];
    const query = (sql: string, values: unknown[] = []) => {
      made.push([sql, values]);
      return db.query(sql, values);
    };
    await ask({ query } as unknown as DataSource);
    const explained = made.map(([sql, values]) => db.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, values));
    return (await Promise.all(explained)).map(([row]) => row['QUERY PLAN'][0].Plan as Plan);
  };

  const at = '2026-11-01T00:00:00.000Z';
  const board = { game: 'g1' };
  const cursor = (...parts: string[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');
  const beyondMillion = (table: string) => cursor(table, 'position', '1010000');
  const afterMillion = beyondMillion('matches');
  it.each<[string, (recording: DataSource) => Promise<unknown>]>([
    ['matches', (on) => listMatches(on, {})],
    ['a later page of matches', (on) => listMatches(on, { after: afterMillion })],
    ['matches of a game', (on) => listMatches(on, { game: 'g1', after: afterMillion })],
    ['matches of a status', (on) => listMatches(on, { status: 'ready' })],
    ['matches from the end', (on) => listMatches(on, { last: 5, before: afterMillion })],
    ['matches that are not over', (on) => listOpenMatches(on, {})],
    ['matches that are being played', (on) => listOpenMatches(on, { statuses: ['playing'] })],
    ['a later page of those', (on) => listOpenMatches(on, { after: cursor('matches', 'position', '1016000') })],
    ['matches of an agent', (on) => listMatches(on, { agentId: 'a77' })],
    ['matches of an agent that has not played for long', (on) => listMatches(on, { agentId: 'old', first: 200 })],
    ['matches of an agent that plays all the time', (on) => listMatches(on, { agentId: 'busy', after: afterMillion })],
    ['matches of an agent from the end', (on) => listMatches(on, { agentId: 'busy', last: 5, before: afterMillion })],
    ['matches of an agent in a game', (on) => listMatches(on, { agentId: 'busy', game: 'g1' })],
    ['matches of some agents', (on) => matchPagesOf(on, ['a77', 'old', 'busy'], { after: afterMillion })],
    ['turns of some matches', (on) => turnPagesOf(on, ['c4ca4238a0b923820dcc509a6f75849b', 'x'], {})],
    ['agents of some owners', (on) => agentPagesOf(on, ['o7', 'o8'], {})],
    ['versions of some agents', (on) => versionPagesOf(on, ['a7', 'a8'], {})],
    ['agents by their names', (on) => agentsById(on, ['a7', 'a8'])],
    ['accounts', (on) => listAccounts(on, {})],
    ['accounts by their names', (on) => accountsById(on, ['o7', 'o8'])],
    ['histories of some agents', (on) => historyPagesOf(on, board, ['a5', 'a6'], {})],
    ['a page of a board', (on) => boardPage(on, board, { first: 20 }, at)],
    ['balances', (on) => listBalances(on, { after: cursor('balances', 'account', 'currency', 'player:p5', 'PLAY') })],
    ['runners', (on) => listRunners(on, {})],
    ['runners by their names', (on) => runnersById(on, ['r7', 'r8'])],
    ['who has some matches', (on) => leasesOn(on, ['m7', 'm8'])],
    ['what some runners have', (on) => leasePagesOf(on, ['r7', 'r8'], {})],
    ['a match', (on) => matchById(on, 'x')],
    ['the turns of a match', (on) => turnsOf(on, ['c4ca4238a0b923820dcc509a6f75849b'])],
    ['agents', (on) => listAgents(on, { after: cursor('agents', 'agentId', 'a5') })],
    ['agents of an owner', (on) => listAgents(on, { ownerId: 'o7' })],
    ['an agent', (on) => agentById(on, 'a7')],
    ["an agent's versions", (on) => versionsOf(on, ['a7'])],
    ['an account', (on) => accountById(on, 'o7')],
    ['the first of a board', (on) => leaderboard(on, board, 20, at)],
    [
      'the first of a season by Glicko-2',
      (on) => leaderboard(on, { ...board, season: '2026-Q1', by: 'glicko' }, 20, at),
    ],
    ['standings', (on) => standingsOf(on, board, [{ agentId: 'a1', rank: 1 }], at)],
    ['seasons', (on) => seasonsOf(on, 'g1')],
    [
      'how a rating came about',
      (on) => ratingHistoryOf(on, board, 'a5', { first: 20, after: beyondMillion('rating_history') }),
    ],
    ['a rating at a position', (on) => ratingAt(on, board, 'a5', { position: 1_010_000, at })],
    ['a rating at a date', (on) => ratingAt(on, board, 'a5', { at })],
    ['a page of who beat whom', (on) => headToHeadPage(on, board, undefined, { first: 20 })],
    ['whom one beat', (on) => headToHeadOf(on, board, 'a6', 1000)],
    ['what happened to an account', (on) => auditOf(on, 'o7', {})],
    ['the organisations that name somebody', (on) => organisationsNaming(on, 'o7', 100)],
    ['payments of an account', (on) => listPayments(on, { accountId: 'o7' })],
    ['payments by their names', (on) => paymentsById(on, ['p7', 'p8'])],
    ['a payer', (on) => payerById(on, 'o7')],
    ['a statement', (on) => statementOf(on, { accountId: 'p7', currency: 'PLAY', first: 20 })],
    ['a statement as a file', async (on) => await drained(statementCsv(on, 'p7'))],
    ['the balances of a player', (on) => balancesOf(on, 'p7')],
    ['dead letters', (on) => listDeadLetters(on, {})],
    ['dead letters of a view', (on) => listDeadLetters(on, { view: 'v3' })],
    ['how many agents an owner has', (on) => countAgents(on, 'o7')],
    ['how many matches an account played on a day', (on) => countMatches(on, 'house', '2026-05-19')],
    ['agents of owners', (on) => agentsOfOwners(on, ['o7', 'o8'])],
  ])('look at little more than they show: %s', async (_what, ask) => {
    const plans = await plansOf(ask);
    expect(plans.length).toBeGreaterThan(0);
    for (const plan of plans) {
      expect(scansIn(plan)).not.toContain('Seq Scan');
      // The tables have 5,000 to 40,000 rows. Whoever walks an index and throws most of it away looks at more than this.
      expect(rowsLookedAt(plan), JSON.stringify(plan)).toBeLessThan(1_000);
    }
  });

  it.each<[string, (recording: DataSource) => Promise<unknown>]>([
    ['who beat whom', (on) => headToHeadOf(on, board, undefined, 5_000)],
    ['what strengths are computed from', (on) => pairingsOf(on, board, 5_000)],
    ['how many matches are not over', (on) => countOpenMatches(on)],
    ['the end of a board by Glicko-2', (on) => boardPage(on, { ...board, by: 'glicko' }, { last: 20 }, at)],
    // By all of the agent's matches, or by all that wait: whichever are fewer, as far as PostgreSQL knows.
    ['matches of an agent that wait', (on) => listMatches(on, { agentId: 'b7', status: 'ready' })],
    [
      'a page deep in a board',
      (on) => boardPage(on, board, { after: cursor('ratings', 'rating', 'agentId', '1900', 'a1') }, at),
    ],
  ])('that show or count much of a table read their part of it by an index: %s', async (_what, ask) => {
    for (const plan of await plansOf(ask)) expect(scansIn(plan)).not.toContain('Seq Scan');
  });

  it('find each match of an agent once, in whatever pages', async () => {
    const whole = async (agentId: string, size: number) => {
      const found: bigint[] = [];
      for (let after: string | undefined, more = true; more; ) {
        const page = await listMatches(db, { agentId, first: size, after });
        found.push(...page.rows.map(({ position }) => position));
        after = page.next;
        more = after !== undefined;
      }
      return found;
    };
    const newestFirst = Array.from({ length: 30 }, (_, i) => BigInt(1_000_030 - i));
    for (const size of [1, 7, 30, 200]) expect(await whole('old', size)).toEqual(newestFirst);
    expect(await whole('a7', 9)).toHaveLength(39);
    expect(await whole('nobody', 9)).toEqual([]);
    const [last] = (await listMatches(db, { agentId: 'old', last: 1 })).rows;
    expect(last).toMatchObject({ position: 1_000_001n, seats: [{ agentId: 'old' }, {}, { agentId: 'busy' }] });
    expect(await countMatches(db, 'house', '2026-05-19')).toBe(129);
    expect(await countMatches(db, 'nobody', '2026-05-19')).toBe(0);
  });

  it('leave nobody out of a matrix or of the strengths without saying so', async () => {
    const all = await headToHeadOf(db, board, undefined, 5_000);
    expect(all).toHaveLength(4_000);
    await expect(headToHeadOf(db, board, undefined, 3_999)).rejects.toMatchObject({ code: 'QUERY.TOO_MANY_ROWS' });
    const once = all.filter(({ agentId, opponentId }) => agentId < opponentId);
    expect(await pairingsOf(db, board, once.length)).toEqual(once.map(pairingOf));
    await expect(pairingsOf(db, board, once.length - 1)).rejects.toMatchObject({ code: 'QUERY.TOO_MANY_PAIRS' });
    const paged: object[] = [];
    for (let after: string | undefined, more = true; more; ) {
      const page = await headToHeadPage(db, board, 'a6', { first: 5, after });
      paged.push(...page.rows);
      after = page.next;
      more = after !== undefined;
    }
    expect(paged).toEqual(all.filter(({ agentId }) => agentId === 'a6'));
  });
});

async function drained(texts: AsyncIterable<string>): Promise<void> {
  for await (const text of texts) expect(text).toMatch(/,/);
}

interface Plan {
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Plan[];
}

const scansIn = (plan: Plan): string[] => [plan['Node Type'], ...(plan.Plans ?? []).flatMap(scansIn)];

/** What the scans of a plan took out of tables and indexes, whether or not it was wanted. */
function rowsLookedAt(plan: Plan): number {
  const below = (plan.Plans ?? []).reduce((sum, each) => sum + rowsLookedAt(each), 0);
  if (!/Scan/.test(plan['Node Type'])) return below;
  const kept =
    plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Index Recheck'] ?? 0);
  return below + kept * plan['Actual Loops'];
}

describe('a rating of the past', () => {
  it('is that of the last match that counts, at any position and at its date', async () => {
    const log = longHistory(await playedHistory(40));
    const reversed = new Set(log.filter(({ type }) => type === 'MatchReversed').map(({ stream }) => stream));
    const counted = log.filter(({ type, stream }) => type === 'MatchSettled' && !reversed.has(stream));
    expect(reversed.size).toBeGreaterThan(2);
    const sink = new PostgresSink(db);
    await sink.reset(leaderboardsView);
    await new Projector(leaderboardsView, sink, upcast).project(log);
    const boards = new MemorySink();
    const board = { game: 'a' };
    const projector = new Projector(leaderboardsView, boards, upcast);
    let asked = 0;
    for (const [i, settled] of counted.entries()) {
      await projector.project([settled]);
      // At the match itself, and right before the next one: what lies between, reversals among it, changes nothing.
      const until = counted[i + 1] ? counted[i + 1]!.position - 1 : log.length;
      const rows = (await boards.rows(ratings)).filter((row) => row.season === 'all' && row.game === 'a');
      for (const position of new Set([settled.position, until])) {
        const at = log[position - 1]!.time;
        for (const row of rows) {
          const expected = { agentId: row.agentId, after: row.rating, games: row.games, confidence: glickoAt(row, at) };
          expect(await ratingAt(db, board, row.agentId, { position, at })).toMatchObject(expected);
          expect(await ratingAt(db, board, row.agentId, { at })).toMatchObject(expected);
          asked += 1;
        }
      }
    }
    expect(asked).toBeGreaterThan(50);
    const first = counted.find(({ data }) => (data as { game: string }).game === 'a')!;
    const [{ agentId }] = (first.data as { seats: [{ agentId: string }] }).seats;
    const [position, at] = [first.position - 1, log[first.position - 2]!.time];
    expect(await ratingAt(db, board, agentId, { position, at })).toBeUndefined();
    expect(await ratingAt(db, board, agentId, { at })).toBeUndefined();
    await expect(ratingAt(db, board, agentId, { at: 'yesterday' })).rejects.toMatchObject({ code: 'QUERY.BAD_TIME' });
  });

  it('is less certain the longer ago the last match was, also when it is asked for by its position', async () => {
    const at = '2026-03-01T00:00:00.000Z';
    const [soon, late] = [at, '2027-03-01T00:00:00.000Z'];
    const row = { season: 'all', game: 'idle', agentId: 'x.y', at };
    await db.query(
      `INSERT INTO rating_history (season, game, agent_id, position, games, match_id, before, after, at, glicko, deviation,
       volatility, period) VALUES ('all', 'idle', 'x.y', 5, 1, 'm', 1500, 1516, $1, 1600, 60, 0.06, $2)`,
      [row.at, periodOf(at)],
    );
    const deviationAt = async (when: string) =>
      (await ratingAt(db, { game: 'idle' }, 'x.y', { position: 900, at: when }))!.confidence.deviation;
    expect(await deviationAt(soon)).toBeCloseTo(60, 6);
    expect(await deviationAt(late)).toBeGreaterThan(90);
  });
});
