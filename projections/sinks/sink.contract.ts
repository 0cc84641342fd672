import { beforeEach, describe, expect, it } from 'vitest';
import type { RebuildingSink } from '../engine/sink.js';
import { defineTable } from '../engine/table.js';
import { defineView } from '../engine/view.js';

interface ScoreRow {
  readonly player: string;
  readonly round: number;
  readonly points: bigint;
  readonly rating: number;
  readonly winner: boolean;
  readonly tags: readonly string[];
  readonly note: string | null;
  readonly at: string;
}

export const scores = defineTable<ScoreRow>({
  name: 'contract_scores',
  key: ['player', 'round'],
  columns: {
    player: 'text',
    round: 'int4',
    points: 'int8',
    rating: 'float8',
    winner: 'bool',
    tags: 'jsonb',
    note: 'text',
    at: 'timestamptz',
  },
});

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
const changes = (...rows: ScoreRow[]) => new Map([[scores, rows]]);

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
      expect(await sink.checkpoint(view)).toBe(0);
      expect(await sink.rows(scores)).toEqual([]);
    });

    it('gives rows back exactly as they were put, in the order of their key', async () => {
      await sink.commit(
        view,
        0,
        3,
        changes(row('b', 1), row('a', 10), row('a', 9, { note: '', winner: true, points: -1n })),
      );
      expect(await sink.checkpoint(view)).toBe(3);
      expect(await sink.rows(scores)).toEqual([
        row('a', 9, { note: '', winner: true, points: -1n }),
        row('a', 10),
        row('b', 1),
      ]);
    });

    it('orders text by code units, whatever the machine speaks', async () => {
      const names = ['b', 'B', 'a', 'ä', 'Z', '_'];
      await sink.commit(view, 0, 1, changes(...names.map((player) => row(player, 1))));
      const found = (await sink.rows(scores)).map(({ player }) => player);
      expect(found).toEqual([...names].sort());
    });

    it('replaces a row with the same key', async () => {
      await sink.commit(view, 0, 1, changes(row('a', 1)));
      await sink.commit(view, 1, 2, changes(row('a', 1, { points: 7n, tags: [] })));
      expect(await sink.rows(scores)).toEqual([row('a', 1, { points: 7n, tags: [] })]);
    });

    it('loads the rows asked for and no others', async () => {
      await sink.commit(view, 0, 1, changes(row('a', 1), row('a', 2), row('b', 1)));
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
      await sink.commit(view, 0, 41, new Map());
      expect(await sink.checkpoint(view)).toBe(41);
    });

    it('refuses a commit from a position the view has left, and keeps what it has', async () => {
      await sink.commit(view, 0, 5, changes(row('a', 1)));
      await expect(sink.commit(view, 0, 6, changes(row('a', 1, { points: 1n })))).rejects.toMatchObject({
        code: 'CHECKPOINT.MOVED',
      });
      expect(await sink.checkpoint(view)).toBe(5);
      expect(await sink.rows(scores)).toEqual([row('a', 1)]);
    });

    it('refuses a commit from a position that nobody has ever been at', async () => {
      await expect(sink.commit(view, 500, 600, changes(row('a', 1)))).rejects.toMatchObject({
        code: 'CHECKPOINT.MOVED',
      });
      expect(await sink.checkpoint(view)).toBe(0);
      expect(await sink.rows(scores)).toEqual([]);
    });

    it('starts a view over whose version was raised', async () => {
      await sink.commit(view, 0, 5, changes(row('a', 1)));
      const raised = { ...view, version: 2 };
      expect(await sink.checkpoint(raised)).toBe(0);
      expect(await sink.rows(scores)).toEqual([]);
    });

    it('lets only one of two racing commits through', async () => {
      const race = await Promise.allSettled([
        sink.commit(view, 0, 1, changes(row('a', 1))),
        sink.commit(view, 0, 2, changes(row('a', 2))),
      ]);
      expect(race.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(await sink.rows(scores)).toHaveLength(1);
    });

    it('forgets everything on reset', async () => {
      await sink.commit(view, 0, 5, changes(row('a', 1)));
      await sink.reset(view);
      expect(await sink.checkpoint(view)).toBe(0);
      expect(await sink.rows(scores)).toEqual([]);
    });

    it('removes rows by their key', async () => {
      await sink.commit(view, 0, 1, changes(row('a', 1), row('a', 2), row('b', 1)));
      const removed = new Map([
        [
          scores,
          [
            ['a', 2],
            ['x', 9],
          ] as const,
        ],
      ]);
      await sink.commit(view, 1, 2, changes(row('c', 1)), { removed });
      expect((await sink.rows(scores)).map((r) => [r.player, r.round])).toEqual([
        ['a', 1],
        ['b', 1],
        ['c', 1],
      ]);
    });

    it('finds rows by the values of their columns', async () => {
      await sink.commit(view, 0, 1, changes(row('a', 1), row('a', 2), row('b', 1, { points: 7n })));
      expect(await sink.find(scores, { points: 7n })).toEqual([row('b', 1, { points: 7n })]);
      expect(await sink.find(scores, { player: 'a' })).toHaveLength(2);
      expect(await sink.find(scores, { player: 'a', round: 9 })).toEqual([]);
    });

    it('keeps dead letters with the commit they came with', async () => {
      const letter = {
        ...{ group: 'projection.contract', position: 3, eventId: 'e', type: 'T', version: 9 },
        ...{ code: 'EVENT.FUTURE_VERSION', message: "It's \u0000 odd.", attempts: 1 },
      };
      await sink.commit(view, 0, 5, changes(row('a', 1)), { letters: [letter] });
      await expect(sink.commit(view, 0, 9, new Map(), { letters: [{ ...letter, position: 8 }] })).rejects.toThrow();
      expect(await sink.letters(view)).toMatchObject([{ position: 3, code: 'EVENT.FUTURE_VERSION', version: 9 }]);
      await sink.reset(view);
      expect(await sink.letters(view)).toEqual([]);
    });

    it('builds beside what serves, and swaps at one stroke', async () => {
      await sink.commit(view, 0, 5, changes(row('old', 1)));
      const beside = await sink.beside(view);
      expect(await beside.checkpoint(view)).toBe(0);
      await beside.commit(view, 0, 4, changes(row('new', 1), row('new', 2)));
      expect(await sink.rows(scores)).toEqual([row('old', 1)]);
      expect(await beside.rows(scores)).toHaveLength(2);
      expect(await sink.building(view)).toEqual({ version: 1, position: 4 });
      // It is behind what serves: readers would be taken back.
      await expect(sink.swap(view)).rejects.toMatchObject({ code: 'CHECKPOINT.MOVED' });
      await beside.commit(view, 4, 6, changes(row('new', 3)));
      await sink.swap(view);
      expect((await sink.rows(scores)).map(({ player }) => player)).toEqual(['new', 'new', 'new']);
      expect(await sink.serving(view)).toEqual({ version: 1, position: 6 });
      expect(await sink.building(view)).toBeUndefined();
      await sink.commit(view, 6, 7, changes(row('new', 3, { points: 1n })));
      expect(await sink.rows(scores)).toHaveLength(3);
    });

    it('goes on with a build that was interrupted, unless its rules have changed', async () => {
      await sink.commit(view, 0, 2, changes(row('old', 1)));
      await (await sink.beside(view)).commit(view, 0, 4, changes(row('new', 1)));
      const again = await sink.beside(view);
      expect(await again.checkpoint(view)).toBe(4);
      expect(await again.rows(scores)).toEqual([row('new', 1)]);
      const raised = { ...view, version: 2 };
      const other = await sink.beside(raised);
      expect(await other.checkpoint(raised)).toBe(0);
      expect(await other.rows(scores)).toEqual([]);
      await other.commit(raised, 0, 3, changes(row('newer', 1)));
      await sink.swap(raised);
      expect(await sink.serving(raised)).toEqual({ version: 2, position: 3 });
      await sink.reset(raised);
    });

    it('takes the dead letters of a build with its rows', async () => {
      const letter = (position: number) => ({
        ...{ group: 'projection.contract', position, eventId: 'e', type: 'T', version: 1 },
        ...{ code: 'X', message: 'x', attempts: 1 },
      });
      await sink.commit(view, 0, 2, new Map(), { letters: [letter(1), letter(2)] });
      await (await sink.beside(view)).commit(view, 0, 2, new Map(), { letters: [letter(2)] });
      await sink.swap(view);
      expect((await sink.letters(view)).map(({ position }) => position)).toEqual([2]);
    });
  });
}
