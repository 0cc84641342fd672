import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { whyNoRedis } from '../../ops/engines/redis.js';
import { type OwnRedis, ownRedis } from '../../ops/engines/shared.contract.js';
import { hotBoardsContract } from '../leaderboards/hot.contract.js';
import { RedisBoards } from './redis.js';

const missing = whyNoRedis();

if (missing) {
  describe('hot boards in Redis', () => {
    it('pass the contract of hot boards', (context) => context.skip(missing));
  });
} else {
  let server: OwnRedis;
  let redis: Redis;

  beforeAll(async () => {
    server = await ownRedis();
    redis = server.connect();
  });

  afterAll(() => server?.close());

  hotBoardsContract('Redis', async () => {
    await redis.flushdb();
    return new RedisBoards(redis);
  });

  describe('hot boards in Redis', () => {
    const board = { season: 'all', game: 'chess' };
    const at = (position: number) => ({ position, generation: 'one' });
    const rowsOf = (count: number, from = 0) =>
      Array.from({ length: count }, (_, i) => ({ ...board, agentId: `agent-${from + i}`, rating: from + i }));

    beforeEach(async () => {
      await redis.flushdb();
      await new RedisBoards(redis).fill(at(1), rowsOf(3));
    });

    /** Boards beside whose scripts something happens. */
    const boardsWith = (around: (evaluate: () => Promise<unknown>, nth: number) => Promise<unknown>) => {
      let scripts = 0;
      const evaluate = (...script: Parameters<Redis['eval']>) => around(() => redis.eval(...script), scripts++);
      return new RedisBoards(Object.assign(Object.create(redis), { eval: evaluate }) as Redis);
    };

    it('keep their rows when the client sends again what was carried out already', async () => {
      const twice = boardsWith(async (evaluate) => {
        await evaluate();
        return evaluate();
      });
      await expect(twice.fill(at(2), rowsOf(4))).rejects.toMatchObject({ code: 'BOARDS.BEHIND' });
      expect(await twice.mark()).toEqual(at(2));
      expect(await twice.top(board, 10)).toHaveLength(4);
      const many = { put: rowsOf(10_001, 100), removed: [] };
      expect(await twice.apply(at(3), many, 2)).toBe(false);
      expect(await twice.mark()).toEqual(at(3));
      expect(await twice.rankOf(board, 'agent-0')).toMatchObject({ rank: 10_005 });
    });

    it('are not filled by half when Redis is emptied in the middle, and say so', async () => {
      const rows = rowsOf(12_000);
      // Three parts, and then the switch.
      for (const nth of [1, 2, 3]) {
        const emptied = boardsWith(async (evaluate, script) => {
          if (script === nth) await redis.flushdb();
          return evaluate();
        });
        await expect(emptied.fill(at(2), rows)).rejects.toMatchObject({ code: 'BOARDS.BEHIND' });
        expect(await emptied.mark()).toBeUndefined();
        await emptied.fill(at(2), rows);
        expect(await emptied.rankOf(board, 'agent-0')).toMatchObject({ rank: 12_000 });
      }
    });
  });
}
