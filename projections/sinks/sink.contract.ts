import { beforeEach, describe, expect, it } from 'vitest';
import type { Sink } from '../engine/projector.js';
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
export function sinkContract(name: string, open: () => Promise<Sink>): void {
  describe(`${name} as a sink`, () => {
    let sink: Sink;

    beforeEach(async () => {
      sink = await open();
      await sink.reset(view);
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
  });
}
