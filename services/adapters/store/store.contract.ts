import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chain, headAfter } from '../../kernel/fixtures.js';
import {
  EMPTY_HEAD,
  type EventStore,
  GENESIS_HASH,
  type LogPage,
  NO_STREAM,
  recomputeHash,
  type SealedEvent,
  seal,
  storeLimits,
} from '../../kernel/index.js';
import { anyJson, oddData } from './odd-data.contract.js';
import { subscriptionContract } from './subscription.contract.js';

interface StoreUnderTest {
  /** A new, empty store. */
  open(): Promise<EventStore>;
  /** Its positions are counted, from 1; those of other stores grow, and have gaps. */
  readonly counts?: boolean;
  /** Closes the store and opens the same log again; left out by stores that keep nothing. */
  reopen?(store: EventStore): Promise<EventStore>;
}

const refusal = (code: string) => expect.objectContaining({ name: 'AgonError', code });

/** What every event store promises, whatever it is built on. */
export function storeContract(name: string, { open, reopen, counts = false }: StoreUnderTest): void {
  describe(`${name}: an event store`, () => {
    let store: EventStore;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    const write = async (stream: string, count: number) => {
      const events = chain(stream, count);
      await store.append(stream, NO_STREAM, events);
      return events;
    };
    /** The log as it is read, and so where its events stand. */
    const log = () => store.readAll();
    const placeOf = async (nth: number) => (await log())[nth - 1]?.position;
    const size = async () => (await log()).length;
    const isEmpty = async () => (await store.lastPosition()) === 0 && (await store.readAll()).length === 0;

    describe('append', () => {
      it('returns the envelopes as they were written, with their positions', async () => {
        const events = chain('note-a', 3);
        const result = await store.append('note-a', NO_STREAM, events);
        expect(result).toEqual({ revision: 2, position: await placeOf(3) });
        const positions = (await log()).map(({ position }) => position);
        const recorded = events.map((event, i) => ({ ...event, position: positions[i] }));
        expect(await store.readStream('note-a')).toEqual(recorded);
        expect(await store.readAll()).toEqual(recorded);
        expect(await store.lastPosition()).toBe(result.position);
      });

      it('tells the head of a stream, and of an unknown one that there is none', async () => {
        const events = await write('note-a', 2);
        expect(await store.head('note-a')).toEqual(headAfter(events));
        expect(await store.head('note-b')).toBeUndefined();
      });

      it('refuses an expected revision that is not the actual one, and says which is', async () => {
        const events = await write('note-a', 2);
        const late = chain('note-a', 1, { after: headAfter(events.slice(0, 1)), writer: 'late' });
        const early = chain('note-a', 1, { after: { revision: 7, hash: GENESIS_HASH }, writer: 'early' });
        for (const [events, expectedRevision] of [
          [late, 0],
          [early, 7],
        ] as const) {
          await expect(store.append('note-a', expectedRevision, events)).rejects.toMatchObject({
            code: 'STORE.REVISION_CONFLICT',
            details: { stream: 'note-a', expectedRevision, actualRevision: 1 },
          });
        }
        expect(await size()).toBe(2);
      });

      it('lets exactly one of 50 concurrent appends at one revision win', async () => {
        const attempts = Array.from({ length: 50 }, (_, i) => chain('note-a', 1, { writer: `writer-${i}` }));
        const results = await Promise.allSettled(attempts.map((events) => store.append('note-a', NO_STREAM, events)));
        const losers = results.filter((result) => result.status === 'rejected').map((result) => result.reason);
        expect(losers).toHaveLength(49);
        expect(losers).toEqual(losers.map(() => refusal('STORE.REVISION_CONFLICT')));
        expect(await store.readStream('note-a')).toHaveLength(1);
      });

      it('keeps the events of one append together, even between many others', async () => {
        const streams = Array.from({ length: 40 }, (_, i) => `note-${i}`);
        await Promise.all(streams.map((stream, i) => store.append(stream, NO_STREAM, chain(stream, 1 + (i % 7)))));
        for (const stream of streams) {
          const places = (await log()).flatMap((event, i) => (event.stream === stream ? [i] : []));
          expect(places).toEqual(places.map((_, i) => (places[0] ?? 0) + i));
        }
      });

      it('hands out increasing positions over many streams', async () => {
        const streams = Array.from({ length: 500 }, (_, i) => `note-${i}`);
        const results = await Promise.all(streams.map((stream) => store.append(stream, NO_STREAM, chain(stream, 2))));
        expect(new Set(results.map((result) => result.position)).size).toBe(500);
        const positions = (await log()).map((event) => event.position);
        expect(positions).toHaveLength(1_000);
        expect(positions).toEqual([...new Set(positions)].sort((a, b) => a - b));
        if (counts) expect(positions.at(-1)).toBe(1_000);
        for (const stream of streams) expect(await store.readStream(stream)).toHaveLength(2);
      });
    });

    describe('repeating an append', () => {
      it('acknowledges it again with the same place and writes nothing', async () => {
        const events = chain('note-a', 3);
        const first = await store.append('note-a', NO_STREAM, events);
        await store.append('note-a', 2, chain('note-a', 1, { after: headAfter(events) }));
        expect(await store.append('note-a', NO_STREAM, events)).toEqual(first);
        expect(await store.append('note-a', 0, events.slice(1))).toEqual(first);
        expect(await size()).toBe(4);
      });

      it('acknowledges it once even while the first is still in flight', async () => {
        const events = chain('note-a', 2);
        const both = await Promise.all([
          store.append('note-a', NO_STREAM, events),
          store.append('note-a', NO_STREAM, events),
        ]);
        expect(both[1]).toEqual(both[0]);
        expect(await size()).toBe(2);
      });

      it('is a conflict when only a part is already there', async () => {
        const events = chain('note-a', 4);
        await store.append('note-a', NO_STREAM, events.slice(0, 2));
        await expect(store.append('note-a', NO_STREAM, events)).rejects.toEqual(refusal('STORE.REVISION_CONFLICT'));
        await expect(store.append('note-a', 0, events.slice(1))).rejects.toEqual(refusal('STORE.REVISION_CONFLICT'));
        expect(await size()).toBe(2);
      });

      it('is a conflict when the event has the same id and other content', async () => {
        const [event] = await write('note-a', 1);
        const { hash: _hash, ...open } = event as SealedEvent;
        const forged = seal({ ...open, data: { forged: true } });
        await expect(store.append('note-a', NO_STREAM, [forged])).rejects.toEqual(refusal('STORE.REVISION_CONFLICT'));
        expect(await store.readStream('note-a')).toMatchObject([{ hash: event?.hash }]);
      });
    });

    describe('refusals write nothing', () => {
      const good = chain('note-a', 2);
      const [first, second] = good as [SealedEvent, SealedEvent];
      const text = (bytes: number) => ({ text: 'x'.repeat(bytes) });
      const many = (count: number, bytes: number) => chain('note-a', count, { data: () => text(bytes) });
      const cases: readonly [string, string, string, number, readonly SealedEvent[]][] = [
        ['an empty append', 'STORE.EMPTY_APPEND', 'note-a', NO_STREAM, []],
        ['a wrong first prevHash', 'STORE.BROKEN_CHAIN', 'note-a', NO_STREAM, [{ ...first, prevHash: 'f'.repeat(64) }]],
        [
          'a wrong prevHash inside',
          'STORE.BROKEN_CHAIN',
          'note-a',
          NO_STREAM,
          [first, { ...second, prevHash: GENESIS_HASH }],
        ],
        ['a wrong revision', 'STORE.BROKEN_CHAIN', 'note-a', NO_STREAM, [{ ...first, revision: 1 }]],
        ['a revision left out', 'STORE.BROKEN_CHAIN', 'note-a', NO_STREAM, [first, { ...second, revision: 2 }]],
        ['an event of another stream', 'STORE.BROKEN_CHAIN', 'note-b', NO_STREAM, good],
        ['an event too large', 'STORE.TOO_LARGE', 'note-a', NO_STREAM, many(1, storeLimits.eventBytesMax)],
        ['too many events', 'STORE.TOO_LARGE', 'note-a', NO_STREAM, many(storeLimits.appendEventsMax + 1, 1)],
        ['an append too large', 'STORE.TOO_LARGE', 'note-a', NO_STREAM, many(3, storeLimits.appendBytesMax / 3)],
        ...['', 'note', 'note-', '-a', 'Note-a', 'note-a b', 'note-a/b', 'note-é', `note-${'x'.repeat(201)}`].map(
          (stream) => [`the stream name "${stream}"`, 'STORE.BAD_STREAM', stream, NO_STREAM, chain(stream, 1)] as const,
        ),
      ] as never;
      it.each(cases)('%s is %s', async (_what, code, stream, expectedRevision, events) => {
        await expect(store.append(stream, expectedRevision, events)).rejects.toEqual(refusal(code));
        expect(await isEmpty()).toBe(true);
      });

      it('but what is just within the limits is taken', async () => {
        const full = many(storeLimits.appendEventsMax, 1_900);
        await expect(store.append('note-a', NO_STREAM, full)).resolves.toMatchObject({ revision: 511 });
        expect(await store.readStream('note-a')).toHaveLength(storeLimits.appendEventsMax);
      });

      it('and the stream goes on as if nothing had been asked', async () => {
        await expect(store.append('note-a', NO_STREAM, [second])).rejects.toEqual(refusal('STORE.BROKEN_CHAIN'));
        await expect(store.append('note-a', NO_STREAM, good)).resolves.toMatchObject({ revision: 1 });
        expect(await size()).toBe(2);
      });
    });

    describe('reading a stream', () => {
      const revisions = async (page?: Parameters<EventStore['readStream']>[1], stream = 'note-a') =>
        (await store.readStream(stream, page)).map((event) => event.revision);

      it.each([
        ['all', undefined, [0, 1, 2, 3, 4]],
        ['forwards from a revision', { fromRevision: 3 }, [3, 4]],
        ['forwards, at most so many', { limit: 2 }, [0, 1]],
        ['a page in the middle', { fromRevision: 1, limit: 3 }, [1, 2, 3]],
        ['a page over the end', { fromRevision: 4, limit: 10 }, [4]],
        ['beyond the end', { fromRevision: 5 }, []],
        ['far beyond the end', { fromRevision: 5_000 }, []],
        ['nothing', { limit: 0 }, []],
        ['backwards', { direction: 'backwards' }, [4, 3, 2, 1, 0]],
        ['the last one', { direction: 'backwards', limit: 1 }, [4]],
        ['backwards from a revision', { direction: 'backwards', fromRevision: 2 }, [2, 1, 0]],
        ['backwards, a page in the middle', { direction: 'backwards', fromRevision: 3, limit: 2 }, [3, 2]],
        ['backwards, from beyond the end', { direction: 'backwards', fromRevision: 50, limit: 2 }, [4, 3]],
        ['backwards, over the beginning', { direction: 'backwards', fromRevision: 0, limit: 5 }, [0]],
        ['backwards, nothing', { direction: 'backwards', limit: 0 }, []],
      ] as const)('%s', async (_what, page, expected) => {
        await write('note-b', 3);
        await write('note-a', 5);
        await write('note-ab', 2);
        expect(await revisions(page)).toEqual(expected);
      });

      it('an unknown stream is empty in both directions', async () => {
        await write('note-b', 1);
        expect(await revisions(undefined, 'note-c')).toEqual([]);
        expect(await revisions({ direction: 'backwards' }, 'note-c')).toEqual([]);
      });
    });

    describe('reading the log', () => {
      beforeEach(async () => {
        for (let i = 0; i < 30; i++) await write(`note-${i}`, 1 + (i % 4));
      });
      const inPages = async (limit: number, first: LogPage, next: (last: number) => LogPage) => {
        const seen: number[] = [];
        for (let page = first; ; page = next(seen.at(-1) as number)) {
          const events = await store.readAll({ ...page, limit });
          if (events.length === 0) return seen;
          expect(events.length).toBeLessThanOrEqual(limit);
          seen.push(...events.map((event) => event.position));
        }
      };

      it('pages by position without a gap or an overlap, whatever the page size', async () => {
        const positions = (await log()).map((event) => event.position);
        for (const limit of [1, 3, 7, 1000]) {
          expect(await inPages(limit, {}, (after) => ({ after }))).toEqual(positions);
          expect(await inPages(limit, { before: 'end' }, (before) => ({ before }))).toEqual(positions.toReversed());
        }
      });

      it('begins after the position of any event, with it, or before it', async () => {
        const all = await log();
        for (const [i, { position }] of all.entries()) {
          expect(await store.readAll({ after: position, limit: 2 })).toEqual(all.slice(i + 1, i + 3));
          expect(await store.readAll({ from: position, limit: 2 })).toEqual(all.slice(i, i + 2));
          const before = all.slice(Math.max(0, i - 2), i).toReversed();
          expect(await store.readAll({ before: position, limit: 2 })).toEqual(before);
        }
        expect(await store.readAll({ from: 0, limit: 1 })).toEqual(all.slice(0, 1));
      });

      it('is empty at and beyond the end', async () => {
        const last = await store.lastPosition();
        expect(await store.readAll({ after: last })).toEqual([]);
        for (const page of [{ after: 2 ** 50 }, { from: 2 ** 50 }]) expect(await store.readAll(page)).toEqual([]);
      });

      // Where positions are counted, every whole number up to the last is an event's.
      if (counts) return;
      it('refuses a position that no event has, for pages and for followers', async () => {
        for (const { position } of await log()) {
          const places = [{ after: position - 1 }, { from: position - 1 }, { from: position + 1 }];
          const beyond = (await store.lastPosition()) < position + 1;
          for (const place of beyond ? places.slice(0, 2) : places) {
            await expect(store.readAll({ ...place, limit: 1 })).rejects.toEqual(refusal('STORE.BAD_POSITION'));
          }
        }
        const [, second] = await log();
        const lost = store.subscribe({ after: (second?.position ?? 0) - 1 }, async () => {});
        await expect(lost.done).rejects.toEqual(refusal('STORE.BAD_POSITION'));
      });
    });

    describe('what is written can be verified when it is read back', () => {
      it.each(oddData)('%s', async (_what, data) => {
        const events = chain('note-a', 2, { data: () => data });
        await store.append('note-a', NO_STREAM, events);
        expect((await store.readStream('note-a')).map(recomputeHash)).toEqual(events.map((event) => event.hash));
        expect((await store.readAll()).map(recomputeHash)).toEqual(events.map((event) => event.hash));
      });

      it('any JSON at all', async () => {
        let run = 0;
        await fc.assert(
          fc.asyncProperty(fc.array(anyJson(), { minLength: 1, maxLength: 8 }), async (values) => {
            const stream = `note-${run++}`;
            const events = chain(stream, values.length, { data: (revision) => values[revision] });
            await store.append(stream, NO_STREAM, events);
            const back = await store.readStream(stream);
            expect(back.map(recomputeHash)).toEqual(events.map((event) => event.hash));
          }),
          { seed: 1, numRuns: 300 },
        );
      });
    });

    it('agrees with a simple model under any appends, right or wrong', async () => {
      const step = fc.record({
        stream: fc.nat({ max: 3 }),
        offBy: fc.constantFrom(0, 0, 0, -1, 1, 5),
        count: fc.integer({ min: 1, max: 4 }),
        together: fc.boolean(),
      });
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
          run += 1;
          const start = await store.lastPosition();
          const model = new Map<string, SealedEvent[]>();
          const written: string[] = [];
          let pending: Promise<void>[] = [];
          for (const [i, { stream: number, offBy, count, together }] of steps.entries()) {
            const stream = `model-${run}-${number}`;
            const there = model.get(stream) ?? [];
            const expected = there.length - 1 + offBy;
            const after = {
              revision: expected,
              hash: expected === there.length - 1 ? headAfter(there).hash : GENESIS_HASH,
            };
            const events = chain(stream, count, { after, writer: `${run}-${i}` });
            const appended = store.append(stream, expected, events);
            if (offBy === 0) {
              model.set(stream, [...there, ...events]);
              written.push(...events.map((event) => event.id));
              pending.push(appended.then(({ revision }) => expect(revision).toBe(there.length + count - 1)));
            } else {
              pending.push(expect(appended).rejects.toEqual(refusal('STORE.REVISION_CONFLICT')));
            }
            if (together) continue;
            await Promise.all(pending);
            pending = [];
          }
          await Promise.all(pending);
          for (const [stream, events] of model) {
            expect((await store.readStream(stream)).map((event) => event.id)).toEqual(events.map((event) => event.id));
            expect(await store.head(stream)).toEqual(headAfter(events));
          }
          expect((await store.readAll({ after: start })).map((event) => event.id)).toEqual(written);
        }),
        { seed: 2, numRuns: 80 },
      );
    });

    subscriptionContract(() => store, counts);

    describe('closing', () => {
      it.each<[string, (closed: EventStore) => Promise<unknown>]>([
        ['append', (closed) => closed.append('note-a', NO_STREAM, chain('note-a', 1))],
        ['readStream', (closed) => closed.readStream('note-a')],
        ['readAll', (closed) => closed.readAll()],
        ['head', (closed) => closed.head('note-a')],
        ['lastPosition', (closed) => closed.lastPosition()],
        ['subscribe', async (closed) => closed.subscribe({ after: 0 }, async () => {})],
      ])('%s is refused afterwards', async (_what, use) => {
        await store.close();
        await expect(use(store)).rejects.toEqual(refusal('STORE.CLOSED'));
      });

      it('can be repeated', async () => {
        await store.close();
        await expect(store.close()).resolves.toBeUndefined();
      });

      it('ends its subscriptions', async () => {
        const subscription = store.subscribe({ after: 0 }, async () => {});
        await store.close();
        await expect(subscription.done).resolves.toBeUndefined();
      });
    });

    if (reopen) {
      it('keeps everything over a reopening and goes on where it was', async () => {
        const events = await write('note-a', 3);
        await write('note-b', 2);
        const before = await store.readAll();
        store = await reopen(store);
        expect(await store.readAll()).toEqual(before);
        expect(await store.head('note-a')).toEqual(headAfter(events));
        expect(await store.head('note-c')).toBeUndefined();
        const more = chain('note-a', 2, { after: headAfter(events) });
        const [third, continued] = [before[2]?.position, await store.append('note-a', 2, more)];
        expect(continued).toEqual({ revision: 4, position: await placeOf(7) });
        expect(await store.append('note-a', NO_STREAM, events)).toEqual({ revision: 2, position: third });
        const begun = await store.append('note-c', EMPTY_HEAD.revision, chain('note-c', 1));
        expect(begun.position).toBe(await placeOf(8));
      });
    }
  });
}
