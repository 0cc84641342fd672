import { describe, expect, it } from 'vitest';
import { MemoryEventStore } from '../adapters/store/memory.js';
import type { Consumer } from '../kernel/index.js';
import type { Engines } from './engines.js';
import { addConsumerGauges, keptFor } from './gauges.js';
import { bounded, Metrics } from './metrics.js';

describe('a label', () => {
  it('has so many values and no more: what comes later is counted together', () => {
    const label = bounded(3);
    expect(['a', 'b', 'a', 'c', 'd', 'e', 'b'].map(label)).toEqual(['a', 'b', 'a', 'c', 'other', 'other', 'b']);
  });

  it.each(['', 'x'.repeat(121), 'a"b', 'a\nb', 'ü', '{}'])('is never %j', (value) => {
    expect(bounded()(value)).toBe('other');
  });
});

describe('what costs much to look at', () => {
  it('is looked at once in its time, however many ask, and again when that failed', async () => {
    let [now, looks] = [0, 0];
    const look = async () => {
      looks += 1;
      if (looks === 2) throw new Error('away');
      return looks;
    };
    const ask = keptFor(100, look, () => now);
    expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
    now = 99;
    expect(await ask()).toBe(1);
    now = 100;
    await expect(ask()).rejects.toThrow('away');
    expect(await ask()).toBe(3);
    expect(await ask()).toBe(3);
  });
});

describe('metrics', () => {
  it('count what limits refuse by what was limited, and pass on what they say', async () => {
    const metrics = new Metrics();
    let ok = true;
    const limits = metrics.limits({
      take: async () => (ok ? { ok: true, left: 1 } : { ok: false, retryAfterMs: 5 }),
    });
    const rate = { perMinute: 1, burst: 1 };
    expect(await limits.take('address:10.0.0.1', rate)).toEqual({ ok: true, left: 1 });
    ok = false;
    expect(await limits.take('address:10.0.0.1', rate)).toEqual({ ok: false, retryAfterMs: 5 });
    await limits.take('actor:ada', rate);
    await limits.take('actor:bob', rate);
    const text = await metrics.registry.getSingleMetricAsString('agon_rate_limited_total');
    expect(text).toMatch(/\{what="address"\} 1\n/);
    expect(text).toMatch(/\{what="actor"\} 2$/m);
    expect(text).not.toMatch(/10\.0\.0\.1|ada/);
  });

  it('bound what callers bring along', async () => {
    const metrics = new Metrics();
    for (let i = 0; i < 1_000; i++) {
      const from = { requestId: 'r', correlationId: 'c', callerSpanId: undefined, startedMs: 0 };
      metrics.onSeen({ ...from, door: 'grpc', operation: `op${i}`, outcome: 'ok', stream: false, ms: 1 });
      metrics.onProblem('http', `CODE.${i}`);
    }
    const seen = await metrics.registry.getSingleMetric('agon_request_seconds')?.get();
    const operations = new Set(seen?.values.map(({ labels }) => labels.operation));
    expect(operations.size).toBe(257);
    expect((await metrics.registry.getSingleMetric('agon_problems_total')?.get())?.values).toHaveLength(257);
  });
});

describe('gauges', () => {
  it('tell the lag of who has the work, and that the others stand by', async () => {
    const metrics = new Metrics();
    const { registry } = metrics;
    const store = Object.assign(new MemoryEventStore(), { lastPosition: async () => 9_000 });
    const at = (position: number, active: boolean): Consumer => ({
      stop: async () => {},
      done: new Promise(() => {}),
      position: () => position,
      active: () => active,
    });
    const engines = { log: async () => store } as unknown as Engines;
    const consumers = new Map(Object.entries({ relay: at(8_990, true), wallet: at(3, false) }));
    addConsumerGauges({ metrics, engines, consumers });
    const lag = await registry.getSingleMetricAsString('agon_consumer_lag_events');
    expect(lag.match(/^agon.*$/gm)).toEqual(['agon_consumer_lag_events{consumer="relay"} 10']);
    const active = await registry.getSingleMetricAsString('agon_consumer_active');
    expect(active).toMatch(/\{consumer="relay"\} 1\n/);
    expect(active).toMatch(/\{consumer="wallet"\} 0$/m);
  });
});
