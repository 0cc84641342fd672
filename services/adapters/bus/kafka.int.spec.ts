import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { whyNoKafka } from '../../../ops/engines/kafka.js';
import { ownName, sharedKafka } from '../../../ops/engines/shared.contract.js';
import { chain } from '../../kernel/fixtures.js';
import { AgonError, heldBack, NO_STREAM, type RecordedEvent, randomIds } from '../../kernel/index.js';
import { MemoryLease } from '../lease.js';
import { MemoryEventStore } from '../store/memory.js';
import { busContract } from './bus.contract.js';
import { MemoryCheckpoints } from './checkpoints.js';
import { KafkaBus } from './kafka.js';
import { KafkaClient, type KafkaOptions } from './kafka-client.js';
import { KafkaDeadLetters } from './kafka-letters.js';
import { startKafkaRelay } from './kafka-relay.js';
import { decodeEvent, Topics } from './message.js';

const missing = whyNoKafka();

if (missing) {
  describe('the bus on Kafka', () => {
    it('passes the contract of buses', (context) => context.skip(`${missing}.`));
  });
} else {
  let kafka: Awaited<ReturnType<typeof sharedKafka>>;
  beforeAll(async () => {
    kafka = await sharedKafka();
  });

  /** Waits without keeping the processor from Kafka. */
  const soon = async (condition: () => boolean | Promise<boolean>) => {
    while (!(await condition())) await sleep(20);
  };

  /** Topics of its own for every test, with the streams of the contract in different ones. */
  const options = () => {
    const contexts = { note: 'notes', live: 'live' };
    return { brokers: kafka.brokers, topics: new Topics(ownName('bus'), contexts), partitions: 2, ids: randomIds };
  };

  busContract('Kafka', async () => {
    const store = new MemoryEventStore();
    const checkpoints = new MemoryCheckpoints();
    const arena = options();
    const relay = startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
    return {
      store,
      checkpoints,
      start: (other = checkpoints) => {
        const bus = new KafkaBus(arena, other);
        return {
          // What the suite has appended is in Kafka before its consumer comes, as it is in the log of the embedded bus; and
          // its group has formed before the suite goes on, which takes the embedded bus no time at all.
          consume: async (consumed, handler) => {
            const last = await store.lastPosition();
            await soon(() => relay.position() >= last);
            let called = false;
            let open: () => void = () => {};
            const gate = new Promise<void>((resolve) => {
              open = resolve;
            });
            const consumer = await bus.consume(consumed, async (events) => {
              called = true;
              await gate;
              return handler(events);
            });
            await soon(() => called || consumer.position() >= last);
            setImmediate(open);
            return consumer;
          },
          close: () => bus.close(),
        };
      },
      close: async () => {
        await relay.stop();
        await store.close();
      },
    };
  });

  const noted = async (store: MemoryEventStore, stream: string, count: number) => {
    for (let done = 0; done < count; done += 500) {
      const head = await store.head(stream);
      const events = chain(stream, Math.min(500, count - done), head ? { after: head } : {});
      await store.append(stream, head?.revision ?? NO_STREAM, events);
    }
  };
  const upTo = (last: number, after = 0) => Array.from({ length: last - after }, (_, i) => after + i + 1);
  /** Everything that was published, as every reader of committed records sees it, partition by partition. */
  const publishedTo = async (arena: KafkaOptions): Promise<RecordedEvent[][]> => {
    const client = new KafkaClient(arena);
    try {
      const all = [];
      for (const topic of client.topics.events) all.push((await client.read(topic)).map(decodeEvent));
      return all;
    } finally {
      await client.close();
    }
  };

  describe('relays to Kafka', () => {
    it('publish each event once and in order, even if all of them believe that it is their turn', async () => {
      const store = new MemoryEventStore();
      const arena = { ...options(), partitions: 1 };
      const fenced: string[] = [];
      const onRetry = (error: unknown) => fenced.push((error as AgonError).code);
      const start = () => startKafkaRelay({ store, kafka: arena, lease: new MemoryLease(), batchEvents: 10, onRetry });
      const [first, second] = [start(), start()];
      for (let round = 0; round < 30; round++) {
        for (const stream of ['note-a', 'live-b', 'other-c']) await noted(store, stream, 5);
        await sleep(30);
      }
      const last = await store.lastPosition();
      await soon(() => fenced.includes('RELAY.FENCED'));
      await second.stop();
      await soon(() => first.position() === last);
      await first.stop();
      const published = await publishedTo(arena);
      const positions = published.map((events) => events.map(({ position }) => position));
      for (const each of positions) expect(each).toEqual([...each].sort((a, b) => a - b));
      expect(positions.flat().sort((a, b) => a - b)).toEqual(upTo(last));
      expect(published.flat().sort((a, b) => a.position - b.position)).toEqual(await store.readAll());
    });

    it('refuse a log that is shorter than what Kafka holds', async () => {
      const arena = options();
      const publish = async (count: number, onRetry?: (error: unknown) => void) => {
        const store = new MemoryEventStore();
        await noted(store, 'note-a', count);
        return startKafkaRelay({ store, kafka: arena, lease: new MemoryLease(), ...(onRetry ? { onRetry } : {}) });
      };
      const first = await publish(3);
      await soon(() => first.position() === 3);
      await first.stop();
      const codes: string[] = [];
      const second = await publish(2, (error) => codes.push((error as AgonError).code));
      await soon(() => codes.length > 0);
      await second.stop();
      expect(codes).toContain('RELAY.AHEAD_OF_LOG');
    });
  });

  describe('a group on Kafka', () => {
    const relayed = () => {
      const store = new MemoryEventStore();
      const arena = { ...options(), sessionMs: 6_000 };
      const relay = startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
      return { store, arena, relay };
    };

    it('stays with its member through work that takes longer than a session, and passes on when that one stops', async () => {
      const { store, arena, relay } = relayed();
      await noted(store, 'note-a', 3);
      const checkpoints = new MemoryCheckpoints();
      const seen: string[] = [];
      const member = (name: string, workMs: number) => {
        const bus = new KafkaBus(arena, checkpoints);
        const consumer = bus.consume({ group: 'g', batchSize: 3 }, async (events) => {
          seen.push(...events.map(({ position }) => `${name}${position}`));
          await sleep(workMs);
        });
        return { bus, consumer };
      };
      const first = member('a', 7_500);
      await first.consumer;
      await soon(() => seen.length === 3);
      const second = member('b', 0);
      await second.consumer;
      await soon(() => checkpoints.load('g').then((position) => position === 3));
      await first.bus.close();
      await noted(store, 'note-b', 2);
      const { position } = await second.consumer;
      await soon(() => position() === 5);
      expect(seen).toEqual(['a1', 'a2', 'a3', 'b4', 'b5']);
      await second.bus.close();
      await relay.stop();
    });

    it('starts over from a checkpoint that went back', async () => {
      const { store, arena, relay } = relayed();
      const checkpoints = new MemoryCheckpoints();
      await noted(store, 'note-a', 6);
      const seen: number[] = [];
      let lost = false;
      const bus = new KafkaBus(arena, checkpoints);
      const consumer = await bus.consume({ group: 'g', batchSize: 2 }, async (events) => {
        if (!lost && events[0]?.position === 5) {
          lost = true;
          await checkpoints.save('g', 2);
          throw new AgonError('CHECKPOINT.MOVED', 'The database forgot what came after position 2.');
        }
        seen.push(...events.map(({ position }) => position));
      });
      await soon(() => consumer.position() === 6);
      expect(seen).toEqual([1, 2, 3, 4, 3, 4, 5, 6]);
      await bus.close();
      // Now behind what Kafka's offsets say, too.
      await checkpoints.save('g', 1);
      const again = new KafkaBus(arena, checkpoints);
      seen.length = 0;
      const later = await again.consume({ group: 'g' }, async (events) => {
        seen.push(...events.map(({ position }) => position));
      });
      await soon(() => later.position() === 6);
      expect(seen).toEqual([2, 3, 4, 5, 6]);
      await again.close();
      await relay.stop();
    });

    it('gets everything in order when it is slower than Kafka, which waits for it', async () => {
      const { store, arena, relay } = relayed();
      for (const stream of ['note-a', 'live-b', 'note-a', 'other-c']) await noted(store, stream, 5_000);
      await soon(() => relay.position() === 20_000);
      const bus = new KafkaBus(arena, new MemoryCheckpoints());
      const seen: number[] = [];
      const consumer = await bus.consume({ group: 'g', batchSize: 4_000 }, async (events) => {
        await sleep(seen.length === 0 ? 500 : 50);
        seen.push(...events.map(({ position }) => position));
      });
      await soon(() => consumer.position() === 20_000);
      expect(seen).toEqual(upTo(20_000));
      await bus.close();
      await relay.stop();
    });

    it('puts aside what it cannot take, and takes it when it is replayed', async () => {
      const { store, arena, relay } = relayed();
      await noted(store, 'note-a', 3);
      const checkpoints = new MemoryCheckpoints();
      const bus = new KafkaBus(arena, checkpoints);
      const seen: number[] = [];
      let broken = true;
      const consumer = await bus.consume({ group: 'policy.x', attemptsMax: 2 }, async (events) => {
        if (broken && events.some(({ position }) => position === 2))
          throw new AgonError('TEST.BROKEN', 'Cannot take 2.');
        seen.push(...events.map(({ position }) => position));
      });
      await soon(() => consumer.position() === 3);
      const letters = new KafkaDeadLetters(arena);
      expect(await checkpoints.deadLetters()).toHaveLength(1);
      const expected = { group: 'policy.x', position: 2, type: 'Noted', code: 'TEST.BROKEN', attempts: 2 };
      const listed = await letters.list();
      expect(listed).toMatchObject([{ ...expected, origin: { topic: arena.topics.of('note-a'), offset: '1' } }]);
      expect(await letters.list({ group: 'other' })).toEqual([]);
      await expect(letters.replay({ eventId: 'nobody' })).rejects.toMatchObject({ code: 'BUS.NO_SUCH_LETTER' });

      await letters.replay({ group: 'policy.x' });
      expect(await letters.list()).toEqual([]);
      await expect.poll(() => letters.list(), { timeout: 20_000 }).toEqual(listed);
      broken = false;
      await letters.replay({ eventId: `${listed[0]?.eventId}` });
      await soon(() => seen.length === 3);
      expect(seen).toEqual([1, 3, 2]);
      expect(await letters.list()).toEqual([]);
      await expect.poll(() => checkpoints.deadLetters(), { timeout: 20_000 }).toEqual([]);
      await letters.close();
      await bus.close();
      await relay.stop();
    });

    it('replays a letter that another Kafka had, from where the group keeps it and from the log', async () => {
      const { store, arena, relay } = relayed();
      await noted(store, 'note-a', 3);
      const [, event] = await store.readAll();
      const checkpoints = new MemoryCheckpoints();
      const letter = {
        group: 'policy.x',
        position: 2,
        eventId: `${event?.id}`,
        code: 'X.Y',
        message: 'no',
        attempts: 3,
      };
      await checkpoints.save('policy.x', 3);
      for (const each of [letter, { ...letter, eventId: 'of another log' }]) await checkpoints.bury(each);
      const bus = new KafkaBus(arena, checkpoints);
      const seen: unknown[] = [];
      const consumer = await bus.consume({ group: 'policy.x' }, async (events) => void seen.push(...events));
      await soon(() => consumer.active?.() === true);
      const letters = new KafkaDeadLetters(arena, { checkpoints, store });
      expect(await letters.list()).toMatchObject([{ ...letter, type: 'Noted', stream: 'note-a' }]);
      await letters.replay({ group: 'policy.x' });
      await soon(() => seen.length > 0);
      expect(seen).toEqual([event]);
      await expect.poll(() => letters.list(), { timeout: 20_000 }).toEqual([]);
      await letters.close();
      await bus.close();
      await relay.stop();
    });

    it('notes no place beyond what a group has saved, which may be less than it has heard', async () => {
      const { store, arena, relay } = relayed();
      await noted(store, 'note-a', 3);
      await soon(() => relay.position() === 3);
      await noted(store, 'note-b', 3);
      await soon(() => relay.position() === 6);
      const checkpoints = new MemoryCheckpoints();
      const save = (group: string, heard: number) => checkpoints.save(group, Math.min(heard, 4));
      const bus = new KafkaBus(arena, { ...heldBack(checkpoints, () => undefined), save });
      const consumer = await bus.consume({ group: 'runner' }, async () => {});
      await soon(() => consumer.position() === 6);
      await bus.close();
      expect(await checkpoints.load('runner')).toBe(4);
      const client = new KafkaClient(arena);
      const groupId = `${arena.topics.prefix}.runner`;
      const topics = [arena.topics.watermark];
      const [kept] = await client.asAdmin((admin) => admin.fetchOffsets({ groupId, topics }));
      expect(kept?.partitions).toMatchObject([{ metadata: '4' }]);
      await client.close();
      await relay.stop();
    });
  });
}
