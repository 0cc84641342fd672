import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { HotBoards, HotRating } from './hot.js';

const board = { season: 'all', game: 'chess' };
const row = (agentId: string, rating: number, game = 'chess'): HotRating => ({ season: 'all', game, agentId, rating });
const at = (position: number, generation = 'one') => ({ position, generation });
const put = (...rows: HotRating[]) => ({ put: rows, removed: [] });

/** What boards must do wherever they are kept. `open` gives empty ones. */
export function hotBoardsContract(name: string, open: () => Promise<HotBoards>): void {
  describe(`hot boards in ${name}`, () => {
    let boards: HotBoards;
    beforeEach(async () => {
      boards = await open();
      await boards.fill(at(0), []);
    });

    it('are empty at first, and take no change before they were filled', async () => {
      boards = await open();
      expect(await boards.mark()).toBeUndefined();
      expect(await boards.top(board, 10)).toEqual([]);
      expect(await boards.rankOf(board, 'a')).toBeUndefined();
      expect(await boards.around(board, 'a', 3)).toEqual([]);
      await expect(boards.apply(at(1), put(row('a', 1)), 0)).rejects.toMatchObject({ code: 'BOARDS.BEHIND' });
    });

    it('rank by rating, equals by name', async () => {
      await boards.apply(at(5), put(row('b', 1500), row('c', 1500.5), row('a', 1500), row('d', -3.25)), 0);
      expect(await boards.top(board, 10)).toEqual([
        { agentId: 'c', rating: 1500.5, rank: 1 },
        { agentId: 'a', rating: 1500, rank: 2 },
        { agentId: 'b', rating: 1500, rank: 3 },
        { agentId: 'd', rating: -3.25, rank: 4 },
      ]);
      expect(await boards.top(board, 2)).toHaveLength(2);
      expect(await boards.rankOf(board, 'b')).toEqual({ agentId: 'b', rating: 1500, rank: 3 });
      expect(await boards.mark()).toEqual(at(5));
    });

    it('show who is around an agent, also at either end', async () => {
      await boards.apply(at(1), put(...['a', 'b', 'c', 'd', 'e'].map((id, i) => row(id, 2000 - i))), 0);
      const names = async (id: string, each: number) => (await boards.around(board, id, each)).map((r) => r.agentId);
      expect(await names('c', 1)).toEqual(['b', 'c', 'd']);
      expect(await names('a', 2)).toEqual(['a', 'b', 'c']);
      expect(await names('e', 1)).toEqual(['d', 'e']);
      expect((await boards.around(board, 'd', 1)).map(({ rank }) => rank)).toEqual([3, 4, 5]);
    });

    it('keep games and seasons apart', async () => {
      await boards.apply(at(1), put(row('a', 1), row('a', 2, 'go'), { ...row('a', 3), season: '2026-Q1' }), 0);
      expect((await boards.rankOf({ season: 'all', game: 'go' }, 'a'))?.rating).toBe(2);
      expect((await boards.rankOf({ season: '2026-Q1', game: 'chess' }, 'a'))?.rating).toBe(3);
    });

    it('are moved by no change that they have taken in before', async () => {
      expect(await boards.apply(at(7), put(row('a', 1500)), 0)).toBe(true);
      expect(await boards.apply(at(7), put(row('a', 1)), 0)).toBe(false);
      expect(await boards.apply(at(3), { put: [row('z', 9)], removed: [row('a', 0)] }, 0)).toBe(false);
      expect(await boards.top(board, 10)).toEqual([{ agentId: 'a', rating: 1500, rank: 1 }]);
      expect(await boards.mark()).toEqual(at(7));
    });

    it('refuse a change that does not begin where they are or before, since they have missed something', async () => {
      await boards.apply(at(7), put(row('a', 1500)), 0);
      await expect(boards.apply(at(12), put(row('a', 1600)), 9)).rejects.toMatchObject({ code: 'BOARDS.BEHIND' });
      expect(await boards.mark()).toEqual(at(7));
      expect(await boards.apply(at(12), put(row('a', 1600)), 7)).toBe(true);
      expect(await boards.apply(at(14), put(row('a', 1700)), 10)).toBe(true);
      expect((await boards.rankOf(board, 'a'))?.rating).toBe(1700);
    });

    it('refuse a change to other rows than they show, whatever its position', async () => {
      await boards.apply(at(7), put(row('a', 1500)), 0);
      for (const position of [5, 7, 9]) {
        const other = boards.apply(at(position, 'two'), put(row('a', 1600)), 0);
        await expect(other).rejects.toMatchObject({ code: 'BOARDS.BEHIND' });
      }
      expect(await boards.mark()).toEqual(at(7));
      await boards.fill(at(7, 'two'), [row('a', 1400)]);
      expect(await boards.apply(at(8, 'two'), put(row('b', 1300)), 7)).toBe(true);
      expect((await boards.top(board, 10)).map(({ rating }) => rating)).toEqual([1400, 1300]);
    });

    it('take a hundred thousand rows at one stroke, filled or changed, and show no half of them', async () => {
      const many = Array.from({ length: 100_000 }, (_, i) => row(`agent-${i}`, 3000 - i / 64));
      const last = many.at(-1)!.agentId;
      await boards.fill(at(1), [row('first', 1), row('gone', 0)]);
      const during = async (work: Promise<unknown>) => {
        const seen = new Set<string>();
        let over = false;
        const done = work.finally(() => (over = true));
        while (!over) {
          const [best] = await boards.top(board, 1);
          seen.add(`${best?.agentId}`);
          const worst = await boards.rankOf(board, last);
          seen.add(worst ? `${last} is ${worst.rank}` : 'not yet');
          await new Promise(setImmediate);
        }
        await done;
        return [...seen];
      };
      const half = /^(?!(first|agent-0|agent-99999|not yet|agent-99999 is (1|100000|100001))$)/;
      const filled = await during(boards.fill(at(2), many));
      expect(filled.filter((text) => half.test(text))).toEqual([]);
      expect(await boards.rankOf(board, last)).toMatchObject({ rank: 100_000 });
      expect(await boards.rankOf(board, 'first')).toBeUndefined();

      const turned = many.map((one, i) => ({ ...one, rating: i / 64 }));
      const change = { put: [row('new', -1), ...turned], removed: [row('agent-0', 0)] };
      const changed = await during(boards.apply(at(3), change, 2));
      expect(changed.filter((text) => half.test(text))).toEqual([]);
      expect(await boards.mark()).toEqual(at(3));
      expect(await boards.rankOf(board, last)).toMatchObject({ rank: 1 });
      expect(await boards.rankOf(board, 'new')).toMatchObject({ rank: 100_001 });
      expect(await boards.rankOf({ season: 'all', game: 'go' }, last)).toBeUndefined();

      await boards.apply(at(4), { put: [], removed: [row('new', 0), ...many] }, 3);
      expect(await boards.top(board, 10)).toEqual([]);
    });

    it('forget who is removed, and everything when they are filled anew', async () => {
      await boards.apply(at(1), put(row('a', 1), row('b', 2)), 0);
      await boards.apply(at(2), { put: [], removed: [row('b', 0)] }, 1);
      expect((await boards.top(board, 10)).map(({ agentId }) => agentId)).toEqual(['a']);
      await boards.fill(at(1), [row('x', 5), row('y', 6)]);
      expect((await boards.top(board, 10)).map(({ agentId }) => agentId)).toEqual(['y', 'x']);
      expect(await boards.mark()).toEqual(at(1));
    });

    it('stand as if they had been sorted from the beginning, whatever has happened to them', async () => {
      const change = fc.record({ agent: fc.nat(12), rating: fc.integer({ min: 0, max: 6 }), gone: fc.boolean() });
      let position = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(change, { maxLength: 40 }), async (changes) => {
          await boards.fill(at(++position), []);
          const kept = new Map<string, number>();
          for (const { agent, rating, gone } of changes) {
            const id = `agent-${agent}`;
            if (gone) kept.delete(id);
            else kept.set(id, rating / 3);
            const one = row(id, rating / 3);
            await boards.apply(at(++position), gone ? { put: [], removed: [one] } : put(one), 0);
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
