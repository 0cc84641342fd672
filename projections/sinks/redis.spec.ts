import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type RedisServer, startRedis, whyNoRedis } from '../../ops/engines/redis.js';
import { hotBoardsContract } from '../leaderboards/hot.contract.js';
import { RedisBoards } from './redis.js';

const missing = whyNoRedis();

if (missing) {
  describe('hot boards in Redis', () => {
    it('pass the contract of hot boards', (context) => {
      context.skip(`${missing}.`);
    });
  });
} else {
  const folder = mkdtempSync(join(tmpdir(), 'agon-redis-'));
  let server: RedisServer;
  let redis: Redis;

  beforeAll(async () => {
    server = await startRedis(folder);
    redis = new Redis(server.port, '127.0.0.1');
    await redis.ping();
  });

  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  hotBoardsContract('Redis', async () => {
    await redis.flushall();
    return new RedisBoards(redis);
  });
}
