import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { type HotBoards, MemoryBoards } from '../../projections/leaderboards/hot.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { RedisLimits } from '../../services/adapters/limits/redis.js';
import type { Clock, Quotas, RateLimits } from '../../services/kernel/index.js';
import type { Config } from '../../services/runtime/settings.js';

export interface Shared {
  readonly boards: HotBoards;
  readonly limits: RateLimits & Quotas;
}

/** What several gateways share, in the Redis that was named; in this process's memory without one. */
export async function sharedFrom(
  { redisUrl }: Config,
  clock: Clock,
  started: <T>(name: string, part: T, stop: () => Promise<unknown>) => T,
  log: Logger,
): Promise<Shared> {
  const memory = new MemoryLimits(() => Date.parse(clock()));
  if (redisUrl === undefined) return { boards: new MemoryBoards(), limits: memory };
  // Commands that can't be sent fail instead of waiting: a limit that makes everybody wait is an outage of its own.
  const redis = new Redis(redisUrl, { lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 1 });
  redis.on('error', (err) => log.warn({ err }, 'Redis does not answer'));
  started('redis', redis, async () => redis.disconnect());
  await redis.connect();
  const limits = new RedisLimits(redis, memory, (err) => log.warn({ err }, 'limits hold for this process alone'));
  return { boards: new RedisBoards(redis), limits };
}
