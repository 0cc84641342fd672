import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Lease } from './lease.js';

export const never = new AbortController().signal;

/** What every lease promises to whoever waits for it. */
export function leaseContract(name: string, open: () => Lease): void {
  describe(`${name}: a lease`, () => {
    it('has one holder at a time, and goes to the next when it is given back', async () => {
      const lease = open();
      let holders = 0;
      let most = 0;
      const tokens: number[] = [];
      const work = async () => {
        const held = await lease.acquire(never);
        holders += 1;
        most = Math.max(most, holders);
        tokens.push(held.token);
        await sleep(1);
        expect(held.lost.aborted).toBe(false);
        holders -= 1;
        await held.release();
      };
      await Promise.all([work(), work(), work(), work()]);
      expect(most).toBe(1);
      expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
      expect(new Set(tokens).size).toBe(4);
    });

    it('is no longer waited for by those who were told to stop', async () => {
      const lease = open();
      const held = await lease.acquire(never);
      const stopping = new AbortController();
      const waiting = lease.acquire(stopping.signal);
      stopping.abort();
      await expect(waiting).rejects.toThrow();
      await held.release();
      await (await lease.acquire(never)).release();
      await expect(lease.acquire(stopping.signal)).rejects.toThrow();
      await (await lease.acquire(never)).release();
    });
  });
}
