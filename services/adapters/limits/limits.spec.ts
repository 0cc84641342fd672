import { describe, expect, it } from 'vitest';
import { rateLimitsContract } from './limits.contract.js';
import { MemoryLimits } from './memory.js';

rateLimitsContract('memory', () => {
  const limits = new MemoryLimits(Date.now);
  return [limits, limits];
});

describe('rate limits in memory', () => {
  it('refill by the clock they are given, never above the burst, and survive one that goes back', async () => {
    let now = 1_000_000;
    const limits = new MemoryLimits(() => now);
    const rate = { perMinute: 100, burst: 200 };
    expect((await limits.take('a', rate, 200)).ok).toBe(true);
    expect(await limits.take('a', rate)).toEqual({ ok: false, retryAfterMs: 600 });
    now += 600;
    expect(await limits.take('a', rate)).toEqual({ ok: true, left: 0 });
    now -= 5_000;
    expect((await limits.take('a', rate)).ok).toBe(false);
    now += 3_600_000;
    expect(await limits.take('a', rate)).toEqual({ ok: true, left: 199 });
  });

  it('forget the bucket used longest ago when there are too many', async () => {
    const limits = new MemoryLimits(() => 0, 2);
    const rate = { perMinute: 1, burst: 1 };
    for (const name of ['a', 'b', 'a', 'c']) await limits.take(name, rate);
    expect((await limits.take('a', rate)).ok).toBe(false);
    expect((await limits.take('b', rate)).ok).toBe(true);
  });
});
