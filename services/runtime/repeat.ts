import { setTimeout as sleep } from 'node:timers/promises';

export interface Repeating {
  /** Resolves when what was under way is over. */
  stop(): Promise<void>;
}

/**
 * Does something again and again: never twice at a time, and what fails is told, not lost.
 *
 * @example const sweeper = repeat(500, sweep, (error) => log.warn({ error }));
 */
export function repeat(everyMs: number, work: () => Promise<unknown>, onError: (error: unknown) => void): Repeating {
  const stopping = new AbortController();
  const { signal } = stopping;
  const done = (async () => {
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await work().catch(onError);
    }
  })();
  return {
    stop: () => {
      stopping.abort();
      return done;
    },
  };
}
