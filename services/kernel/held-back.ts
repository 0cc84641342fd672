import type { Checkpoints } from './ports.js';

/** So many ends of batches are remembered; beyond that every second one, and then of those that come. */
const ENDS_MAX = 1_024;

/** Checkpoints of one group whose work may still be going on when an event was heard. */
export interface HeldBack extends Checkpoints {
  /** How far all work is done: where the batch before the first open event ended, or what was loaded. */
  complete(): number;
}

/**
 * Checkpoints that save only what is complete. What is saved is always where a batch ended or where the group began,
 * because a log can be read on from an event, and from nowhere in between.
 *
 * @example heldBack(checkpoints, () => [...open.values()][0]?.position)
 */
export function heldBack(checkpoints: Checkpoints, firstOpen: () => number | undefined): HeldBack {
  let ends = [0];
  let [every, passed] = [1, 0];
  const begin = (at: number) => {
    ends = [at];
    every = 1;
  };
  const complete = () => {
    const open = firstOpen() ?? Number.POSITIVE_INFINITY;
    const beyond = ends.findIndex((end, i) => i > 0 && end >= open);
    ends = ends.slice((beyond < 0 ? ends.length : beyond) - 1);
    if (ends.length === 1) every = 1;
    return ends[0] as number;
  };
  const note = (heard: number) => {
    if (heard <= (ends.at(-1) as number)) return;
    passed += 1;
    if (ends.length > 2 && passed < every) ends.pop();
    else passed = 0;
    ends.push(heard);
    if (ends.length <= ENDS_MAX) return;
    ends = ends.filter((_, i) => i % 2 === 0 || i === ends.length - 1);
    every *= 2;
  };
  return {
    load: async (group) => {
      const loaded = await checkpoints.load(group);
      begin(loaded);
      return loaded;
    },
    save: (group, heard) => {
      note(heard);
      return checkpoints.save(group, complete());
    },
    saved: (group) => checkpoints.load(group),
    reset: async (group) => {
      await checkpoints.reset(group);
      begin(0);
    },
    bury: (letter) => checkpoints.bury(letter),
    unbury: (group, eventId) => checkpoints.unbury(group, eventId),
    deadLetters: (group) => checkpoints.deadLetters(group),
    complete,
  };
}
