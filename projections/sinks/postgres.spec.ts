import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Postgres, startPostgres } from '../../ops/engines/postgres.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { listAgents } from '../agents/query.js';
import { checkLedger } from '../balances/check.js';
import { ledgerSums, listBalances, statementOf } from '../balances/query.js';
import { Projector } from '../engine/projector.js';
import { playedHistory } from '../history.contract.js';
import { leaderboard, ratingHistoryOf } from '../leaderboards/query.js';
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
    const events = await playedHistory();
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
    expect((await turnsOf(db, match!.matchId)).map(({ turn }) => turn)).toEqual([1, 2, 3]);

    const standings = await leaderboard(db, 'a', 10);
    expect(standings.map(({ rank }) => rank)).toEqual(standings.map((_row, i) => i + 1));
    expect(await ratingHistoryOf(db, 'a', standings[0]!.agentId)).toHaveLength(standings[0]!.games);
    expect(ledgerSums(await listBalances(db))).toEqual({ PLAY: 0n, USD: 0n });
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
      for (const { position: _position, ...event } of await playedHistory())
        await store.append(event.stream, event.revision - 1, [event]);
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
      const [balance] = await listBalances(db, 'ada');
      expect(page.rows.reduce((sum, { amountCents }) => sum + amountCents, 0n)).toBe(balance?.balanceCents);
      expect((await statementOf(db, { accountId: 'ada', currency: 'USD' })).rows).toEqual([]);
    });
  });

  it('are migrated once, however often they are opened', async () => {
    const again = await openDatabase(postgres.url);
    expect(await again.query('SELECT count(*)::int AS n FROM migrations')).toEqual([{ n: 3 }]);
    await again.destroy();
  });
});
