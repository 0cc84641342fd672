import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Lease } from '../kernel/index.js';

export const never = new AbortController().signal;

/** What every lease promises to whoever waits for it. */
export function leaseContract(name: string, open: () => Lease): void {
  describe(`${name}: a lease`, () => {
    it('has one holder at a time, and goes to the next when it is given back', async () => {
      const lease = open();
      let holders = 0;
      let most = 0;
      const tokens: number[] = [];
      const lost: AbortSignal[] = [];
      const work = async () => {
        const held = await lease.acquire(never);
        holders += 1;
        most = Math.max(most, holders);
        tokens.push(held.token);
        lost.push(held.lost);
        await sleep(1);
        holders -= 1;
        await held.release();
      };
      await Promise.all([work(), work(), work(), work()]);
      expect({ most, holders }).toEqual({ most: 1, holders: 0 });
      // In the order in which they were held, each greater than the one before.
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      expect(tokens).toHaveLength(4);
      expect(lost.map(({ aborted }) => aborted)).toEqual([false, false, false, false]);
    });

    it('is no longer waited for by those who were told to stop', async () => {
      const lease = open();
      const held = await lease.acquire(never);
      const stopping = new AbortController();
      const waiting = lease.acquire(stopping.signal);
      stopping.abort();
      await expect(waiting).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
      await held.release();
      const tokens = [held.token];
      const again = async () => {
        const next = await lease.acquire(never);
        tokens.push(next.token);
        await next.release();
      };
      await again();
      await expect(lease.acquire(stopping.signal)).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
      await again();
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      expect(tokens).toHaveLength(3);
    });
  });
}
