import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pidOfRunning, startPostgres } from '../../ops/engines/postgres.js';
import { type OwnDatabase, ownDatabase } from '../../ops/engines/shared.contract.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { listAgents } from '../agents/query.js';
import { checkLedger } from '../balances/check.js';
import { balancesOf, ledgerSums, statementOf, trialBalance } from '../balances/query.js';
import { balancesView } from '../balances/view.js';
import { type Page, type PageRequest, pageOf, pagesOf } from '../engine/page.js';
import { Projector } from '../engine/projector.js';
import { rebuild } from '../engine/rebuild.js';
import { defineTable, type RowOf } from '../engine/table.js';
import { longHistory, playedHistory } from '../history.contract.js';
import { leaderboard, ratingHistoryOf } from '../leaderboards/query.js';
import { ratings } from '../leaderboards/table.js';
import { listMatches, matchById, turnsOf } from '../matches/query.js';
import type { matches } from '../matches/table.js';
import { upcast, views } from '../views.js';
import { asDatabaseError, openDatabase, openReads } from './database.js';
import { MemorySink } from './memory.js';
import { PostgresSink } from './postgres.js';
import { sinkContract } from './sink.contract.js';

let database: OwnDatabase;
let db: DataSource;

beforeAll(async () => {
  database = await ownDatabase();
  db = await openDatabase(database.url);
  await db.query(`CREATE TABLE contract_scores (player text COLLATE "C", round int4, points int8, rating float8,
    winner bool, tags jsonb, note text, at timestamptz, PRIMARY KEY (player, round))`);
});

afterAll(async () => {
  await db?.destroy();
  await database?.drop();
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
    expect(all.size).toBe(25);

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

  it('cut any rows into pages of any size, forwards and backwards, of one parent and of many', async () => {
    const pairs = defineTable({
      name: 'contract_pairs',
      key: ['owner', 'name'],
      columns: { owner: 'text', score: 'float8', name: 'text' },
    });
    type Pair = RowOf<typeof pairs>;
    await db.query('CREATE TABLE contract_pairs (owner text COLLATE "C", score float8, name text COLLATE "C")');
    // Scores repeat, so that the second column decides as well.
    const row = fc.record({
      owner: fc.constantFrom('a', 'b', 'c'),
      score: fc.constantFrom(-1.5, 0, 1e-7, 0.1, 3),
      name: fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('x', 'y', 'é', '"', ' ', '😀') }),
    });
    const rowsOf = fc.uniqueArray(row, { selector: ({ owner, name }) => `${owner} ${name}`, maxLength: 25 });
    const orders = fc.constantFrom([], ['score'], ['name'], ['score', 'name']) as fc.Arbitrary<('score' | 'name')[]>;
    const walk = async (size: number, forwards: boolean, read: (page: PageRequest) => Promise<Page<Pair>>) => {
      const found: Pair[] = [];
      for (let request: PageRequest = forwards ? { first: size } : { last: size }; ; ) {
        const { rows, cursors, next, hasPrevious } = await read(request);
        if (forwards) found.push(...rows);
        else found.unshift(...rows);
        if (forwards ? next === undefined : !hasPrevious) return found;
        request = forwards ? { first: size, after: next } : { last: size, before: cursors[0] };
      }
    };
    await fc.assert(
      fc.asyncProperty(
        rowsOf,
        fc.integer({ min: 1, max: 7 }),
        orders,
        fc.boolean(),
        async (all, size, down, forwards) => {
          await db.query('TRUNCATE contract_pairs');
          for (const { owner, score, name } of all) {
            await db.query('INSERT INTO contract_pairs VALUES ($1, $2, $3)', [owner, score, name]);
          }
          const order = { order: ['score', 'name'], descending: down } as const;
          const sign = (column: 'score' | 'name') => (down.includes(column) ? -1 : 1);
          const byBytes = (a: Pair, b: Pair) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name));
          for (const owner of ['a', 'b']) {
            const mine = all
              .filter((each) => each.owner === owner)
              .sort((a, b) => (a.score - b.score) * sign('score') || byBytes(a, b) * sign('name'));
            const query = { ...order, where: ['owner = $1'], values: [owner] };
            expect(await walk(size, forwards, (page) => pageOf(db, pairs, page, query))).toEqual(mine);
            const parents = { keys: ['c', owner, 'none'], on: 'owner = parent.key' };
            const ofMany = async (page: PageRequest) =>
              (await pagesOf(db, pairs, parents, page, order)).get(owner) as Page<Pair>;
            expect(await walk(size, forwards, ofMany)).toEqual(mine);
          }
        },
      ),
      { numRuns: 40 },
    );
    await db.query('DROP TABLE contract_pairs');
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
    const again = await openDatabase(database.url);
    expect(await again.query('SELECT count(*)::int AS n FROM migrations')).toEqual([{ n: db.migrations.length }]);
    await again.destroy();
  });

  it('are migrated by one of several that start at once on an empty database, and the others wait for it', async () => {
    const empty = await ownDatabase();
    const opened = await Promise.all([2, 3, 2, 5].map((pool) => openDatabase(empty.url, { pool })));
    try {
      const [first] = opened;
      expect(await first?.query('SELECT count(*)::int AS n FROM migrations')).toEqual([{ n: db.migrations.length }]);
      for (const each of opened) expect(await each.query('SELECT count(*)::int AS n FROM ratings')).toEqual([{ n: 0 }]);
      const locks = `SELECT count(*)::int AS n FROM pg_locks JOIN pg_database d ON d.oid = database
         WHERE locktype = 'advisory' AND d.datname = current_database()`;
      expect(await first?.query(locks)).toEqual([{ n: 0 }]);
    } finally {
      for (const each of opened) await each.destroy();
      await empty.drop();
    }
  });
});

describe('those who answer callers', () => {
  it('have no statement that goes on for ever, and those who build views may', async () => {
    const reads = await openReads(database.url, { statementMs: 50 });
    const refused: unknown = await reads.query('SELECT pg_sleep(3)').catch((error: unknown) => error);
    expect(asDatabaseError(refused)).toMatchObject({ code: 'DATABASE.UNAVAILABLE' });
    expect(await reads.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await reads.destroy();
    expect(await db.query('SHOW statement_timeout')).toEqual([{ statement_timeout: '0' }]);
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
    expect(await sink.building(view)).toMatchObject({ version: view.version, position: first.position });
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

  it('keeps what others were granted', async () => {
    await db.query('CREATE ROLE reporter');
    await db.query('GRANT SELECT ON ratings TO reporter WITH GRANT OPTION');
    await db.query('GRANT SELECT (agent_id), UPDATE (before) ON rating_history TO reporter');
    await db.query('GRANT SELECT ON head_to_head TO PUBLIC');
    const granted = () =>
      db.query(
        `SELECT c.relname, c.relacl::text, array_agg(a.attname || a.attacl::text ORDER BY a.attname)
        FILTER (WHERE a.attacl IS NOT NULL) AS columns FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY($1) GROUP BY 1, 2 ORDER BY 1`,
        [view.tables.map(({ name }) => name)],
      );
    const before = await granted();
    expect(JSON.stringify(before)).toContain('reporter=r*');
    const sink = new PostgresSink(db);
    await sink.reset(view);
    await rebuild({ view, sink, store: await storeOf(await playedHistory(6)), upcast });
    expect(await granted()).toEqual(before);
    await db.query('DROP OWNED BY reporter');
    await db.query('DROP ROLE reporter');
  });

  it('waits for a reader that holds on, and lets others read meanwhile', async () => {
    const store = await storeOf(await playedHistory(6));
    const sink = new PostgresSink(db);
    await sink.reset(view);
    await new Projector(view, sink, upcast).project(await store.readAll({}));
    const before = await sink.rows(ratings);
    const reader = db.createQueryRunner();
    await reader.startTransaction();
    await reader.query('SELECT count(*) FROM ratings');
    let tries = 0;
    const done = rebuild({
      view,
      sink,
      store,
      upcast,
      onProgress: ({ phase }) => (tries += Number(phase === 'swapping')),
    });
    await expect.poll(() => tries, { timeout: 10_000 }).toBeGreaterThan(1);
    expect(await sink.rows(ratings)).toEqual(before);
    await reader.commitTransaction();
    await reader.release();
    expect(await done).toMatchObject({ swapped: true });
    expect(await sink.rows(ratings)).toEqual(before);
  });

  it('is not swapped in while the ledger is checked, which would see a part of its rows', async () => {
    const store = await storeOf(await playedHistory());
    const sink = new PostgresSink(db);
    await sink.reset(balancesView);
    await new Projector(balancesView, sink, upcast).project(await store.readAll({}));
    let refused: unknown;
    const readAll: typeof store.readAll = async (...range) => {
      // The moment that the check looks at has passed.
      if (refused === undefined) {
        await new Projector(balancesView, await sink.beside(balancesView), upcast).project(await store.readAll({}));
        refused = await sink.swap(balancesView).then(
          () => 'swapped',
          ({ code }) => code,
        );
      }
      return store.readAll(...range);
    };
    const beside = Object.assign(Object.create(store) as MemoryEventStore, { readAll });
    const { differences, postings } = await checkLedger(db, beside, upcast);
    expect(differences).toEqual([]);
    expect(postings).toBeGreaterThan(50);
    expect(refused).toBe('PROJECTION.BUSY');
    await sink.swap(balancesView);
    expect((await checkLedger(db, store, upcast)).differences).toEqual([]);
  });

  it('is one of many that share a small pool, and of one view there is one at a time in all processes', async () => {
    const other = await openDatabase(database.url, { pool: 2 });
    try {
      const [here, there] = [new PostgresSink(db), new PostgresSink(other)];
      const meanwhile = views.map((each) =>
        there.alone(each, async () => {
          await there.serving(each);
          return here.alone(each, async () => 'twice').catch(({ code }) => code);
        }),
      );
      expect(await Promise.all(meanwhile)).toEqual(views.map(() => 'PROJECTION.BUILDING'));
      for (const each of views) expect(await here.alone(each, async () => 'next')).toBe('next');
    } finally {
      await other.destroy();
    }
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
    expect((await sink.serving(view))?.position).toBe(events.length);
  });
});

describe('a database that is killed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agon-sink-'));
  let own: DataSource;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const server = await startPostgres({ folder });
    stop = server.stop;
    own = await openDatabase(server.url);
  });
  afterAll(async () => {
    await own?.destroy();
    await stop?.();
    rmSync(folder, { recursive: true, force: true });
  });

  it('comes back with all that was taken in before', async () => {
    const [sink, view] = [new PostgresSink(own), balancesView];
    const standing = async () => (await sink.serving(view).catch(() => undefined))?.position;
    for (let round = 0; round < 3; round++) {
      const from = await sink.serving(view);
      const to = (from?.position ?? 0) + 1;
      await sink.commit(view, from, to, {});
      const killed = pidOfRunning(folder);
      expect(killed).toBeDefined();
      process.kill(killed ?? 0, 'SIGKILL');
      // Orphans of the killed server answer for a moment more: what they say is not what came back.
      const another = () => ![undefined, killed].includes(pidOfRunning(folder));
      await expect.poll(another, { timeout: 60_000 }).toBe(true);
      await expect.poll(standing, { timeout: 60_000 }).toBe(to);
    }
  });
});
