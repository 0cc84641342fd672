import type { BatchHandler, RecordedEvent, Subscription } from '../../kernel/index.js';

/** What following a log needs of it. */
export interface Followable {
  readAll(page: { after: number; limit: number }): Promise<readonly RecordedEvent[]>;
  /** Resolves when there may be something beyond this position, or when the signal fires. */
  changed(after: number, signal: AbortSignal): Promise<void>;
}

/**
 * Catch-up and live are the same loop: read what is beyond the cursor, hand it over, move the cursor, and only then
 * wait. There is no switch between two sources, so there is nowhere for a gap or a duplicate to appear.
 */
export function follow(
  log: Followable,
  options: { after: number; batchSize?: number },
  handler: BatchHandler,
): Subscription {
  const { batchSize = 1024 } = options;
  const stopping = new AbortController();
  let cursor = options.after;
  const run = async () => {
    while (!stopping.signal.aborted) {
      const batch = await log.readAll({ after: cursor, limit: batchSize });
      const last = batch.at(-1);
      if (last === undefined) {
        await log.changed(cursor, stopping.signal);
        continue;
      }
      if (stopping.signal.aborted) return;
      await handler(batch);
      cursor = last.position;
    }
  };
  const done = run();
  // The owner decides what an ended subscription means; an unobserved one must not end the process.
  done.catch(() => {});
  return {
    done,
    stop: async () => {
      stopping.abort();
      await done.catch(() => {});
    },
  };
}

/** Wakes those who wait for the log to grow. */
export class Growth {
  private waiting = new Set<() => void>();

  announce(): void {
    const woken = this.waiting;
    this.waiting = new Set();
    for (const wake of woken) wake();
  }

  next(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake);
        this.waiting.delete(wake);
        resolve();
      };
      this.waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
