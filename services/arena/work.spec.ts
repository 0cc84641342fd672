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

  it('counts what waits, what is being played, and who waits for it', async () => {
    const { work, ready, claimed, next } = queue();
    ready(1, 2, 3);
    expect(work.counts.runners).toEqual({ waiting: 3, leased: 0, asking: 0 });
    await next(1);
    expect(work.counts.runners).toEqual({ waiting: 3, leased: 0, asking: 0 });
    claimed(1);
    expect(work.counts.runners).toEqual({ waiting: 2, leased: 1, asking: 0 });
    await next(2);
    claimed(2);
    claimed(3);
    const stop = new AbortController();
    const waiting = next(1, stop.signal);
    expect(work.counts.runners).toEqual({ waiting: 0, leased: 3, asking: 1 });
    stop.abort();
    await waiting;
    expect(work.counts.runners.asking).toBe(0);
    expect(work.counts.table).toEqual({ waiting: 0, leased: 0, asking: 0 });
  });

  it('knows what a command on a match follows from: what made it ready, and the whole it is part of', () => {
    const { work } = queue();
    const heard = (type: ArenaEvent['type'], eventId: string, correlationId: string) => {
      const data = { matchId: id(1), runnerId: 'r-1', attempt: 1, leaseUntil: until(30_000) };
      work.apply({ type, data, position: 1, id: eventId, meta: { correlationId } } as never);
    };
    expect(work.causeOf(id(1))).toBeUndefined();
    heard('MatchReady', 'e-1', 'whole');
    heard('MatchClaimed', 'e-2', 'whole');
    heard('LeaseExtended', 'e-3', 'whole');
    expect(work.causeOf(id(1))).toEqual({ correlationId: 'whole', causationId: 'e-1' });
    heard('MatchRequeued', 'e-4', 'whole');
    expect(work.causeOf(id(1))).toEqual({ correlationId: 'whole', causationId: 'e-4' });
    heard('MatchSettled', 'e-5', 'whole');
    expect(work.causeOf(id(1))).toBeUndefined();
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
    const { work, apply, ready, claimed } = queue();
    expect(work.firstOpen).toBeUndefined();
    ready(1, 2, 3);
    claimed(1);
    apply('MatchRequeued', 1, { attempt: 1 });
    expect(work.firstOpen).toBe(1);
    apply('MatchVoided', 1);
    expect(work.firstOpen).toBe(2);
    apply('MatchSettled', 2);
    apply('MatchSettled', 3);
    expect(work.firstOpen).toBeUndefined();
    expect(work.size).toBe(0);
  });

  it('keeps matches with agents from outside for the table, also after a restart', async () => {
    const { apply, work, next, ready, claimed } = queue();
    apply('MatchProposed', 1, { seats: [{ runtime: 'external' }] });
    apply('MatchProposed', 2, { seats: [{ runtime: 'python' }] });
    // Whoever starts from here has to see the proposal again, which alone says who plays.
    expect(work.firstOpen).toBe(1);
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
    expect(work.firstOpen).toBeUndefined();
  });

  it('counts what is for the table apart from what is for runners, offered or not', async () => {
    const { apply, work, ready, claimed } = queue();
    apply('MatchProposed', 1, { seats: [{ runtime: 'external' }] });
    ready(1, 2);
    expect(work.counts).toMatchObject({ runners: { waiting: 1 }, table: { waiting: 1 } });
    await work.next(1, AbortSignal.timeout(0), true);
    expect(work.counts).toMatchObject({ runners: { waiting: 1 }, table: { waiting: 1 } });
    claimed(1);
    expect(work.counts).toMatchObject({ runners: { waiting: 1, leased: 0 }, table: { waiting: 0, leased: 1 } });
  });

  it('names matches for the table that nobody has taken for too long, and no others', () => {
    const { apply, work, ready, claimed, clock } = queue();
    for (const match of [1, 2, 3]) apply('MatchProposed', match, { seats: [{ runtime: 'external' }] });
    ready(1, 2, 4);
    claimed(2);
    clock.advance(59_999);
    expect(work.unserved(60_000)).toEqual([]);
    clock.advance(1);
    // The third has no stakes yet, and the fourth is for runners.
    expect(work.unserved(60_000)).toEqual([id(1)]);
    apply('MatchReleased', 2);
    clock.advance(60_000);
    expect(work.unserved(60_000)).toEqual([id(1), id(2)]);
  });

  it('begins with nothing when it is filled anew, and serves those who have waited all the time', async () => {
    const { apply, work, ready, claimed, next } = queue();
    ready(1, 2);
    claimed(1);
    await next(1);
    const waiting = work.next(5, AbortSignal.timeout(1_000));
    work.clear();
    expect({ size: work.size, counts: work.counts.runners }).toEqual({
      size: 0,
      counts: { waiting: 0, leased: 0, asking: 1 },
    });
    expect(work.firstOpen).toBeUndefined();
    expect(work.leasesOf('r-1')).toEqual([]);
    apply('MatchReady', 3);
    expect(await waiting).toEqual([id(3)]);
  });
});
