import { setTimeout as sleep } from 'node:timers/promises';
import { type EventStore, isAgonError, type Upcaster } from '../../services/kernel/index.js';
import { Projector } from './projector.js';
import type { BuildProgress, BuriedEvent, RebuildingSink } from './sink.js';
import type { View } from './view.js';

/** A row that changes often is written once a batch: the longer a batch, the less is written. */
export const BATCH_EVENTS = 20_000;

/** Short pages: events are gone before the collector of garbage has to carry them along, and commits get their turn. */
const PAGE_EVENTS = 512;

/** How long readers that were in the way of a swap are left alone before the next try. */
const BUSY_MS = 250;

interface BuildOptions {
  readonly view: View;
  readonly sink: RebuildingSink;
  readonly store: Pick<EventStore, 'readAll' | 'lastPosition'>;
  readonly upcast: Upcaster;
  readonly batchEvents?: number;
  /** Interrupts between two batches; the build stays and can be resumed. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: BuildProgress) => void;
  /** Holds whoever keeps the serving rows up to date, so that the build can pass them. */
  readonly exclusively?: <T>(work: () => Promise<T>) => Promise<T>;
}

interface BuildOutcome {
  /** False when it was interrupted. */
  readonly swapped: boolean;
  readonly position: number;
  readonly events: number;
  /** What could not be taken in this time either. */
  readonly letters: readonly BuriedEvent[];
}

/**
 * Builds a view from the first event on, beside the rows that serve, and puts it in their place. What a kill leaves is
 * gone on with the next time: rows and checkpoint of the build are committed together, and the swap is one transaction.
 */
export async function rebuild(options: BuildOptions): Promise<BuildOutcome> {
  const { view, sink, store, upcast, signal, onProgress = () => {}, exclusively = (work) => work() } = options;
  const { batchEvents = BATCH_EVENTS } = options;
  const beside = await sink.beside(view);
  let events = 0;
  const projector = new Projector(view, beside, upcast, (committed) => {
    position = committed.to;
    events += committed.events;
  });
  const from = await projector.checkpoint();
  let position = from;
  const tell = async (phase: BuildProgress['phase']) =>
    onProgress({ from, position, total: Math.max(position, await store.lastPosition()), events, phase });

  const catchUp = async (): Promise<boolean> => {
    let [after, stepwiseTo] = [position, 0];
    for (;;) {
      const page = signal?.aborted ? [] : await store.readAll({ after, limit: Math.min(PAGE_EVENTS, batchEvents) });
      const end = page.at(-1)?.position ?? after;
      try {
        if (page.length === 0) await projector.flush();
        else if (after < stepwiseTo) await projector.project(page);
        else await projector.ahead(page, batchEvents);
      } catch (error) {
        if (!isAgonError(error, 'SINK.REFUSED')) throw error;
        // One of the events since the last commit. Page by page, the projector finds it and puts it aside.
        [after, stepwiseTo] = [await projector.checkpoint(), end];
        continue;
      }
      await tell('building');
      if (page.length === 0) return !signal?.aborted;
      after = end;
    }
  };

  const swap = () =>
    exclusively(async () => {
      if (!(await catchUp())) return false;
      await tell('swapping');
      await sink.swap(view);
      return true;
    });

  await tell('building');
  for (;;) {
    if (!(await catchUp())) break;
    const letters = await beside.letters(view);
    await sink.polish(view);
    try {
      if (!(await swap())) break;
      await tell('swapped');
      return { swapped: true, position, events, letters };
    } catch (error) {
      if (isAgonError(error, 'CHECKPOINT.MOVED')) {
        // Another process keeps the serving rows up to date and is ahead of us, or the build is behind where we took it to
        // be, since a crash of the database takes its last commits: on from where it is.
        position = await projector.reload();
        continue;
      }
      if (!isAgonError(error, 'PROJECTION.BUSY')) throw error;
      await sleep(BUSY_MS, undefined, { signal }).catch(() => {});
    }
  }
  return { swapped: false, position, events, letters: await beside.letters(view) };
}
