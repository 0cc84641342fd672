import type { Redis } from 'ioredis';
import type { Claim, ClaimResult, Quotas, Rate, RateLimits, TakeResult } from '../../kernel/index.js';

/**
 * Token buckets and counts in Redis, shared by every gateway. A bucket is one hash, changed by one script, and the time
 * is that of Redis, so that neither two gateways at once nor a clock that is wrong lets more through. When Redis does not
 * answer, each gateway limits on its own: callers are served, and floods still meet a bound.
 */
export class RedisLimits implements RateLimits, Quotas {
  constructor(
    private readonly redis: Redis,
    private readonly alone: RateLimits & Quotas,
    private readonly onLost: (error: unknown) => void = () => {},
    private readonly prefix = 'agon:limits',
  ) {}

  async take(name: string, rate: Rate, tokens = 1): Promise<TakeResult> {
    try {
      const args = [rate.perMinute, rate.burst, tokens];
      const [ok, amount] = (await this.redis.eval(TAKE, 1, `${this.prefix}:${name}`, ...args)) as [number, number];
      return ok === 1 ? { ok: true, left: amount } : { ok: false, retryAfterMs: Math.max(1, amount) };
    } catch (error) {
      this.onLost(error);
      return this.alone.take(name, rate, tokens);
    }
  }

  async claim(claims: readonly Claim[]): Promise<ClaimResult> {
    // The braces keep all counts in one place of a Redis that is several: one script changes them together.
    const keys = claims.map(({ name }) => `${this.prefix}:{counts}:${name}`);
    try {
      const args = claims.flatMap(({ max, known, keepMs }) => [max, known, keepMs]);
      const [refused, used] = (await this.redis.eval(CLAIM, keys.length, ...keys, ...args)) as [number, number];
      const full = claims[refused - 1];
      return full ? { ok: false, name: full.name, used } : { ok: true, release: () => this.release(keys.splice(0)) };
    } catch (error) {
      this.onLost(error);
      return this.alone.claim(claims);
    }
  }

  /** What cannot be given back is forgotten in time. */
  private async release(keys: readonly string[]): Promise<void> {
    await this.redis.eval(RELEASE, keys.length, ...keys).catch(this.onLost);
  }
}

/** Returns (0, 0), or (which of them, counted from 1; how many there are). */
const CLAIM = `
local counted = {}
for i, key in ipairs(KEYS) do
  counted[i] = math.max(tonumber(redis.call('GET', key) or 0), tonumber(ARGV[3 * i - 1]))
  if counted[i] >= tonumber(ARGV[3 * i - 2]) then return { i, counted[i] } end
end
for i, key in ipairs(KEYS) do redis.call('SET', key, counted[i] + 1, 'PX', ARGV[3 * i]) end
return { 0, 0 }
`;

const RELEASE = `
for _, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or 0) > 0 then redis.call('DECR', key) end
end
`;

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
