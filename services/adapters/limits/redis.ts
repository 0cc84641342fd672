import type { Redis } from 'ioredis';
import type { Rate, RateLimits, Taken } from '../../kernel/index.js';

/**
 * Token buckets in Redis, shared by every gateway. A bucket is one hash, changed by one script, and the time is that of
 * Redis, so that neither two gateways at once nor a clock that is wrong lets more through. When Redis does not answer,
 * each gateway limits on its own: callers are served, and floods still meet a bound.
 */
export class RedisLimits implements RateLimits {
  constructor(
    private readonly redis: Redis,
    private readonly alone: RateLimits,
    private readonly onLost: (error: unknown) => void = () => {},
    private readonly prefix = 'agon:limits',
  ) {}

  async take(name: string, rate: Rate, tokens = 1): Promise<Taken> {
    try {
      const args = [rate.perMinute, rate.burst, tokens];
      const [ok, amount] = (await this.redis.eval(TAKE, 1, `${this.prefix}:${name}`, ...args)) as [number, number];
      return ok === 1 ? { ok: true, left: amount } : { ok: false, retryAfterMs: Math.max(1, amount) };
    } catch (error) {
      this.onLost(error);
      return this.alone.take(name, rate, tokens);
    }
  }
}

/** Returns (1, tokens left) or (0, milliseconds to wait). A bucket that has had time to fill up again is forgotten. */
const TAKE = `
local perMinute, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1] or burst), tonumber(bucket[2] or now)
tokens = math.min(burst, tokens + math.max(0, now - at) * perMinute / 60000)
local ok = tokens >= wanted
if ok then tokens = tokens - wanted end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil((burst - tokens) * 60000 / perMinute) + 1000)
if ok then return { 1, math.floor(tokens) } end
return { 0, math.ceil((wanted - tokens) * 60000 / perMinute) }
`;
