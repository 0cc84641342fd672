import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, it } from 'vitest';
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
}
