import { beforeEach, describe, expect, it } from 'vitest';
import { Projector } from '../engine/projector.js';
import { type Commit, type RebuildingSink, type RowSweep, type Sink, SWEEP_ROWS } from '../engine/sink.js';
import { type AnyTable, defineTable, json, type RowOf } from '../engine/table.js';
import { defineView } from '../engine/view.js';
import { upcast } from '../views.js';

const scores = defineTable({
  name: 'contract_scores',
  key: ['player', 'round'],
  nullable: ['note'],
  columns: {
    player: 'text',
    round: 'int4',
    points: 'int8',
    rating: 'float8',
    winner: 'bool',
    tags: json<readonly string[]>(),
    note: 'text',
    at: 'timestamptz',
  },
});
type ScoreRow = RowOf<typeof scores>;

const view = defineView({ name: 'contract', version: 1, tables: [scores], on: {} });
const row = (player: string, round: number, change: Partial<ScoreRow> = {}): ScoreRow => ({
  player,
  round,
  points: 9_007_199_254_740_993n,
  rating: 1500.123456789012,
  winner: false,
  tags: ['a "quoted" one', '{}', 'ü'],
  note: null,
  at: '2026-01-01T00:00:00.123Z',
  ...change,
});
const letterAt = (position: number) => ({
  group: 'projection.contract',
  position,
  eventId: 'e',
  type: 'T',
  version: 1,
  code: 'X',
  message: 'x',
  attempts: 1,
});
type Changes = ReadonlyMap<AnyTable, readonly object[]>;
const changes = (...rows: ScoreRow[]) => new Map([[scores, rows]]);

/** From this position of the rows that serve, whichever those are. */
async function commit(sink: Sink, from: number, to: number, changed: Changes, also: Commit = {}, by = view) {
  const standing = await sink.serving(by);
  const mark = { position: from, generation: standing?.generation ?? 'of nobody' };
  return sink.commit(by, standing || from > 0 ? mark : undefined, to, { changes: changed, ...also });
}

const position = async (sink: Sink, by = view) => (await sink.serving(by))?.position ?? 0;

/** What every sink must do, so that a view cannot tell on which one it stands. */
export function sinkContract(name: string, open: () => Promise<RebuildingSink>): void {
  describe(`${name} as a sink`, () => {
    let sink: RebuildingSink;

    beforeEach(async () => {
      sink = await open();
      await sink.reset(view);
      await sink.abandon(view);
    });

    it('starts at position 0, empty', async () => {
      expect(await position(sink)).toBe(0);
      expect(await sink.rows(scores)).toEqual([]);
    });

    it('gives rows back exactly as they were put, in the order of their key', async () => {
      await commit(
        sink,
        0,
        3,
        changes(row('b', 1), row('a', 10), row('a', 9, { note: '', winner: true, points: -1n })),
      );
      expect(await position(sink)).toBe(3);
      expect(await sink.rows(scores)).toEqual([
        row('a', 9, { note: '', winner: true, points: -1n }),
        row('a', 10),
        row('b', 1),
      ]);
    });

    it('gives rows that were added back as they were, packed before or not', async () => {
      const hard = ['\\.', 'a\tb\nc\rd', '\\N', 'back\\slash "and" {quotes}', 'ü𝔸', ''];
      const rows = hard.map((note, round) => row('a', round, { note, tags: [note, '\\n'] }));
      await commit(sink, 0, 1, new Map(), { added: new Map([[scores, rows]]) });
      const last = row('b', 1, { note: null, winner: true, points: -1n });
      const packed = sink.pack ? [sink.pack(scores, [last]), sink.pack(scores, [row('b', 2)])] : [last, row('b', 2)];
      const added = new Map([[scores, [...packed, row('b', 3)]]]);
      await commit(sink, 1, 2, changes(row('b', 2, { note: 'changed' })), { added });
      const all = [...rows, last, row('b', 2, { note: 'changed' }), row('b', 3)];
      expect(await sink.rows(scores)).toEqual(all);
    });

    it('takes all of what was added, or nothing', async () => {
      await commit(sink, 0, 1, changes(row('a', 1)));
      const added = new Map([[scores, [row('a', 2), { ...row('a', 3), round: null }]]]);
      if (sink.pack) {
        await expect(commit(sink, 1, 2, new Map(), { added })).rejects.toMatchObject({ code: 'SINK.REFUSED' });
        expect(await sink.rows(scores)).toEqual([row('a', 1)]);
        expect(await position(sink)).toBe(1);
      }
      await commit(sink, 1, 2, changes(row('a', 4)));
      expect(await sink.rows(scores)).toEqual([row('a', 1), row('a', 4)]);
    });

    it('orders text by code units, whatever the machine speaks', async () => {
      const names = ['b', 'B', 'a', 'ä', 'Z', '_'];
      await commit(sink, 0, 1, changes(...names.map((player) => row(player, 1))));
      const found = (await sink.rows(scores)).map(({ player }) => player);
      expect(found).toEqual([...names].sort());
    });

    it('replaces a row with the same key', async () => {
      await commit(sink, 0, 1, changes(row('a', 1)));
      await commit(sink, 1, 2, changes(row('a', 1, { points: 7n, tags: [] })));
      expect(await sink.rows(scores)).toEqual([row('a', 1, { points: 7n, tags: [] })]);
    });

    it('loads the rows asked for and no others', async () => {
      await commit(sink, 0, 1, changes(row('a', 1), row('a', 2), row('b', 1)));
      const found = await sink.load(scores, [
        ['a', 2],
        ['b', 1],
        ['b', 9],
      ]);
      expect(found).toHaveLength(2);
      expect(found).toEqual(expect.arrayContaining([row('a', 2), row('b', 1)]));
      expect(await sink.load(scores, [])).toEqual([]);
    });

    it('moves the checkpoint without rows', async () => {
      await commit(sink, 0, 41, new Map());
      expect(await position(sink)).toBe(41);
    });

    it('refuses a commit from a position the view has left, and keeps what it has', async () => {
      await commit(sink, 0, 5, changes(row('a', 1)));
      await expect(commit(sink, 0, 6, changes(row('a', 1, { points: 1n })))).rejects.toMatchObject({
        code: 'CHECKPOINT.MOVED',
      });
      expect(await position(sink)).toBe(5);
      expect(await sink.rows(scores)).toEqual([row('a', 1)]);
    });

    it('refuses a commit from a position that nobody has ever been at', async () => {
      await expect(commit(sink, 500, 600, changes(row('a', 1)))).rejects.toMatchObject({
        code: 'CHECKPOINT.MOVED',
      });
      expect(await position(sink)).toBe(0);
      expect(await sink.rows(scores)).toEqual([]);
    });

    it.each([0, 2])('leaves rows of version 1 alone, whatever a build that knows version %i does', async (version) => {
      await commit(sink, 0, 5, changes(row('a', 1)));
      const other = { ...view, version };
      const projector = new Projector(other, sink, upcast);
      await expect(projector.checkpoint()).rejects.toMatchObject({ code: 'PROJECTION.OTHER_VERSION' });
      await expect(commit(sink, 5, 6, changes(row('b', 1)), {}, other)).rejects.toMatchObject({
        code: 'CHECKPOINT.MOVED',
      });
      expect(await sink.serving(view)).toMatchObject({ version: 1, position: 5 });
      expect(await sink.rows(scores)).toEqual([row('a', 1)]);
    });

    it('refuses a commit to rows that took the place of others, though they stand at the same position', async () => {
      const mark = await commit(sink, 0, 5, changes(row('a', 1)));
      expect(await sink.serving(view)).toMatchObject(mark);
      await commit(await sink.beside(view), 0, 5, changes(row('a', 1, { note: 'healed' })));
      await sink.swap(view);
      const late = sink.commit(view, mark, 6, { changes: changes(row('a', 1, { note: 'from what was' })) });
      await expect(late).rejects.toMatchObject({ code: 'CHECKPOINT.MOVED' });
      expect(await sink.rows(scores)).toEqual([row('a', 1, { note: 'healed' })]);
      const again = await sink.commit(view, await sink.serving(view), 6, { changes: changes(row('b', 1)) });
      expect(again.generation).not.toBe(mark.generation);
      expect(await sink.serving(view)).toMatchObject(again);
    });

    it('knows rows that began anew from those before', async () => {
      const mark = await commit(sink, 0, 5, changes(row('a', 1)));
      await sink.reset(view);
      await commit(sink, 0, 5, changes(row('b', 1)));
      await expect(sink.commit(view, mark, 6, {})).rejects.toMatchObject({ code: 'CHECKPOINT.MOVED' });
    });

    it('remembers which builds are wanted and how they go, until one is swapped in or given up', async () => {
      const status = {
        position: 3,
        total: 9,
        events: 3,
        phase: 'building' as const,
        eventsPerSecond: 100,
        secondsLeft: 1,
        trouble: 'DATABASE.UNAVAILABLE: It restarts.',
      };
      await sink.tell(view, status);
      expect((await sink.asked()).get(view.name)).toBeUndefined();
      await sink.ask(view);
      expect((await sink.asked()).get(view.name)).toEqual({ version: 1, status: undefined });
      await sink.tell(view, status);
      await sink.ask({ ...view, version: 2 });
      expect((await sink.asked()).get(view.name)).toEqual({ version: 2, status });
      await sink.abandon(view);
      expect((await sink.asked()).get(view.name)).toBeUndefined();
      await sink.ask(view);
      await sink.beside(view);
      await sink.swap(view);
      expect((await sink.asked()).get(view.name)).toBeUndefined();
    });

    it('lets one build of a view run at a time, and the next when it has ended, however it did', async () => {
      let end: () => void = () => {};
      const first = sink.alone(view, () => new Promise<void>((resolve) => (end = resolve)));
      await expect.poll(() => sink.alone(view, async () => 'in').catch(({ code }) => code)).toBe('PROJECTION.BUILDING');
      expect(await sink.alone({ ...view, name: 'other' }, async () => 'beside')).toBe('beside');
      end();
      await first;
      await expect(sink.alone(view, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
      expect(await sink.alone(view, async () => 'next')).toBe('next');
    });

    it('lets only one of two racing commits through', async () => {
      const race = await Promise.allSettled([
        commit(sink, 0, 1, changes(row('a', 1))),
        commit(sink, 0, 2, changes(row('a', 2))),
      ]);
      expect(race.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(await sink.rows(scores)).toHaveLength(1);
    });

    it('forgets everything on reset', async () => {
      await commit(sink, 0, 5, changes(row('a', 1)));
      await sink.reset(view);
      expect(await position(sink)).toBe(0);
      expect(await sink.rows(scores)).toEqual([]);
    });

    it('removes rows by their key', async () => {
      await commit(sink, 0, 1, changes(row('a', 1), row('a', 2), row('b', 1)));
      const removed = new Map([
        [
          scores,
          [
            ['a', 2],
            ['x', 9],
          ] as const,
        ],
      ]);
      await commit(sink, 1, 2, changes(row('c', 1)), { removed });
      expect((await sink.rows(scores)).map((r) => [r.player, r.round])).toEqual([
        ['a', 1],
        ['b', 1],
        ['c', 1],
      ]);
    });

    it('lets rows go by in order and some at a time, and writes what is made of them with the end', async () => {
      const rounds = Array.from({ length: 2 * SWEEP_ROWS + 2 }, (_, i) => i);
      const those = [...rounds].reverse().map((round) => row('a', round));
      const mark = await commit(sink, 0, 1, changes(...those, row('b', 1, { points: 7n }), row('c', 1)));
      const seen: (readonly ScoreRow[])[] = [];
      const swept: RowSweep = {
        table: scores,
        match: { player: 'a' },
        order: 'round',
        take: (some) => {
          seen.push(some as readonly ScoreRow[]);
          return changes(...(some as ScoreRow[]).slice(0, 1).map(({ round }) => row('made', round)));
        },
      };
      const end = () => ({ changes: changes(row('b', 1)), removed: new Map([[scores, [['c', 1]] as const]]) });
      expect(await sink.sweep(view, mark, 2, swept, end)).toEqual({ ...mark, position: 2 });
      expect(seen.flat()).toEqual(rounds.map((round) => row('a', round)));
      expect(seen.map(({ length }) => length)).toEqual([SWEEP_ROWS, SWEEP_ROWS, 2]);
      const others = (await sink.rows(scores)).filter(({ player }) => player !== 'a');
      expect(others).toEqual([row('b', 1), ...[0, SWEEP_ROWS, 2 * SWEEP_ROWS].map((round) => row('made', round))]);
    });

    it('takes nothing of a sweep that fails on its way, at its end, or comes too late', async () => {
      const mark = await commit(sink, 0, 1, changes(row('a', 1)));
      const swept = (made: ScoreRow, fails = false): RowSweep => ({
        table: scores,
        match: { player: 'a' },
        order: 'round',
        take: () => {
          if (fails) throw new Error('on its way');
          return changes(made);
        },
      });
      const end = () => ({ changes: changes(row('end', 1)) });
      const failing = () => {
        throw new Error('at its end');
      };
      await expect(sink.sweep(view, mark, 2, swept(row('made', 1), true), end)).rejects.toThrow('on its way');
      await expect(sink.sweep(view, mark, 2, swept(row('made', 1)), failing)).rejects.toThrow('at its end');
      const late = sink.sweep(view, { ...mark, position: 0 }, 2, swept(row('made', 1)), end);
      await expect(late).rejects.toMatchObject({ code: 'CHECKPOINT.MOVED' });
      expect(await sink.rows(scores)).toEqual([row('a', 1)]);
      expect(await position(sink)).toBe(1);
    });

    it('keeps dead letters with the commit they came with', async () => {
      const letter = { ...letterAt(3), version: 9, code: 'EVENT.FUTURE_VERSION', message: "It's \u0000 odd." };
      await commit(sink, 0, 5, changes(row('a', 1)), { letters: [letter] });
      await expect(commit(sink, 0, 9, new Map(), { letters: [{ ...letter, position: 8 }] })).rejects.toThrow();
      expect(await sink.letters(view)).toMatchObject([{ position: 3, code: 'EVENT.FUTURE_VERSION', version: 9 }]);
      await sink.reset(view);
      expect(await sink.letters(view)).toEqual([]);
    });

    it('builds beside what serves, and swaps at one stroke', async () => {
      await commit(sink, 0, 5, changes(row('old', 1)));
      const beside = await sink.beside(view);
      expect(await position(beside)).toBe(0);
      await commit(beside, 0, 4, changes(row('new', 1), row('new', 2)));
      expect(await sink.rows(scores)).toEqual([row('old', 1)]);
      expect(await beside.rows(scores)).toHaveLength(2);
      expect(await sink.building(view)).toMatchObject({ version: 1, position: 4 });
      // It is behind what serves: readers would be taken back.
      await expect(sink.swap(view)).rejects.toMatchObject({ code: 'CHECKPOINT.MOVED' });
      await commit(beside, 4, 6, changes(row('new', 3)));
      await sink.swap(view);
      expect((await sink.rows(scores)).map(({ player }) => player)).toEqual(['new', 'new', 'new']);
      expect(await sink.serving(view)).toMatchObject({ version: 1, position: 6 });
      expect(await sink.building(view)).toBeUndefined();
      await commit(sink, 6, 7, changes(row('new', 3, { points: 1n })));
      expect(await sink.rows(scores)).toHaveLength(3);
    });

    it('goes on with a build that was interrupted, unless its rules have changed', async () => {
      await commit(sink, 0, 2, changes(row('old', 1)));
      await commit(await sink.beside(view), 0, 4, changes(row('new', 1)));
      const again = await sink.beside(view);
      expect(await position(again)).toBe(4);
      expect(await again.rows(scores)).toEqual([row('new', 1)]);
      const raised = { ...view, version: 2 };
      const other = await sink.beside(raised);
      expect(await position(other, raised)).toBe(0);
      expect(await other.rows(scores)).toEqual([]);
      await commit(other, 0, 3, changes(row('newer', 1)), {}, raised);
      await sink.swap(raised);
      expect(await sink.serving(raised)).toMatchObject({ version: 2, position: 3 });
      await sink.reset(raised);
    });

    it('takes the dead letters of a build with its rows', async () => {
      await commit(sink, 0, 2, new Map(), { letters: [letterAt(1), letterAt(2)] });
      await commit(await sink.beside(view), 0, 2, new Map(), { letters: [letterAt(2)] });
      await sink.swap(view);
      expect((await sink.letters(view)).map(({ position }) => position)).toEqual([2]);
    });
  });
}
