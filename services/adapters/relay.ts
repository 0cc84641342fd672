import { setTimeout as sleep } from 'node:timers/promises';
import {
  asAgonError,
  type BatchHandler,
  type Checkpoints,
  type Consumer,
  type EventStore,
  isPlaceIn,
  type Subscription,
} from '../kernel/index.js';

interface RelayOptions {
  readonly store: EventStore;
  readonly checkpoints: Checkpoints;
  /** Names the checkpoint. */
  readonly group: string;
  readonly batchSize?: number;
  /** Takes over a batch. The checkpoint moves when it resolves; a crash in between delivers the batch again. */
  readonly publish: BatchHandler;
  readonly onRetry?: (error: unknown) => void;
}

const BACKOFF_MS = { first: 25, max: 2_000 };

/** How long to wait after the n-th failure in a row, from 1. */
export const backoffMs = (failures: number): number =>
  Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** Math.min(failures - 1, 10));

/** A log that is damaged or closed does not get better by asking again. */
const isFinal = (error: unknown) => ['STORE.CORRUPT', 'STORE.CLOSED'].includes(asAgonError(error).code);

/**
 * Tails the log from a durable checkpoint and hands every event on, at least once and in order. In the embedded
 * deployment each consumer group is one relay whose `publish` is the consumer; in a cluster one relay publishes to
 * Kafka. Nobody writes to the store and to a bus in one breath.
 *
 * Whenever it fails it starts over from the checkpoint, which may have gone back: a database that lost its last moments
 * in a crash gets those events again.
 */
export async function relay(options: RelayOptions): Promise<Consumer> {
  const { store, checkpoints, group, onRetry = () => {} } = options;
  const stopping = new AbortController();
  let position = await startingPoint();
  let tail = follow(position);

  /** What followed from another log, or from what this one has lost, is void. */
  async function startingPoint(): Promise<number> {
    const saved = await checkpoints.load(group);
    if (await isPlaceIn(store, saved)) return saved;
    await checkpoints.reset(group);
    return 0;
  }

  function follow(after: number): Subscription {
    const { batchSize = 256, publish } = options;
    return store.subscribe({ after, batchSize }, async (events) => {
      await publish(events);
      const last = events.at(-1)?.position ?? position;
      await checkpoints.save(group, last);
      position = last;
    });
  }

  async function run(): Promise<void> {
    for (let failures = 1; ; failures++) {
      const from = position;
      try {
        await tail.done;
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (isFinal(error)) throw error;
        onRetry(error);
      }
      if (position !== from) failures = 1;
      await sleep(backoffMs(failures), undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return;
      try {
        const from = await startingPoint();
        if (stopping.signal.aborted) return;
        position = from;
        tail = follow(position);
      } catch (error) {
        onRetry(error);
      }
    }
  }

  const done = run();
  // The owner decides what an ended relay means; an unobserved one must not end the process.
  done.catch(() => {});
  const stop = async () => {
    stopping.abort();
    await tail.stop();
    await done.catch(() => {});
  };
  return { done, stop, position: () => position };
}
