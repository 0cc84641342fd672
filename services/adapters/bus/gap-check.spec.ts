import { beforeEach, describe, expect, it } from 'vitest';
import { chain } from '../../kernel/fixtures.js';
import { NO_STREAM, type RecordedEvent } from '../../kernel/index.js';
import { MemoryEventStore } from '../store/memory.js';
import { GapCheck } from './gap-check.js';

describe('what a relay publishes', () => {
  let store: MemoryEventStore;
  let log: readonly RecordedEvent[];
  /** Two streams in turns: revisions 0 and 0, 1 and 1, and so on. */
  beforeEach(async () => {
    store = new MemoryEventStore();
    const [a, b] = [chain('note-a', 6), chain('note-b', 6)];
    for (let i = 0; i < 6; i++) {
      await store.append('note-a', i === 0 ? NO_STREAM : i - 1, a.slice(i, i + 1));
      await store.append('note-b', i === 0 ? NO_STREAM : i - 1, b.slice(i, i + 1));
    }
    log = await store.readAll();
  });
  const without = (...positions: number[]) => log.filter(({ position }) => !positions.includes(position));
  const beyond = (from: number) => log.filter(({ position }) => position > from);
  const gap = (position: number) =>
    expect.objectContaining({ code: 'RELAY.GAP', details: expect.objectContaining({ position }) });

  it.each([0, 1, 5, 11])('is taken when nothing is missing after %i', async (from) => {
    const gaps = new GapCheck(store, from, 1);
    for (const event of beyond(from)) await gaps.check([event]);
  });

  it.each([
    ['in the middle of a stream', [5], 7],
    ['at the beginning of a stream', [1], 3],
    ['of several streams at once', [3, 4, 5, 6], 7],
  ])('is refused when one is missing %s', async (_what, missing, at) => {
    await expect(new GapCheck(store, 0).check(without(...missing))).rejects.toEqual(gap(at));
  });

  it('is refused when the first of a stream after a restart is missing', async () => {
    const rest = beyond(4).filter(({ position }) => position !== 5);
    await expect(new GapCheck(store, 4).check(rest)).rejects.toEqual(gap(7));
  });
});
