import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { chain, headAfter } from '../../kernel/fixtures.js';
import { AgonError, type EventStore, NO_STREAM, type RecordedEvent } from '../../kernel/index.js';

/** Waits for something to become true; whatever is not after half a minute hangs. */
export async function until(condition: () => boolean): Promise<void> {
  for (const endMs = performance.now() + 30_000; !condition(); await turn()) {
    if (performance.now() > endMs) expect.fail('It did not come to that.');
  }
}

/** Ten thousand events: more than any store holds back for a follower that is slow. */
export const MANY = 10_000;
let many: ReturnType<typeof chain>[] | undefined;
export async function fillWithMany(store: EventStore): Promise<void> {
  many ??= Array.from({ length: MANY / 400 }, (_, i) => chain(`many-${i}`, 400));
  await Promise.all(many.map((events, i) => store.append(`many-${i}`, NO_STREAM, events)));
}

/** Stands still a few times, long enough for whatever is behind it to fill up; never at a round number of events. */
export function stalling(times = 3, stall: () => Promise<unknown> = () => sleep(250)) {
  let left = times;
  return async (seen: number) => {
    if (left === 0 || seen % 256 < 241) return;
    left -= 1;
    await stall();
  };
}

/** What following a log promises: every event once, in order, with no gap where catching up turns into living. */
export function subscriptionContract(current: () => EventStore, counts: boolean): void {
  describe('a subscription', () => {
    const collect = (after: number, batchSize?: number) => {
      const seen: RecordedEvent[] = [];
      const options = batchSize === undefined ? { after } : { after, batchSize };
      const subscription = current().subscribe(options, async (events) => {
        expect(events.length).toBeLessThanOrEqual(batchSize ?? Number.POSITIVE_INFINITY);
        await turn();
        seen.push(...events);
      });
      return { subscription, seen, positions: () => seen.map((event) => event.position) };
    };
    const fill = async (stream: string, count: number) => {
      await current().append(stream, NO_STREAM, chain(stream, count));
    };
    /** The whole log's positions, from the nth event on. */
    const placesAfter = async (nth = 0) => {
      const places: number[] = [];
      for (let after = 0; ; after = places.at(-1) as number) {
        const page = await current().readAll({ after });
        if (page.length === 0) return places.slice(nth);
        places.push(...page.map(({ position }) => position));
      }
    };
    const placeOf = async (nth: number) => (nth === 0 ? 0 : ((await placesAfter())[nth - 1] ?? 0));

    it.each([
      ['from the beginning', 0],
      ['from the middle', 57],
      ['from the end', 120],
    ])('%s has no gap and no duplicate while hundreds of appends run', async (_what, nth) => {
      for (let i = 0; i < 40; i++) await fill(`note-${i}`, 3);
      const after = await placeOf(nth);
      const follower = collect(after, 16);
      const writers = Array.from({ length: 25 }, async (_, writer) => {
        const stream = `live-${writer}`;
        const events = chain(stream, 12);
        for (const [i, event] of events.entries()) {
          await current().append(stream, i - 1, [event]);
          if (i === 5) await turn();
        }
      });
      await Promise.all(writers);
      await until(() => follower.seen.length >= 420 - nth);
      await follower.subscription.stop();
      expect(follower.positions()).toEqual(await placesAfter(nth));
      expect(follower.seen).toEqual(await current().readAll({ after }));
    });

    it('serves several followers at their own pace', async () => {
      for (let i = 0; i < 5; i++) await fill(`early-${i}`, 2);
      const followers = [collect(0, 1), collect(0, 7), collect(await placeOf(10))];
      for (let i = 0; i < 25; i++) await fill(`note-${i}`, 2);
      await until(() => followers.every((follower, i) => follower.seen.length >= (i === 2 ? 50 : 60)));
      await Promise.all(followers.map((follower) => follower.subscription.stop()));
      const all = await placesAfter();
      expect(followers.map((follower) => follower.positions())).toEqual([all, all, all.slice(10)]);
    });

    it.each([1, 256, 700, 2_048])(
      'loses nothing of a long log while its handler stalls, %i at a time',
      async (size) => {
        await fillWithMany(current());
        const seen: number[] = [];
        const stall = stalling();
        const subscription = current().subscribe({ after: 0, batchSize: size }, async (events) => {
          seen.push(...events.map(({ position }) => position));
          await stall(seen.length);
        });
        await until(() => seen.length >= MANY);
        await subscription.stop();
        expect(seen).toEqual(await placesAfter());
      },
    );

    it('really stops: whatever comes later reaches only the others', async () => {
      await fill('note-a', 3);
      const [stopped, going] = [collect(0), collect(0)];
      await until(() => stopped.seen.length === 3);
      await stopped.subscription.stop();
      await expect(stopped.subscription.done).resolves.toBeUndefined();
      await fill('note-b', 5);
      await until(() => going.seen.length === 8);
      await going.subscription.stop();
      expect(stopped.positions()).toEqual((await placesAfter()).slice(0, 3));
    });

    it('finishes the batch in hand before it stops', async () => {
      await fill('note-a', 3);
      let finished = false;
      let started = false;
      const subscription = current().subscribe({ after: 0 }, async () => {
        started = true;
        for (let i = 0; i < 20; i++) await turn();
        finished = true;
      });
      await until(() => started);
      await subscription.stop();
      expect(finished).toBe(true);
    });

    it('ends with the error of its handler, and delivers nothing after it', async () => {
      await fill('note-a', 4);
      const seen: number[] = [];
      const subscription = current().subscribe({ after: 0, batchSize: 1 }, async ([event]) => {
        seen.push(event?.revision ?? -1);
        if (event?.revision === 1) throw new AgonError('TEST.FAILED', 'The second one fails.');
      });
      await expect(subscription.done).rejects.toMatchObject({ code: 'TEST.FAILED' });
      expect(seen).toEqual([0, 1]);
    });

    it('shows an event only once it can be read', async () => {
      const unread: string[] = [];
      const subscription = current().subscribe({ after: 0 }, async (events) => {
        for (const { stream, revision, hash } of events) {
          const [there] = await current().readStream(stream, { fromRevision: revision, limit: 1 });
          if (there?.hash !== hash) unread.push(`${stream} ${revision}`);
        }
      });
      let after = headAfter([]);
      for (let i = 0; i < 50; i++) {
        const events = chain('note-a', 1, { after });
        await current().append('note-a', i - 1, events);
        after = headAfter(events);
      }
      await subscription.stop();
      expect(unread).toEqual([]);
    });

    // Elsewhere nobody can say what will be the position of an event.
    if (!counts) return;
    it('waits beyond the end for what is not there yet', async () => {
      await fill('note-a', 2);
      const follower = collect(4);
      await fill('note-b', 4);
      await until(() => follower.seen.length === 2);
      await follower.subscription.stop();
      expect(follower.positions()).toEqual([5, 6]);
    });
  });
}
