import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RecordedEvent, seal } from '../../services/kernel/index.js';
import { balances } from '../balances/table.js';
import { balancesView } from '../balances/view.js';
import { Projector } from '../engine/projector.js';
import { longHistory, playedHistory, wholeHistory } from '../history.contract.js';
import type { ClickHouseSink } from '../sinks/clickhouse.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast } from '../views.js';
import { type ChartName, charts } from './charts.js';
import { feed } from './feed.js';
import { dataTables, migrations } from './schema.js';

/** An engine for the suite: `sink` opens another database on it each time. */
interface Engine {
  sink(database: string): Promise<ClickHouseSink>;
  stop(): Promise<void>;
}

interface SettlementData {
  readonly seats: readonly { readonly agentId: string; readonly score: number }[];
}

const ALWAYS = { from: '1970-01-01 00:00:00.000', to: '2100-01-01 00:00:00.000' };
const META = {
  commandId: 'c',
  inputHash: '',
  correlationId: 'c',
  causationId: 'c',
  actor: { id: 'a', role: 'system' },
} as const;

/** Everything that can be asked: the charts, and the hash of every table. */
async function answersOf(sink: ClickHouseSink): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = await sink.fingerprints();
  for (const name of Object.keys(charts) as ChartName[]) answers[name] = await sink.query(charts[name].sql, ALWAYS);
  return answers;
}

/** Events of whatever type, as a log would hold them. */
export const recorded = (
  position: number,
  type: string,
  data: unknown,
  time = '2026-03-04T05:06:07.089Z',
): RecordedEvent => ({
  ...seal({
    id: `00000000-0000-4000-8000-${position.toString().padStart(12, '0')}`,
    type,
    version: 1,
    stream: 'proofs-log',
    revision: position - 1,
    time,
    data,
    meta: META,
    prevHash: '0'.repeat(64),
  }),
  position,
});

const logOf = (events: readonly RecordedEvent[]) => ({
  readAll: async ({ after = 0, limit = 1000 }: { after?: number; limit?: number } = {}) =>
    events.filter((event) => event.position > after).slice(0, limit),
  lastPosition: async () => events.at(-1)?.position ?? 0,
});

/** What every ClickHouse does, be it in this process or behind an address. */
export function analyticsSuite(name: string, start: () => Promise<Engine>): void {
  describe(`analytics on ${name}`, () => {
    let engine: Engine;
    let history: readonly RecordedEvent[];
    let databases = 0;
    const fresh = async () => {
      const sink = await engine.sink(`suite_${databases++}`);
      await sink.migrate();
      return sink;
    };
    beforeAll(async () => {
      engine = await start();
      history = await playedHistory();
    });
    afterAll(() => engine?.stop());

    it('charts what has happened', async () => {
      const sink = await fresh();
      await sink.insert(history);
      const settled = history.filter(({ type }) => type === 'MatchSettled');
      const ask = <Row>(chart: ChartName) => sink.query<Row>(charts[chart].sql, ALWAYS);
      const perDay = await ask<{ settled: string; voided: string; day: string }>('matchesPerDay');
      expect(perDay.map(({ day }) => day)).toEqual(['2026-01-01', '2026-01-01']);
      expect(perDay.reduce((sum, row) => sum + Number(row.settled), 0)).toBe(settled.length);
      expect(perDay.reduce((sum, row) => sum + Number(row.voided), 0)).toBe(
        history.filter(({ type }) => type === 'MatchVoided').length,
      );
      const rake = settled.reduce((sum, { data }) => sum + BigInt((data as { rakeCents: string }).rakeCents), 0n);
      const [money] = await ask<{ rakeCents: string; potCents: string; paidCents: string }>('revenue');
      expect(rake).toBeGreaterThan(0n);
      expect(BigInt(money!.rakeCents)).toBe(rake);
      expect(BigInt(money!.potCents)).toBe(BigInt(money!.rakeCents) + BigInt(money!.paidCents));
      const agents =
        await ask<Record<'agentId' | 'won' | 'drawn' | 'lost' | 'played' | 'netCents', string>>('agentPerformance');
      expect(agents.every((row) => Number(row.played) === Number(row.won) + Number(row.drawn) + Number(row.lost))).toBe(
        true,
      );
      expect(agents.reduce((sum, row) => sum + BigInt(row.netCents), 0n)).toBe(-rake);
      const [turns] = await ask<{ turns: string; fuelP50: string; fuelP99: string }>('turnPercentiles');
      expect(turns).toMatchObject({ turns: `${3 * settled.length}`, fuelP50: '2', fuelP99: '3' });
      const latency = await ask<{ matches: string }>('matchLatency');
      expect(latency.reduce((sum, row) => sum + Number(row.matches), 0)).toBe(settled.length);
      const winners = settled.flatMap(({ data }) => (data as SettlementData).seats.filter(({ score }) => score === 1));
      const won = new Set(winners.map(({ agentId }) => agentId)).size;
      expect(agents.reduce((sum, row) => sum + Number(row.won), 0)).toBe(winners.length);
      expect(await ask('submissionFunnel')).toEqual([{ submitted: '3', matched: '3', played: '3', won: `${won}` }]);
    });

    it('takes back what a match did that was reversed, and keeps the rake of the ledger', async () => {
      const sink = await fresh();
      const log = (await wholeHistory()).slice(0, -1);
      const reversed = log.filter(({ type }) => type === 'MatchReversed');
      expect(reversed.length).toBeGreaterThan(3);
      await sink.insert(log);
      const ask = <Row>(chart: ChartName) => sink.query<Row>(charts[chart].sql, ALWAYS);
      const revenue = await ask<{ currency: string; rakeCents: string; matches: string }>('revenue');
      const ledger = new MemorySink();
      await new Projector(balancesView, ledger, upcast).project(log);
      const house = (await ledger.rows(balances)).filter(({ account }) => account === 'house:rake');
      const rakeOf = (currency: string) =>
        revenue.filter((row) => row.currency === currency).reduce((sum, row) => sum + BigInt(row.rakeCents), 0n);
      expect(house.map(({ currency }) => currency)).toEqual(['PLAY']);
      expect(house[0]!.balanceCents).toBeGreaterThan(0n);
      expect(rakeOf('PLAY')).toBe(house[0]!.balanceCents);
      const standing = log.filter(({ type }) => type === 'MatchSettled').length - reversed.length;
      expect(revenue.reduce((sum, row) => sum + Number(row.matches), 0)).toBe(standing);
      const perDay = await ask<{ reversed: string }>('matchesPerDay');
      expect(perDay.reduce((sum, row) => sum + Number(row.reversed), 0)).toBe(reversed.length);
      // As if they had never been played, but for the day on which they were taken back.
      const never = await fresh();
      const gone = new Set(reversed.map(({ stream }) => stream));
      await never.insert(
        log.filter(({ type, stream }) => !gone.has(stream) || !/^Match(Settled|Reversed)$/.test(type)),
      );
      for (const chart of ['agentPerformance', 'submissionFunnel'] as const) {
        expect(await ask(chart), chart).toEqual(await never.query(charts[chart].sql, ALWAYS));
      }
    });

    it('brings tables of its first version up to date, with what is in them', async () => {
      const [log, old, whole] = [
        (await wholeHistory()).slice(0, -1),
        await engine.sink(`suite_old_${databases++}`),
        await fresh(),
      ];
      await old.execute(`CREATE DATABASE ${old.database}`);
      for (const statement of migrations[0]!.statements(old.database)) await old.execute(statement);
      await old.insert(log.slice(0, 600));
      await old.migrate();
      await old.insert(log.slice(500));
      await whole.insert(log);
      expect(await answersOf(old)).toEqual(await answersOf(whole));
    });

    it('gives the same answers however events are shuffled, repeated and cut into batches', async () => {
      const whole = await fresh();
      const log = longHistory(history);
      await whole.insert(log);
      const expected = await answersOf(whole);
      const order = fc.shuffledSubarray([...log.keys()], { minLength: log.length, maxLength: log.length });
      const again = fc.subarray([...log.keys()]);
      const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 6 });
      await fc.assert(
        fc.asyncProperty(order, again, cuts, async (first, repeated, sizes) => {
          const sink = await fresh();
          // What has been sent twice is to be there twice: merging it would hide what the questions do about it.
          for (const name of dataTables) await sink.execute(`SYSTEM STOP MERGES ${sink.database}.${name}`);
          const sent = [...first, ...repeated].map((index) => log[index]!);
          for (let at = 0, cut = 0; at < sent.length; cut++) {
            const size = sizes[cut % sizes.length]!;
            await sink.insert(sent.slice(at, at + size));
            at += size;
          }
          expect(await answersOf(sink)).toEqual(expected);
        }),
        { numRuns: 4, seed: 20260101 },
      );
    });

    it('keeps amounts to the last digit and times to the millisecond', async () => {
      const sink = await fresh();
      const cents = '999999999999999999';
      const terms = { matchId: 'm', game: 'a', currency: 'PLAY', stakeCents: cents, potCents: cents, rakeCents: cents };
      const seats = [{ agentId: 'x.y', accountId: 'x', score: 1, payoutCents: cents }];
      await sink.insert([1, 2, 3].map((position) => recorded(position, 'MatchSettled', { ...terms, seats })));
      const [sum] = await sink.query<{ potCents: string }>(charts.revenue.sql, ALWAYS);
      expect(BigInt(sum!.potCents)).toBe(3n * BigInt(cents));
      const rows = await sink.query<{ time: string; data: string }>('SELECT time, data FROM events WHERE position = 1');
      expect(rows[0]?.time).toBe('2026-03-04 05:06:07.089');
      expect(JSON.parse(rows[0]!.data)).toEqual({ ...terms, seats });
    });

    it('takes in events that nobody has heard of yet, and charts proofs by their name', async () => {
      const sink = await fresh();
      await sink.insert([
        recorded(1, 'PromptProven', { agentId: 'ada.bot', index: 4 }),
        recorded(2, 'SomethingElse', 'not even an object'),
        recorded(3, 'TurnPlayed', { fuel: -1, seat: 'two', matchId: 7 }, 'yesterday'),
        recorded(4, 'OddText', { agentId: `'"\\\n\t\u0000☃`, nested: { deep: [1, null] } }),
      ]);
      expect(await sink.query(charts.promptProofs.sql, ALWAYS)).toEqual([
        { day: '2026-03-04', proofs: '1', agents: '1' },
      ]);
      const rows = await sink.query<{ data: string; agent_id: string }>(
        'SELECT data, agent_id FROM events FINAL ORDER BY position',
      );
      expect(rows).toHaveLength(4);
      expect(rows[3]?.agent_id).toBe(`'"\\\n\t\u0000☃`);
      expect(JSON.parse(rows[3]!.data)).toMatchObject({ nested: { deep: [1, null] } });
    });

    it('migrates once, and says so when the tables are of a newer version', async () => {
      const sink = await fresh();
      await sink.insert(history.slice(0, 40));
      const before = await sink.fingerprints();
      await sink.migrate();
      expect(await sink.fingerprints()).toEqual(before);
      expect(await sink.query('SELECT version FROM migrations ORDER BY version')).toEqual([
        { version: 1 },
        { version: 2 },
      ]);
      const newer = await engine.sink(sink.database);
      await sink.query(`SELECT 1`);
      await newer.execute(`INSERT INTO ${sink.database}.migrations VALUES (99)`);
      await expect(sink.migrate()).rejects.toMatchObject({ code: 'ANALYTICS.NEWER_SCHEMA' });
    });

    it('forgets old rows only when told to', async () => {
      const sink = await fresh();
      const ttl = async () => {
        const sql = `SELECT countIf(create_table_query LIKE '%TTL%') AS n FROM system.tables WHERE database = {db:String}`;
        return Number((await sink.query<{ n: string }>(sql, { db: sink.database }))[0]?.n);
      };
      expect(await ttl()).toBe(0);
      await sink.migrate(30);
      expect(await ttl()).toBe(9);
      await sink.insert([recorded(1, 'PromptProven', { agentId: 'a.b' }, '2001-01-01T00:00:00.000Z')]);
      await sink.execute(`OPTIMIZE TABLE ${sink.database}.prompt_proofs FINAL`);
      expect(await sink.query('SELECT position FROM prompt_proofs')).toEqual([]);
      await sink.migrate(0);
      expect(await ttl()).toBe(0);
    });

    it('follows a log from its checkpoint, in batches, and starts over when the log was put back', async () => {
      const sink = await fresh();
      const follow = (events: readonly RecordedEvent[]) =>
        feed({ log: logOf(events), connect: async () => sink, batchEvents: 64, once: true }).done;
      await follow(history.slice(0, 100));
      expect(await sink.checkpoint()).toBe(100);
      await follow(history);
      expect(await sink.checkpoint()).toBe(history.length);
      const whole = await fresh();
      await whole.insert(history);
      expect(await answersOf(sink)).toEqual(await answersOf(whole));
      await follow(history.slice(0, 70));
      expect(await sink.checkpoint()).toBe(70);
      expect(await sink.query('SELECT count() AS n FROM events FINAL')).toEqual([{ n: '70' }]);
    });

    it('sends a batch again that failed, and moves the checkpoint only after it', async () => {
      const sink = await fresh();
      let failed = false;
      const seen: number[] = [];
      const failing = Object.create(sink) as ClickHouseSink;
      failing.write = async (rows) => {
        await sink.write(rows);
        if (failed || !rows.includes('"position":101,')) return;
        failed = true;
        // Long enough for a checkpoint that does not wait for it.
        await sleep(300);
        throw new Error('lost on the way back');
      };
      const following = feed({
        log: logOf(history),
        connect: async () => failing,
        batchEvents: 100,
        gatherMs: 5,
        onRetry: () => void sink.checkpoint().then((position) => seen.push(position)),
      });
      await expect.poll(() => following.position(), { timeout: 20_000 }).toBe(history.length);
      await following.stop();
      expect(seen).toHaveLength(1);
      expect(seen[0]).toBeLessThanOrEqual(100);
      const whole = await fresh();
      await whole.insert(history);
      expect(await answersOf(sink)).toEqual(await answersOf(whole));
    });

    it('says in its own words what ClickHouse refuses', async () => {
      const sink = await fresh();
      await expect(sink.query('SELECT nothing FROM nowhere')).rejects.toMatchObject({
        code: 'ANALYTICS.REFUSED',
        details: { clickhouseCode: 60, clickhouseType: 'UNKNOWN_TABLE' },
      });
    });
  });
}
