import type { Checkpoints } from './ports.js';

/** Checkpoints of a group whose work may still be going on when an event was heard: they save only what is complete. */
export const heldBack = (checkpoints: Checkpoints, completeUpTo: (heard: number) => number): Checkpoints => ({
  load: (group) => checkpoints.load(group),
  save: (group, heard) => checkpoints.save(group, completeUpTo(heard)),
  saved: (group) => checkpoints.load(group),
  reset: (group) => checkpoints.reset(group),
  bury: (letter) => checkpoints.bury(letter),
  unbury: (group, eventId) => checkpoints.unbury(group, eventId),
  deadLetters: (group) => checkpoints.deadLetters(group),
});
