import { setTimeout as sleep } from 'node:timers/promises';
import type { Serving } from '../../proto/serve.js';
import { WorkQueue } from '../arena/index.js';
import { followWork, type Work } from '../arena/part.js';
import type { Frame } from './host.js';

const BEAT_MS = 50;

type QueueParts = Omit<Parameters<typeof followWork>[0], 'queue' | 'group' | 'playWaitMs'>;

/** Whoever fills a queue, the queue, and the log that it is filled from. */
export interface Filled extends Pick<Work, 'active' | 'heard' | 'forget'> {
  readonly queue: WorkQueue;
  readonly store: Pick<QueueParts['store'], 'lastPosition'>;
}

/** The open matches, for one process of the group at a time. */
export async function queueOf(frame: Frame, parts: QueueParts, group: string): Promise<Filled> {
  const { store, clock } = parts;
  const { playWaitMs } = frame.config;
  const queue = new WorkQueue(clock);
  const work = await frame.need(group, () => followWork({ ...parts, queue, group, playWaitMs }));
  frame.started(group, work, () => work.stop());
  frame.watch(group, work, () => store.lastPosition());
  return { ...work, queue, store };
}

/**
 * Keeps a door open while this process has the queue. Behind a door without it whoever comes would wait for ever: it
 * closes when another process takes over, and opens again once everything was heard anew. Resolves with its address when
 * it opens for the first time.
 */
export async function tendDoor(
  frame: Pick<Frame, 'part' | 'need' | 'started' | 'giveUp' | 'signal'>,
  name: string,
  work: Filled,
  open: () => Promise<Serving>,
): Promise<string> {
  const { signal } = frame;
  let door: Serving | undefined;
  const beat = () => sleep(BEAT_MS, undefined, { signal });
  const isActive = () => work.active?.() !== false;

  /** Those who come back are asked what they still hold, which only somebody who has heard everything can do. */
  async function untilHeard(): Promise<void> {
    const known = await frame.need(name, () => work.store.lastPosition());
    frame.part(name, async () => {
      if (!isActive()) throw new Error('stands by: another process has the queue');
      throw new Error(`the queue has heard ${work.heard()} of ${known}`);
    });
    while (!isActive() || work.heard() < known) await beat();
  }

  async function tend(opened: (address: string) => void): Promise<never> {
    for (;;) {
      await untilHeard();
      door = await frame.need(name, open);
      const { address } = door;
      frame.part(name, async () => address);
      opened(address);
      while (isActive()) await beat();
      frame.part(name, async () => {
        throw new Error('closes: another process has the queue');
      });
      await door.close();
      door = undefined;
      work.forget();
    }
  }

  return new Promise<string>((resolve, reject) => {
    const tending = tend(resolve).catch((error: unknown) => {
      reject(error);
      if (!signal.aborted) frame.giveUp(error);
    });
    frame.started(name, tending, async () => {
      await tending;
      await door?.close();
    });
  });
}
