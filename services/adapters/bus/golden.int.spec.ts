import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { beforeAll, describe, expect, it } from 'vitest';
import { whyNoKafka } from '../../../ops/engines/kafka.js';
import { sharedKafka } from '../../../ops/engines/shared.contract.js';
import { chain } from '../../kernel/fixtures.js';
import { NO_STREAM, type RecordedEvent, randomIds } from '../../kernel/index.js';
import { MemoryLease } from '../lease.js';
import { MemoryEventStore } from '../store/memory.js';
import { MemoryCheckpoints } from './checkpoints.js';
import { type GoldenRecord, golden, goldenOf } from './golden.contract.js';
import { KafkaBus } from './kafka.js';
import { KafkaClient, type KafkaOptions } from './kafka-client.js';
import { KafkaDeadLetters } from './kafka-letters.js';
import { startKafkaRelay } from './kafka-relay.js';
import { decodeWatermark, Topics } from './message.js';

const missing = whyNoKafka();

const soon = async (condition: () => boolean) => {
  while (!condition()) await sleep(20);
};

describe.skipIf(missing !== undefined)(`topics of an earlier version${missing ? ` (${missing})` : ''}`, () => {
  let arena: KafkaOptions;
  beforeAll(async () => {
    const { brokers } = await sharedKafka();
    arena = { brokers, topics: new Topics(golden.prefix), partitions: golden.partitions, ids: randomIds };
    await publish();
  });

  /** In the transactions in which they were published: each ends with its watermark. So offsets are the same again. */
  async function publish(): Promise<void> {
    const client = new KafkaClient(arena);
    await client.ensureTopics();
    const transactionalId = `${golden.prefix}.relay`;
    const producer = client.kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 });
    await producer.connect();
    const messageOf = ({ partition, key, value, headers }: GoldenRecord) => ({ partition, key, value, headers });
    for (const watermark of goldenOf(/\.watermark\.v1$/)) {
      const transaction = await producer.transaction();
      for (const [topic, partition, offset, length] of decodeWatermark(watermark).ranges) {
        const records = golden.records.filter(
          (each) => each.topic === topic && each.partition === partition && each.offset >= offset,
        );
        const sent = await transaction.send({ topic, acks: -1, messages: records.slice(0, length).map(messageOf) });
        expect(sent.map(({ baseOffset }) => baseOffset)).toEqual([`${offset}`]);
      }
      await transaction.send({ topic: watermark.topic, acks: -1, messages: [messageOf(watermark)] });
      await transaction.commit();
    }
    await producer.disconnect();
    const plain = client.kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
    await plain.connect();
    for (const letter of goldenOf(/-dlt$/)) {
      await plain.send({ topic: letter.topic, acks: -1, messages: [messageOf(letter)] });
    }
    await plain.disconnect();
    await client.close();
  }

  it('give their events to a group of today in the order of the log', async () => {
    const seen: RecordedEvent[] = [];
    const bus = new KafkaBus(arena, new MemoryCheckpoints());
    const consumer = await bus.consume({ group: 'golden' }, async (events) => void seen.push(...events));
    await soon(() => consumer.position() >= golden.events.length);
    await bus.close();
    expect(seen).toEqual(golden.events);
  });

  it('show their dead letters', async () => {
    const letters = new KafkaDeadLetters(arena);
    const expected = { group: 'policy.golden', type: 'FundsHeld', stream: 'wallet-ada', code: 'INTERNAL', attempts: 1 };
    expect(await letters.list()).toMatchObject([expected]);
    await letters.close();
  });

  it('are gone on with by a relay of today, where they end', async () => {
    const store = new MemoryEventStore();
    for (const { position: _position, ...event } of golden.events) {
      await store.append(event.stream, event.revision - 1, [event]);
    }
    await store.append('note-later', NO_STREAM, chain('note-later', 2));
    const relay = startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
    const last = golden.events.length + 2;
    await soon(() => relay.position() === last);
    await relay.stop();
    const client = new KafkaClient(arena);
    const watermark = await client.lastOf(new Topics(golden.prefix).watermark);
    await client.close();
    expect(watermark && decodeWatermark(watermark)).toMatchObject({ after: golden.events.length, position: last });
    const seen: number[] = [];
    const bus = new KafkaBus(arena, new MemoryCheckpoints());
    const consumer = await bus.consume({ group: 'golden.later' }, async (events) => {
      seen.push(...events.map(({ position }) => position));
    });
    await soon(() => consumer.position() >= last);
    await bus.close();
    expect(seen).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  });
});
