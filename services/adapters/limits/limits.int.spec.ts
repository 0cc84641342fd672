import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNoRedis } from '../../../ops/engines/redis.js';
import { type OwnRedis, ownRedis } from '../../../ops/engines/shared.contract.js';
import { allowed, claimed, type Limits, newName, rateLimitsContract } from './limits.contract.js';
import { MemoryLimits } from './memory.js';
import { RedisLimits } from './redis.js';

const missing = whyNoRedis();
if (missing) {
  describe('rate limits in Redis', () => {
    it('pass the contract of rate limits', (context) => context.skip(missing));
  });
} else {
  let server: OwnRedis;
  let connections: Redis[];

  beforeAll(async () => {
    server = await ownRedis();
    connections = [server.connect(), server.connect()];
  });

  afterAll(() => server?.close());

  rateLimitsContract('Redis', () => {
    const never = new MemoryLimits(() => 0, 0);
    const [one, other] = connections.map((redis) => new RedisLimits(redis, never));
    return [one as Limits, other as Limits];
  });

  describe('rate limits in Redis', () => {
    it('leave nothing behind when a bucket is full again', async () => {
      const name = newName();
      const [redis] = connections as [Redis];
      await new RedisLimits(redis, new MemoryLimits(() => 0)).take(name, { perMinute: 60_000, burst: 1 });
      const ttl = await redis.pttl(`agon:limits:${name}`);
      expect(ttl).toBeGreaterThan(0);
      expect(ttl).toBeLessThanOrEqual(1_001);
    });

    it('go on alone, and say so, while Redis does not answer', async () => {
      const redis = server.connect();
      redis.disconnect();
      const heard: unknown[] = [];
      const limits = new RedisLimits(redis, new MemoryLimits(() => 0), (error) => heard.push(error));
      expect(await allowed(limits, newName(), 9)).toBe(5);
      expect(await claimed(limits, 9, newName())).toBe(5);
      expect(heard).toHaveLength(18);
    });
  });
}
