import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Postgres, startPostgres } from '../../ops/engines/postgres.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { accountById, agentById, listAgents, versionsOf } from '../agents/query.js';
import { checkLedger } from '../balances/check.js';
import { balancesOf, ledgerSums, statementOf, trialBalance } from '../balances/query.js';
import { balancesView } from '../balances/view.js';
import { Projector } from '../engine/projector.js';
import { rebuild } from '../engine/rebuild.js';
import { longHistory, playedHistory } from '../history.contract.js';
import { headToHeadOf, leaderboard, ratingAt, ratingHistoryOf, seasonsOf, standingsOf } from '../leaderboards/query.js';
import { ratings } from '../leaderboards/table.js';
import { listMatches, matchById, turnsOf } from '../matches/query.js';
import type { matches } from '../matches/table.js';
import { upcast, views } from '../views.js';
import { openDatabase } from './database.js';
import { MemorySink } from './memory.js';
import { PostgresSink } from './postgres.js';
import { sinkContract } from './sink.contract.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-sink-'));
let postgres: Postgres;
let db: DataSource;

beforeAll(async () => {
  postgres = await startPostgres({ folder });
  db = await openDatabase(postgres.url);
  await db.query(`CREATE TABLE contract_scores (player text COLLATE "C", round int4, points int8, rating float8,
    winner bool, tags jsonb, note text, at timestamptz, PRIMARY KEY (player, round))`);
});

afterAll(async () => {
  await db?.destroy();
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

sinkContract('PostgreSQL', async () => new PostgresSink(db));

describe('the views on PostgreSQL', () => {
  it('hold the same rows as in memory', async () => {
    const events = longHistory(await playedHistory());
    const [memory, sink] = [new MemorySink(), new PostgresSink(db)];
    for (const view of views) {
      await new Projector(view, memory, upcast).project(events);
      const projector = new Projector(view, sink, upcast);
      for (let i = 0; i < events.length; i += 50) await projector.project(events.slice(i, i + 50));
      for (const table of view.tables) {
        const rows = await sink.rows(table as typeof matches);
        expect(rows, table.name).toEqual(await memory.rows(table as typeof matches));
        expect(rows.length, table.name).toBeGreaterThan(0);
      }
    }
  });

  it('answer the queries of the gateway', async () => {
    const agents = await listAgents(db, { first: 2 });
    expect(agents.rows.map(({ agentId }) => agentId)).toEqual(['ada.bot', 'bob.bot']);
    expect((await listAgents(db, { first: 2, after: agents.next })).rows.map((a) => a.agentId)).toEqual(['cyd.bot']);

    const all = new Set<string>();
    let after: string | undefined;
    do {
      const page = await listMatches(db, { first: 7, after });
      for (const { matchId } of page.rows) all.add(matchId);
      after = page.next;
    } while (after !== undefined);
    expect(all.size).toBe(24);

    const settled = await listMatches(db, { status: 'settled', agentId: 'cyd.bot', game: 'a', first: 1 });
    const [match] = settled.rows;
    expect(match?.seats.some(({ agentId }) => agentId === 'cyd.bot')).toBe(true);
    expect(await matchById(db, match!.matchId)).toEqual(match);
    expect((await turnsOf(db, [match!.matchId])).map(({ turn }) => turn)).toEqual([1, 2, 3]);

    const standings = await leaderboard(db, { game: 'a' }, 10, '2026-01-01T00:00:00.000Z');
    expect(standings.map(({ rank }) => rank)).toEqual(standings.map((_row, i) => i + 1));
    const { agentId, games } = standings[0]!;
    expect((await ratingHistoryOf(db, { game: 'a' }, agentId, {})).rows).toHaveLength(games);
    expect(ledgerSums(await trialBalance(db))).toEqual({ PLAY: 0n, USD: 0n });
  });

  it('refuse pages and cursors that make no sense', async () => {
    for (const first of [0, -1, 201, 1.5]) {
      await expect(listMatches(db, { first }).then(), `${first}`).rejects.toMatchObject({ code: 'QUERY.BAD_PAGE' });
    }
    await expect(listMatches(db, { after: '%%' })).rejects.toMatchObject({ code: 'QUERY.BAD_CURSOR' });
  });

  describe('postings', () => {
    const posting = (position: number, line: number, cents: number, currency = 'PLAY') =>
      `INSERT INTO postings VALUES (${position}, ${line}, 'account-${line}', '${currency}', ${cents}, 'X', NULL, now())`;
    const inOne = (...statements: string[]) =>
      db.transaction(async (t) => {
        for (const statement of statements) await t.query(statement);
      });

    it('may be written one side after the other', async () => {
      await inOne(posting(900_001, 0, -5), posting(900_001, 1, 5));
    });

    it.each<[string, string[]]>([
      ['one side alone', [posting(900_002, 0, 5)]],
      ['two sides that differ', [posting(900_002, 0, 5), posting(900_002, 1, -4)]],
      ['two sides in two currencies', [posting(900_002, 0, 5), posting(900_002, 1, -5, 'USD')]],
      ['sides at two positions', [posting(900_002, 0, 5), posting(900_003, 1, -5)]],
      ['a changed amount', ['UPDATE postings SET amount_cents = 6 WHERE position = 900001 AND line = 1']],
      ['a moved row', ['UPDATE postings SET position = 900004 WHERE position = 900001 AND line = 1']],
      ['a changed currency', ["UPDATE postings SET currency = 'EUR' WHERE position = 900001 AND line = 1"]],
      ['a removed side', ['DELETE FROM postings WHERE position = 900001 AND line = 1']],
    ])('refuse %s when the transaction ends', async (_what, statements) => {
      await expect(inOne(...statements)).rejects.toThrow(/do not sum to zero/);
      const rows: { sum: string }[] = await db.query('SELECT sum(amount_cents) FROM postings WHERE position > 900000');
      expect(rows).toEqual([{ sum: '0' }]);
    });

    it('may go together', async () => {
      await inOne('DELETE FROM postings WHERE position = 900001');
    });
  });

  describe('the check of the ledger', () => {
    const store = new MemoryEventStore();
    beforeAll(async () => {
      const events = await playedHistory();
      for (const { position: _position, ...event } of events)
        await store.append(event.stream, event.revision - 1, [event]);
      const sink = new PostgresSink(db);
      await sink.reset(balancesView);
      await new Projector(balancesView, sink, upcast).project(events);
    });
    const check = () => checkLedger(db, store, upcast);
    /** As somebody would who can switch the constraint off. */
    const tamper = (statement: string) =>
      db.transaction(async (t) => {
        await t.query('SET LOCAL session_replication_role = replica');
        await t.query(statement);
      });

    it('finds nothing wrong with what the projector wrote', async () => {
      const { position, logPosition, postings, differences } = await check();
      expect(differences).toEqual([]);
      expect(position).toBe(logPosition);
      expect(postings).toBeGreaterThan(50);
    });

    it('names a row that was altered, removed or added, and finds nothing once it is mended', async () => {
      const [row] = await db.query('SELECT * FROM postings WHERE line = 1 ORDER BY position DESC LIMIT 1');
      const name = `postings (position ${row.position}, line 1)`;
      const its = `WHERE position = ${row.position} AND line = 1`;
      await tamper(`UPDATE postings SET amount_cents = amount_cents + 1 ${its}`);
      const altered = `${name}: amount_cents is ${BigInt(row.amount_cents) + 1n}, and the log says ${row.amount_cents}.`;
      expect((await check()).differences).toEqual([altered]);
      await tamper(`UPDATE postings SET amount_cents = amount_cents - 1, account = 'player:eve' ${its}`);
      expect((await check()).differences).toEqual([`${name}: account is player:eve, and the log says ${row.account}.`]);
      await tamper(`UPDATE postings SET account = '${row.account}', line = 7 ${its}`);
      expect((await check()).differences).toEqual([
        `${name} is missing.`,
        `postings (position ${row.position}, line 7) is not in the log.`,
      ]);
      await tamper(`UPDATE postings SET line = 1 WHERE position = ${row.position} AND line = 7`);
      expect((await check()).differences).toEqual([]);
    });

    it('names a balance that its postings do not add up to, and rows beyond the log', async () => {
      await tamper(`UPDATE balances SET balance_cents = balance_cents + 5 WHERE account = 'house:rake'`);
      await tamper(`INSERT INTO postings VALUES (900009, 0, 'x', 'PLAY', 1, 'X', NULL, now())`);
      expect((await check()).differences).toEqual([
        'postings (position 900009, line 0) is not in the log.',
        expect.stringMatching(
          /^balances \(account house:rake, currency PLAY\): balance_cents is \d+, and the log says/,
        ),
      ]);
      await tamper('DELETE FROM postings WHERE position = 900009');
      await tamper(`UPDATE balances SET balance_cents = balance_cents - 5 WHERE account = 'house:rake'`);
      expect((await check()).differences).toEqual([]);
    });

    it('is matched by the statement of every player', async () => {
      const page = await statementOf(db, { accountId: 'ada', currency: 'PLAY', first: 200 });
      const [balance] = await balancesOf(db, 'ada');
      expect(page.rows.reduce((sum, { amountCents }) => sum + amountCents, 0n)).toBe(balance?.balanceCents);
      expect((await statementOf(db, { accountId: 'ada', currency: 'USD' })).rows).toEqual([]);
    });
  });

  it('are migrated once, however often they are opened', async () => {
    const again = await openDatabase(postgres.url);
    expect(await again.query('SELECT count(*)::int AS n FROM migrations')).toEqual([{ n: db.migrations.length }]);
    await again.destroy();
  });
});

describe('a rebuild on PostgreSQL', () => {
  const view = views.find(({ name }) => name === 'leaderboards')!;

  const storeOf = async (events: readonly RecordedEvent[]) => {
    const store = new MemoryEventStore();
    for (const { position: _position, ...event } of events)
      await store.append(event.stream, event.revision - 1, [event]);
    return store;
  };

  it('never shows a half-built table to a reader, and can be interrupted and resumed', async () => {
    const store = await storeOf(await playedHistory());
    const sink = new PostgresSink(db);
    await sink.reset(view);
    await new Projector(view, sink, upcast).project(await store.readAll({}));
    const before = await sink.rows(ratings);

    let reading = true;
    const seen = new Set<string>();
    const reader = (async () => {
      while (reading) {
        const [{ n, games }] = await db.query('SELECT count(*)::int AS n, sum(games)::int AS games FROM ratings');
        seen.add(`${n} rows, ${games} games`);
      }
    })();
    const stopping = new AbortController();
    const phases: string[] = [];
    const build = { view, sink, store, upcast, batchEvents: 20 };
    const first = await rebuild({
      ...build,
      signal: stopping.signal,
      onProgress: ({ position }) => position > 100 && stopping.abort(),
    });
    expect(first).toMatchObject({ swapped: false });
    expect(await sink.building(view)).toEqual({ version: view.version, position: first.position });
    const second = await rebuild({ ...build, onProgress: ({ phase }) => phases.push(phase) });
    expect(second).toMatchObject({ swapped: true, events: (await store.lastPosition()) - first.position });
    expect(phases.slice(-2)).toEqual(['swapping', 'swapped']);
    reading = false;
    await reader;
    expect(seen.size).toBe(1);
    expect(await sink.rows(ratings)).toEqual(before);
  });

  it('keeps constraints, indexes and triggers under their names', async () => {
    const sink = new PostgresSink(db);
    const shape = async () => ({
      indexes: await db.query(`SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1`),
      columns: await db.query(`SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default
        FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2`),
      triggers: await db.query(`SELECT tgname, tgrelid::regclass::text, pg_get_triggerdef(oid) AS definition
        FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2`),
    });
    const before = await shape();
    expect(before.triggers.length).toBeGreaterThan(0);
    const store = await storeOf(await playedHistory(6));
    for (const each of views) {
      await sink.reset(each);
      await rebuild({ view: each, sink, store, upcast });
    }
    expect(await shape()).toEqual(before);
    expect(await db.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'build_%'`)).toEqual([]);
  });

  it('puts aside what the database refuses, and goes on', async () => {
    const events = await playedHistory(6);
    const at = events.findIndex(({ type }) => type === 'MatchSettled');
    const seats = (events[at]!.data as { seats: object[] }).seats;
    // A score that PostgreSQL's jsonb cannot hold.
    const odd = {
      ...events[at]!,
      data: { ...(events[at]!.data as object), seats: seats.map((s) => ({ ...s, agentId: '\ud800' })) },
    };
    const sink = new PostgresSink(db);
    await sink.reset(view);
    await new Projector(view, sink, upcast).project(events.map((event, i) => (i === at ? odd : event)));
    expect(await sink.letters(view)).toMatchObject([{ position: at + 1, code: 'SINK.REFUSED' }]);
    expect(await sink.checkpoint(view)).toBe(events.length);
  });
});

describe('the queries of the gateway on filled tables', () => {
  beforeAll(async () => {
    await db.query(`INSERT INTO matches SELECT md5(i::text), 'g' || i % 5, 's', CASE i % 4 WHEN 0 THEN 'ready' ELSE 'settled' END,
      '', '', jsonb_build_array(jsonb_build_object('agentId', 'a' || i % 500), jsonb_build_object('agentId', 'b' || i % 70)),
      0, 1, 1, 1, 'PLAY', 3, 1, now(), now(), 1000000 + i FROM generate_series(1, 20000) i`);
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
    await db.query(`INSERT INTO ratings (season, game, agent_id, rating, glicko, games, wins, draws, losses, last_match_id, updated_at)
      SELECT s, 'g' || i % 5, 'a' || i, 1500 + i % 997, 1500 + i % 787, 1, 1, 0, 0, 'm', now()
      FROM generate_series(1, 10000) i, unnest(ARRAY['all', '2026-Q1', '2026-Q2']) s`);
    await db.query(`INSERT INTO rating_history (season, game, agent_id, position, games, match_id, before, after, at)
      SELECT 'all', 'g1', 'a' || i % 200, 1000000 + i, i, 'm', 1, 2, now() FROM generate_series(1, 30000) i`);
    await db.query(
      `INSERT INTO head_to_head SELECT 'all', 'g' || i % 5, 'a' || i % 300, 'a' || i, 1, 0, 0 FROM generate_series(1, 20000) i`,
    );
    await db.query('ANALYZE');
  });

  /** Runs the query and looks at the plan of every statement it made. */
  const plansOf = async (ask: (recording: DataSource) => Promise<unknown>) => {
    const made: [string, unknown[]][] = [];
    const query = (sql: string, values: unknown[] = []) => {
      made.push([sql, values]);
      return db.query(sql, values);
    };
    await ask({ query } as unknown as DataSource);
    const plans = made.map(([sql, values]) => db.query(`EXPLAIN (FORMAT JSON) ${sql}`, values));
    return JSON.stringify(await Promise.all(plans));
  };

  const at = '2026-11-01T00:00:00.000Z';
  const board = { game: 'g1' };
  const afterMillion = Buffer.from('1010000').toString('base64url');
  it.each<[string, (recording: DataSource) => Promise<unknown>]>([
    ['matches', (on) => listMatches(on, {})],
    ['a later page of matches', (on) => listMatches(on, { after: afterMillion })],
    ['matches of a game', (on) => listMatches(on, { game: 'g1', after: afterMillion })],
    ['matches of a status', (on) => listMatches(on, { status: 'ready' })],
    ['matches of an agent', (on) => listMatches(on, { agentId: 'a77' })],
    ['a match', (on) => matchById(on, 'x')],
    ['the turns of a match', (on) => turnsOf(on, ['c4ca4238a0b923820dcc509a6f75849b'])],
    ['agents', (on) => listAgents(on, { after: Buffer.from('a5').toString('base64url') })],
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
    ['how a rating came about', (on) => ratingHistoryOf(on, board, 'a5', { first: 20, after: afterMillion })],
    ['a rating at a position', (on) => ratingAt(on, board, 'a5', { position: 1_010_000 })],
    ['a rating at a date', (on) => ratingAt(on, board, 'a5', { at })],
    ['who beat whom', (on) => headToHeadOf(on, board, undefined, 1000)],
    ['whom one beat', (on) => headToHeadOf(on, board, 'a6', 1000)],
  ])('read no table from end to end: %s', async (_what, ask) => {
    const plans = await plansOf(ask);
    expect(plans).toMatch(/Index|Bitmap/);
    expect(plans).not.toMatch(/Seq Scan/);
  });
});
