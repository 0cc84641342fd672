import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { HotBoards, HotRating } from './hot.js';

const board = { season: 'all', game: 'chess' };
const row = (agentId: string, rating: number, game = 'chess'): HotRating => ({ season: 'all', game, agentId, rating });
const put = (...rows: HotRating[]) => ({ put: rows, removed: [] });

/** What boards must do wherever they are kept. `open` gives empty ones. */
export function hotBoardsContract(name: string, open: () => Promise<HotBoards>): void {
  describe(`hot boards in ${name}`, () => {
    let boards: HotBoards;
    beforeEach(async () => {
      boards = await open();
    });

    it('are empty at first', async () => {
      expect(await boards.position()).toBe(0);
      expect(await boards.top(board, 10)).toEqual([]);
      expect(await boards.rankOf(board, 'a')).toBeUndefined();
      expect(await boards.around(board, 'a', 3)).toEqual([]);
    });

    it('rank by rating, equals by name', async () => {
      await boards.apply(5, put(row('b', 1500), row('c', 1500.5), row('a', 1500), row('d', -3.25)));
      expect(await boards.top(board, 10)).toEqual([
        { agentId: 'c', rating: 1500.5, rank: 1 },
        { agentId: 'a', rating: 1500, rank: 2 },
        { agentId: 'b', rating: 1500, rank: 3 },
        { agentId: 'd', rating: -3.25, rank: 4 },
      ]);
      expect(await boards.top(board, 2)).toHaveLength(2);
      expect(await boards.rankOf(board, 'b')).toEqual({ agentId: 'b', rating: 1500, rank: 3 });
      expect(await boards.position()).toBe(5);
    });

    it('show who is around an agent, also at either end', async () => {
      await boards.apply(1, put(...['a', 'b', 'c', 'd', 'e'].map((id, i) => row(id, 2000 - i))));
      const names = async (id: string, each: number) => (await boards.around(board, id, each)).map((r) => r.agentId);
      expect(await names('c', 1)).toEqual(['b', 'c', 'd']);
      expect(await names('a', 2)).toEqual(['a', 'b', 'c']);
      expect(await names('e', 1)).toEqual(['d', 'e']);
      expect((await boards.around(board, 'd', 1)).map(({ rank }) => rank)).toEqual([3, 4, 5]);
    });

    it('keep games and seasons apart', async () => {
      await boards.apply(1, put(row('a', 1), row('a', 2, 'go'), { ...row('a', 3), season: '2026-Q1' }));
      expect((await boards.rankOf({ season: 'all', game: 'go' }, 'a'))?.rating).toBe(2);
      expect((await boards.rankOf({ season: '2026-Q1', game: 'chess' }, 'a'))?.rating).toBe(3);
    });

    it('are moved by no change that they have taken in before', async () => {
      expect(await boards.apply(7, put(row('a', 1500)))).toBe(true);
      expect(await boards.apply(7, put(row('a', 1)))).toBe(false);
      expect(await boards.apply(3, { put: [row('z', 9)], removed: [row('a', 0)] })).toBe(false);
      expect(await boards.top(board, 10)).toEqual([{ agentId: 'a', rating: 1500, rank: 1 }]);
      expect(await boards.position()).toBe(7);
    });

    it('forget who is removed, and everything when they are filled anew', async () => {
      await boards.apply(1, put(row('a', 1), row('b', 2)));
      await boards.apply(2, { put: [], removed: [row('b', 0)] });
      expect((await boards.top(board, 10)).map(({ agentId }) => agentId)).toEqual(['a']);
      await boards.fill(1, [row('x', 5), row('y', 6)]);
      expect((await boards.top(board, 10)).map(({ agentId }) => agentId)).toEqual(['y', 'x']);
      expect(await boards.position()).toBe(1);
    });

    it('stand as if they had been sorted from the beginning, whatever has happened to them', async () => {
      const change = fc.record({ agent: fc.nat(12), rating: fc.integer({ min: 0, max: 6 }), gone: fc.boolean() });
      let position = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(change, { maxLength: 40 }), async (changes) => {
          await boards.fill(++position, []);
          const kept = new Map<string, number>();
          for (const { agent, rating, gone } of changes) {
            const id = `agent-${agent}`;
            if (gone) kept.delete(id);
            else kept.set(id, rating / 3);
            const one = row(id, rating / 3);
            await boards.apply(++position, gone ? { put: [], removed: [one] } : put(one));
          }
          const sorted = [...kept].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
          const expected = sorted.map(([agentId, rating], i) => ({ agentId, rating, rank: i + 1 }));
          expect(await boards.top(board, 100)).toEqual(expected);
          for (const entry of expected) expect(await boards.rankOf(board, entry.agentId)).toEqual(entry);
        }),
        { numRuns: 30, seed: 20260101 },
      );
    });
  });
}
