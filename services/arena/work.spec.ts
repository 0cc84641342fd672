import { describe, expect, it } from 'vitest';
import { manualClock } from '../kernel/index.js';
import type { ArenaEvent } from './events.js';
import { WorkQueue } from './work.js';

const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
const START = '2026-03-01T12:00:00.000Z';
const until = (ms: number) => new Date(Date.parse(START) + ms).toISOString();

const queue = () => {
  const clock = manualClock(START);
  const work = new WorkQueue(clock);
  let position = 0;
  const apply = (type: ArenaEvent['type'], match: number, data: object = {}) => {
    position += 1;
    work.apply({ type, data: { matchId: id(match), ...data }, position } as never);
  };
  const ready = (...matches: number[]) => {
    for (const match of matches) apply('MatchReady', match);
  };
  const claimed = (match: number, runnerId = 'r-1', attempt = 1, leaseUntil = until(30_000)) =>
    apply('MatchClaimed', match, { runnerId, attempt, leaseUntil });
  const next = (capacity: number, signal = AbortSignal.timeout(0)) => work.next(capacity, signal);
  return { clock, work, apply, ready, claimed, next, position: () => position };
};
const held = (match: number, attempt = 1) => ({ matchId: id(match), runnerId: 'r-1', attempt });

describe('the queue of matches', () => {
  it('offers each match to one runner, in order, and no more than asked for', async () => {
    const { ready, next } = queue();
    ready(1, 2, 3);
    expect(await next(2)).toEqual([id(1), id(2)]);
    expect(await next(2)).toEqual([id(3)]);
    expect(await next(2)).toEqual([]);
    expect(await next(0)).toEqual([]);
  });

  it('gives a higher priority first, and every fourth time whichever became ready first', async () => {
    const { apply, ready, next } = queue();
    ready(1, 2, 3);
    for (const match of [4, 5, 6, 7, 8]) apply('MatchReady', match, { priority: match < 6 ? 1 : 2 });
    expect(await next(5)).toEqual([6, 7, 8, 1, 4].map(id));
    expect(await next(5)).toEqual([5, 2, 3].map(id));
  });

  it('keeps the priority of a match that is played again', async () => {
    const { apply, ready, claimed, next } = queue();
    apply('MatchReady', 1, { priority: 1 });
    await next(1);
    claimed(1);
    ready(2, 3);
    apply('MatchRequeued', 1, { attempt: 1 });
    expect(await next(3)).toEqual([1, 2, 3].map(id));
  });

  it('lets runners wait, first come first served', async () => {
    const { ready, next } = queue();
    const patient = new AbortController().signal;
    const [one, two] = [next(1, patient), next(1, patient)];
    ready(1, 2);
    expect(await Promise.all([one, two])).toEqual([[id(1)], [id(2)]]);
  });

  it('forgets a runner that stopped waiting', async () => {
    const { ready, next } = queue();
    const impatient = new AbortController();
    const gone = next(1, impatient.signal);
    impatient.abort();
    expect(await gone).toEqual([]);
    ready(1);
    expect(await next(1)).toEqual([id(1)]);
  });

  it('offers again what was not claimed, and not what was', async () => {
    const { clock, work, ready, claimed, next } = queue();
    ready(1, 2);
    await next(2);
    claimed(1);
    clock.advance(4_999);
    work.expired();
    expect(await next(2)).toEqual([]);
    clock.advance(1);
    work.expired();
    expect(await next(2)).toEqual([id(2)]);
  });

  it('names the leases that ran out, until they are extended, ended or taken back', () => {
    const { clock, work, apply, ready, claimed } = queue();
    ready(1, 2, 3);
    for (const match of [1, 2, 3]) claimed(match);
    expect(work.expired()).toEqual([]);
    clock.advance(30_000);
    expect(work.expired()).toEqual([held(1), held(2), held(3)]);
    apply('LeaseExtended', 1, { runnerId: 'r-1', attempt: 1, leaseUntil: until(60_000) });
    apply('MatchSettled', 2);
    apply('MatchRequeued', 3, { attempt: 1 });
    expect(work.expired()).toEqual([]);
    expect(work.leasesOf('r-1')).toEqual([held(1)]);
    expect([work.holds(held(1)), work.holds(held(1, 2)), work.holds(held(3))]).toEqual([true, false, false]);
  });

  it.each(['MatchRequeued', 'MatchReleased'] as const)('offers a match again after %s', async (type) => {
    const { apply, ready, claimed, next } = queue();
    ready(1);
    await next(1);
    claimed(1);
    apply(type, 1, { attempt: 1 });
    expect(await next(1)).toEqual([id(1)]);
  });

  it('is complete up to the first match that is not over', () => {
    const { work, apply, ready, claimed, position } = queue();
    expect(work.completeUpTo(7)).toBe(7);
    ready(1, 2, 3);
    claimed(1);
    apply('MatchRequeued', 1, { attempt: 1 });
    expect(work.completeUpTo(position())).toBe(0);
    apply('MatchVoided', 1);
    expect(work.completeUpTo(position())).toBe(1);
    apply('MatchSettled', 2);
    apply('MatchSettled', 3);
    expect(work.completeUpTo(position())).toBe(position());
    expect(work.size).toBe(0);
  });

  it('keeps matches with agents from outside for the table, also after a restart', async () => {
    const { apply, work, next, ready, claimed, position } = queue();
    apply('MatchProposed', 1, { seats: [{ runtime: 'external' }] });
    apply('MatchProposed', 2, { seats: [{ runtime: 'python' }] });
    // Whoever starts from here has to see the proposal again, which alone says who plays.
    expect(work.completeUpTo(position())).toBe(0);
    ready(2, 1);
    const table = (capacity: number) => work.next(capacity, AbortSignal.timeout(0), true);
    expect(await next(5)).toEqual([id(2)]);
    expect(await table(5)).toEqual([id(1)]);
    claimed(1);
    apply('MatchReleased', 1);
    expect(await next(5)).toEqual([]);
    expect(await table(5)).toEqual([id(1)]);
    apply('MatchVoided', 1);
    apply('MatchSettled', 2);
    expect(work.completeUpTo(position())).toBe(position());
  });
});
