import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type Kafka, startKafka, whyNoKafka } from '../../../ops/engines/kafka.js';
import { randomIds } from '../../kernel/index.js';
import { MemoryLease } from '../lease.js';
import { MemoryEventStore } from '../store/memory.js';
import { until } from '../store/subscription.contract.js';
import { busContract } from './bus.contract.js';
import { MemoryCheckpoints } from './checkpoints.js';
import { KafkaBus } from './kafka.js';
import { startKafkaRelay } from './kafka-relay.js';
import { Topics } from './message.js';

const missing = whyNoKafka();

if (missing) {
  describe('the bus on Kafka', () => {
    it('passes the contract of buses', (context) => context.skip(`${missing}.`));
  });
} else {
  let kafka: Kafka;
  let arenas = 0;
  beforeAll(async () => {
    kafka = await startKafka({ folder: mkdtempSync(join(tmpdir(), 'agon-kafka-')) });
  });
  afterAll(() => kafka?.stop());

  /** Topics of its own for every test, with the streams of the contract in different ones. */
  const options = () => {
    const contexts = { note: 'notes', live: 'live' };
    return { brokers: kafka.brokers, topics: new Topics(`test${arenas++}`, contexts), partitions: 2, ids: randomIds };
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
          // What the suite has appended is in Kafka before its consumer comes, as it is in the log of the embedded bus.
          consume: async (...args) => {
            const last = await store.lastPosition();
            await until(() => relay.position() >= last);
            return bus.consume(...args);
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
}
