import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError, type Consumer, type EventStore, isPlaceIn } from '../../services/kernel/index.js';
import { type ClickHouseSink, encode } from '../sinks/clickhouse.js';

/** ClickHouse likes few large inserts: so many events make a full one. */
const BATCH_EVENTS = 20_000;
/** How long events gather while the log is quiet. An insert makes a file a column, whether of one row or of thousands. */
const GATHER_MS = 500;
const BACKOFF_MAX_MS = 10_000;

/** Sent before the last is answered: a batch travels while the one before it is being written. */
const BATCHES_UNDER_WAY = 2;

/** Short, so that what the engine answers is heard, and gets its next work, while rows are being encoded. */
const PAGE_EVENTS = 512;

interface Batch {
  readonly rows: string;
  readonly last: number;
  readonly count: number;
}

interface FeedOptions {
  readonly log: Pick<EventStore, 'readAll' | 'lastPosition'>;
  /** Resolves when the engine can be spoken to; called again after every failure. */
  readonly connect: () => Promise<ClickHouseSink>;
  /** Asked while the log is quiet: an engine that is gone is noticed before the next event. */
  readonly alive?: () => boolean;
  readonly batchEvents?: number;
  readonly gatherMs?: number;
  /** Ends where the log ends, instead of following it. */
  readonly once?: boolean;
  readonly onProgress?: (position: number, last: number) => void;
  readonly onRetry?: (error: unknown) => void;
}

/**
 * Takes the log into ClickHouse: a batch is read and encoded while those before it are on their way and being
 * written, and the checkpoint follows each. Whatever fails is tried again from the checkpoint, for ever and ever more slowly: nothing
 * waits for analytics, so it can.
 */
export function feed(options: FeedOptions): Consumer {
  const { log, connect, batchEvents = BATCH_EVENTS, gatherMs = GATHER_MS, once = false } = options;
  const { alive = () => true, onProgress = () => {}, onRetry = () => {} } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let position = 0;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});

  /** Encoded page by page, so that other work of this process comes in between. */
  async function readBatch(after: number): Promise<Batch> {
    const pages: string[] = [];
    let [last, count] = [after, 0];
    while (count < batchEvents && !signal.aborted) {
      const page = await log.readAll({ after: last, limit: Math.min(batchEvents - count, PAGE_EVENTS) });
      if (page.length === 0) break;
      pages.push(encode(page));
      count += page.length;
      last = page.at(-1)?.position ?? last;
    }
    return { rows: pages.join('\n'), last, count };
  }

  /** What followed from another log, or from what this one has lost, is void. */
  async function startingPoint(sink: ClickHouseSink): Promise<number> {
    const saved = await sink.checkpoint();
    if (await isPlaceIn(log, saved)) return saved;
    await sink.reset();
    return 0;
  }

  async function run(): Promise<void> {
    const sink = await connect();
    position = await startingPoint(sink);
    let read = position;
    const underWay: Promise<void>[] = [];
    let advancing: Promise<unknown> = Promise.resolve();
    const advance = async (written: Promise<unknown>, last: number) => {
      await written;
      await sink.advance(last);
      position = last;
      onProgress(position, await log.lastPosition());
    };
    const write = ({ rows, last }: Batch) => {
      const written = sink.write(rows);
      underWay.push(written);
      // Whatever order they are written in: a checkpoint has all rows behind it.
      advancing = advance(Promise.all([advancing, written]), last);
      // Looked at when their turn comes, or at the end; until then a failure is not unhandled.
      for (const each of [written, advancing]) each.catch(() => {});
    };
    try {
      while (!signal.aborted) {
        const batch = await readBatch(read);
        while (underWay.length >= BATCHES_UNDER_WAY) await underWay.shift();
        if (batch.count > 0 && !signal.aborted) {
          read = batch.last;
          write(batch);
        }
        if (batch.count === batchEvents) continue;
        await advancing;
        if (once) return;
        await pause(gatherMs);
        if (!alive())
          throw new AgonError('ANALYTICS.UNAVAILABLE', 'The analytics engine has ended; it is started again.');
      }
      await advancing;
    } finally {
      // What is still on its way is over before anything begins again.
      await Promise.allSettled([...underWay, advancing]);
    }
  }

  async function keepOn(): Promise<void> {
    for (let failures = 1; !signal.aborted; failures++) {
      const from = position;
      try {
        return await run();
      } catch (error) {
        if (signal.aborted) return;
        if (once || isFinal(error)) throw error;
        onRetry(error);
        if (position > from) failures = 1;
        await pause(Math.min(BACKOFF_MAX_MS, 250 * 2 ** Math.min(failures, 10)));
      }
    }
  }

  const done = keepOn();
  // The owner decides what an ended feed means; an unobserved one must not end the process.
  done.catch(() => {});
  const stop = async () => {
    stopping.abort();
    await done.catch(() => {});
  };
  return { done, stop, position: () => position };
}

/** A damaged or closed log, tables of a newer Agon and a missing package do not get better by asking again. */
const FINAL = ['STORE.CORRUPT', 'STORE.CLOSED', 'ANALYTICS.NEWER_SCHEMA', 'ANALYTICS.NOT_INSTALLED'];
const isFinal = (error: unknown) => error instanceof AgonError && FINAL.includes(error.code);
