import { describe, expect, it } from 'vitest';
import type { Quotas, RateLimits } from '../../kernel/index.js';

/** Slow enough that no bucket of the suite gains a token while it runs, however slow the machine. */
const SLOW = { perMinute: 0.001, burst: 5 };
let names = 0;
export const newName = () => `bucket-${++names}`;

export const allowed = async (limits: RateLimits, name: string, times: number) => {
  const taken = await Promise.all(Array.from({ length: times }, () => limits.take(name, SLOW)));
  return taken.filter(({ ok }) => ok).length;
};

export type Limits = RateLimits & Quotas;

const claimOf = (name: string, known = 0) => ({ name, max: 5, known, keepMs: 3_600_000 });
export const claimed = async (limits: Quotas, times: number, ...names: string[]) => {
  const all = await Promise.all(Array.from({ length: times }, () => limits.claim(names.map((name) => claimOf(name)))));
  return all.filter(({ ok }) => ok).length;
};

/** What every kind of limits must do. `make` gives two that share what they count, as two processes would. */
export function rateLimitsContract(kind: string, make: () => readonly [Limits, Limits]): void {
  describe(`rate limits in ${kind}`, () => {
    it('let a burst through, and not one more', async () => {
      const [limits] = make();
      expect(await allowed(limits, newName(), 20)).toBe(5);
    });

    it('say what is left, and how long to wait', async () => {
      const [limits] = make();
      const name = newName();
      expect(await limits.take(name, SLOW)).toEqual({ ok: true, left: 4 });
      expect(await limits.take(name, SLOW, 4)).toEqual({ ok: true, left: 0 });
      const refused = await limits.take(name, SLOW);
      expect(refused).toMatchObject({ ok: false });
      expect(!refused.ok && refused.retryAfterMs).toBeGreaterThan(59_000_000);
    });

    it('take nothing for what they refuse', async () => {
      const [limits] = make();
      const name = newName();
      expect((await limits.take(name, SLOW, 6)).ok).toBe(false);
      expect((await limits.take(name, SLOW, 5)).ok).toBe(true);
    });

    it('keep each bucket on its own', async () => {
      const [limits] = make();
      expect(await allowed(limits, newName(), 6)).toBe(5);
      expect(await allowed(limits, newName(), 6)).toBe(5);
    });

    it('fill up again as time goes by', async () => {
      const [limits] = make();
      const name = newName();
      const fast = { perMinute: 60_000, burst: 1 };
      await expect.poll(async () => (await limits.take(name, fast)).ok, { interval: 5 }).toBe(true);
      await expect.poll(async () => (await limits.take(name, fast)).ok, { interval: 5 }).toBe(true);
    });

    it('hold for two who share them, taken together', async () => {
      const [one, other] = make();
      const name = newName();
      const both = await Promise.all([allowed(one, name, 20), allowed(other, name, 20)]);
      expect((both[0] ?? 0) + (both[1] ?? 0)).toBe(5);
    });
  });

  describe(`counts in ${kind}`, () => {
    it('let so many claim one, and not one more, also two who share them', async () => {
      const [one, other] = make();
      const name = newName();
      const both = await Promise.all([claimed(one, 20, name), claimed(other, 20, name)]);
      expect((both[0] ?? 0) + (both[1] ?? 0)).toBe(5);
      expect(await other.claim([claimOf(name)])).toEqual({ ok: false, name, used: 5 });
    });

    it('count what can be seen, and what was claimed and cannot be seen yet, and neither twice', async () => {
      const [limits] = make();
      const name = newName();
      expect(await limits.claim([claimOf(name, 5)])).toEqual({ ok: false, name, used: 5 });
      for (const known of [2, 2, 3]) expect(await limits.claim([claimOf(name, known)])).toMatchObject({ ok: true });
      expect(await limits.claim([claimOf(name, 4)])).toEqual({ ok: false, name, used: 5 });
    });

    it('claim all or nothing, and say what there is too much of', async () => {
      const [limits] = make();
      const [free, full] = [newName(), newName()];
      expect(await claimed(limits, 5, full)).toBe(5);
      expect(await limits.claim([claimOf(free), claimOf(full)])).toEqual({ ok: false, name: full, used: 5 });
      expect(await claimed(limits, 9, free)).toBe(5);
    });

    it('take back what came to nothing, once', async () => {
      const [one, other] = make();
      const name = newName();
      const last = await one.claim([{ ...claimOf(name, 4) }]);
      expect(await claimed(other, 1, name)).toBe(0);
      if (last.ok) for (let i = 0; i < 3; i++) await last.release();
      expect(await claimed(other, 3, name)).toBe(1);
    });

    it('forget what was claimed in time', async () => {
      const [limits] = make();
      const name = newName();
      const short = { ...claimOf(name, 4), keepMs: 1 };
      expect(await limits.claim([short])).toMatchObject({ ok: true });
      await expect.poll(async () => (await limits.claim([short])).ok, { interval: 5 }).toBe(true);
    });
  });
}
