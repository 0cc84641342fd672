import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chain } from '../../kernel/fixtures.js';
import {
  AgonError,
  type Bus,
  type Checkpoints,
  type Consumer,
  type ConsumerOptions,
  type EventStore,
  heldBack,
  NO_STREAM,
  type RecordedEvent,
  type SealedEvent,
  seal,
} from '../../kernel/index.js';
import { until } from '../store/subscription.contract.js';

interface BusUnderTest {
  readonly store: EventStore;
  readonly checkpoints: Checkpoints;
  /** A bus on this store; called again, it is the bus after a restart. */
  start(checkpoints?: Checkpoints): Bus;
  close(): Promise<void>;
}

/** What every bus promises its consumers, whatever carries the events. */
export function busContract(name: string, open: () => Promise<BusUnderTest>): void {
  describe(`${name}: a bus`, () => {
    let under: BusUnderTest;
    let bus: Bus;
    beforeEach(async () => {
      under = await open();
      bus = under.start();
    });
    afterEach(async () => {
      await bus.close();
      await under.close();
    });

    const publish = async (stream: string, ...types: string[]) => {
      const events: SealedEvent[] = [];
      for (const [i, event] of chain(stream, types.length).entries()) {
        const { hash: _hash, ...rest } = event;
        events.push(seal({ ...rest, type: types[i] ?? '', prevHash: events.at(-1)?.hash ?? event.prevHash }));
      }
      await under.store.append(stream, NO_STREAM, events);
    };
    const publishMany = async (streams: number, each = 3) => {
      for (let i = 0; i < streams; i++) await publish(`note-${i}`, ...Array.from({ length: each }, () => 'Noted'));
    };

    /** A consumer that keeps what it gets, batch by batch. */
    const listen = async (options: ConsumerOptions, on: (events: readonly RecordedEvent[]) => unknown = () => {}) => {
      const batches: number[][] = [];
      const consumer = await bus.consume(options, async (events) => {
        batches.push(events.map((event) => event.position));
        await on(events);
      });
      return { consumer, batches, positions: () => batches.flat() };
    };
    const upTo = (last: number, after = 0) => Array.from({ length: last - after }, (_, i) => after + i + 1);
    const reached = (consumer: Consumer, position: number) => until(() => consumer.position() >= position);

    it('delivers every event in order, and then what comes live', async () => {
      await publishMany(10);
      const { consumer, positions } = await listen({ group: 'g', batchSize: 4 });
      await reached(consumer, 30);
      await publish('live-1', 'Noted', 'Noted');
      await reached(consumer, 32);
      expect(positions()).toEqual(upTo(32));
    });

    it('never gives a group two batches at once', async () => {
      await publishMany(10);
      let inside = 0;
      let most = 0;
      const { consumer } = await listen({ group: 'g', batchSize: 2 }, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await turn();
        inside -= 1;
      });
      await reached(consumer, 30);
      expect(most).toBe(1);
    });

    it('lets groups go their own way: a stuck one does not hold up another', async () => {
      await publishMany(4);
      let open: () => void = () => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      const stuck = await listen({ group: 'stuck', batchSize: 1 }, () => gate);
      const free = await listen({ group: 'free', batchSize: 1 });
      await reached(free.consumer, 12);
      expect(stuck.positions()).toEqual([1]);
      open();
      await reached(stuck.consumer, 12);
      expect(stuck.positions()).toEqual(upTo(12));
    });

    it('delivers only the types asked for, and moves past the others', async () => {
      await publish('note-a', 'Won', 'Lost', 'Won', 'Drawn', 'Drawn');
      const { consumer, positions } = await listen({ group: 'g', types: ['Won', 'Lost'], batchSize: 2 });
      await reached(consumer, 5);
      await consumer.stop();
      expect(positions()).toEqual([1, 2, 3]);
      expect(await under.checkpoints.load('g')).toBe(5);
    });

    describe('after a restart', () => {
      it('goes on behind the last completed batch', async () => {
        await publishMany(4);
        const before = await listen({ group: 'g', batchSize: 5 });
        await reached(before.consumer, 12);
        await bus.close();
        bus = under.start();
        await publish('later-1', 'Noted');
        const after = await listen({ group: 'g' });
        await reached(after.consumer, 13);
        expect(after.positions()).toEqual([13]);
      });

      it('delivers again what was handled but not yet recorded as done', async () => {
        await publishMany(2);
        const crash = new AgonError('TEST.CRASH', 'The machine stopped here.');
        const dying: Checkpoints = {
          ...heldBack(under.checkpoints, () => undefined),
          save: async (group, position) => {
            if (position > 2) throw crash;
            await under.checkpoints.save(group, position);
          },
        };
        await bus.close();
        bus = under.start(dying);
        const before = await listen({ group: 'g', batchSize: 2 });
        await expect.poll(() => before.batches.length).toBeGreaterThan(2);
        expect(before.batches.slice(0, 3)).toEqual([
          [1, 2],
          [3, 4],
          [3, 4],
        ]);
        await before.consumer.stop();
        await bus.close();
        bus = under.start();
        const after = await listen({ group: 'g', batchSize: 2 });
        await reached(after.consumer, 6);
        expect(after.batches).toEqual([
          [3, 4],
          [5, 6],
        ]);
      });
    });

    describe('a failing handler', () => {
      const failing = (position: number, times: number) => {
        let left = times;
        return (events: readonly RecordedEvent[]) => {
          if (!events.some((event) => event.position === position) || left-- <= 0) return;
          throw new AgonError('TEST.BROKEN', `Cannot take ${position}.`);
        };
      };

      it('gets the batch again, one event at a time, and then goes on in batches', async () => {
        await publishMany(2);
        const { consumer, batches } = await listen({ group: 'g', batchSize: 3 }, failing(2, 1));
        await reached(consumer, 6);
        expect(batches).toEqual([[1, 2, 3], [1], [2], [3], [4, 5, 6]]);
      });

      it('is tried again until it succeeds, in order, when nothing limits it', async () => {
        await publishMany(1);
        const { consumer, batches } = await listen({ group: 'g', batchSize: 3 }, failing(2, 4));
        await reached(consumer, 3);
        expect(batches).toEqual([[1, 2, 3], [1], [2], [2], [2], [2], [3]]);
        expect(await under.checkpoints.deadLetters()).toEqual([]);
      });

      it('has its event buried with the error after so many attempts, and the rest goes on', async () => {
        await publishMany(2);
        const always = failing(2, Number.POSITIVE_INFINITY);
        const { consumer, batches } = await listen({ group: 'g', batchSize: 3, attemptsMax: 3 }, always);
        await reached(consumer, 6);
        expect(batches).toEqual([[1, 2, 3], [1], [2], [2], [2], [3], [4, 5, 6]]);
        const [, event] = await under.store.readAll({ limit: 2 });
        expect(await under.checkpoints.deadLetters('g')).toEqual([
          { group: 'g', position: 2, eventId: event?.id, code: 'TEST.BROKEN', message: 'Cannot take 2.', attempts: 3 },
        ]);
        expect(await under.checkpoints.deadLetters('other')).toEqual([]);
      });

      it('that throws something else is buried as INTERNAL', async () => {
        await publishMany(1, 1);
        const { consumer } = await listen({ group: 'g', attemptsMax: 1 }, () => {
          throw new TypeError('x is not a function');
        });
        await reached(consumer, 1);
        expect(await under.checkpoints.deadLetters('g')).toMatchObject([
          { code: 'INTERNAL', message: 'x is not a function' },
        ]);
      });

      it.each(['consumer', 'bus'] as const)(
        'can be left while it waits: stopping the %s keeps the event',
        async (which) => {
          await publishMany(1);
          const { consumer, batches } = await listen({ group: 'g' }, failing(2, Number.POSITIVE_INFINITY));
          await until(() => batches.length >= 5);
          const before = batches.length;
          await (which === 'bus' ? bus.close() : consumer.stop());
          await expect(consumer.done).resolves.toBeUndefined();
          expect(batches).toHaveLength(before);
          expect(await under.checkpoints.load('g')).toBe(0);

          bus = under.start();
          const after = await listen({ group: 'g' });
          await reached(after.consumer, 3);
          expect(after.positions()).toEqual([1, 2, 3]);
        },
      );

      it('that fails while it is being stopped buries nothing, even at its last attempt', async () => {
        await publishMany(1, 1);
        let release: () => void = () => {};
        const stopping = new Promise<void>((resolve) => {
          release = resolve;
        });
        const { consumer, batches } = await listen({ group: 'g', attemptsMax: 1 }, async () => {
          if (batches.length > 1) await stopping;
          throw new AgonError('TEST.BROKEN', 'The database is closing.');
        });
        await until(() => batches.length === 2);
        const stopped = consumer.stop();
        release();
        await stopped;
        expect(await under.checkpoints.deadLetters()).toEqual([]);
        expect(await under.checkpoints.load('g')).toBe(0);
      });
    });

    it('delivers nothing after it was stopped', async () => {
      await publishMany(1);
      const stopped = await listen({ group: 'a' });
      const going = await listen({ group: 'b' });
      await reached(stopped.consumer, 3);
      await stopped.consumer.stop();
      await publish('later-1', 'Noted');
      await reached(going.consumer, 4);
      expect(stopped.positions()).toEqual([1, 2, 3]);
    });
  });
}
