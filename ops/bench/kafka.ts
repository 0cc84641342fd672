import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { balancesView } from '../../projections/balances/view.js';
import { Projections } from '../../projections/engine/projections.js';
import { Projector } from '../../projections/engine/projector.js';
import type { View } from '../../projections/engine/view.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast } from '../../projections/views.js';
import { MemoryCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { KafkaBus } from '../../services/adapters/bus/kafka.js';
import { KafkaClient, type KafkaOptions } from '../../services/adapters/bus/kafka-client.js';
import { startKafkaRelay } from '../../services/adapters/bus/kafka-relay.js';
import { encodeEvent, Topics } from '../../services/adapters/bus/message.js';
import { MemoryLease } from '../../services/adapters/lease.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import type { EventStore } from '../../services/kernel/index.js';
import { startKafka } from '../engines/kafka.js';
import { withPostgres } from '../harness/folders.js';
import { pagesOfLog } from '../harness/write-side.js';
import { withHistory, writeHistory } from './history.js';
import { type BenchOptions, compare, delaysOf, perSecond, type Report, thousands } from './rounds.js';

const EVENTS = 200_000;
const BATCH_EVENTS = 2_048;
const VIEWS: readonly View[] = [balancesView, leaderboardsView];
const LATENCY_APPENDS = 200;

/** A log relayed through Kafka and taken into views, against the bare client moving the same messages. */
export function kafka(options: BenchOptions): Promise<Report> {
  return withHistory(EVENTS, options, ({ store, folder, count }) =>
    withPostgres(async (url) => {
      const engine = await startKafka({ folder: `${folder}/kafka` });
      const db = await openDatabase(url);
      const arena = (): KafkaOptions => ({
        brokers: engine.brokers,
        topics: new Topics(`bench${randomUUID().slice(0, 8)}`),
        ids: randomUUID,
      });
      try {
        const sink = new PostgresSink(db);
        const contenders = {
          relayed: () => relayed(arena(), store, sink, count),
          kafkajs: () => bare(arena(), store, count),
        };
        const ratios = { kafkajs: ['relayed', 'kafkajs'] } as const;
        const compared = await compare(contenders, options, { ratios, targets: { kafkajs: 0.4 } });
        const embedded = await delays(folder, 'embedded');
        const overKafka = await delays(folder, 'kafka', arena());
        return {
          ...compared,
          notes: [
            `${thousands(count)} events of staked matches: read from the log, published in transactions, read, put in order, ` +
              'and taken into balances and leaderboards in PostgreSQL. kafkajs sends and reads the same messages, made ' +
              'beforehand, idempotently and with acks from all, and does nothing with them.',
            `append to visible row, ms: embedded ${embedded}; Kafka ${overKafka}`,
          ],
        };
      } finally {
        await db.destroy();
        await engine.stop();
      }
    }),
  );
}

async function relayed(arena: KafkaOptions, store: EventStore, sink: PostgresSink, count: number): Promise<number> {
  for (const view of VIEWS) await sink.reset(view);
  const projectors = VIEWS.map((view) => new Projector(view, sink, upcast));
  await prepared(arena);
  const bus = new KafkaBus(arena, new MemoryCheckpoints());
  let relay: ReturnType<typeof startKafkaRelay> | undefined;
  const speed = await perSecond(count, async () => {
    relay = startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
    const consumer = await bus.consume({ group: 'bench', batchSize: BATCH_EVENTS }, async (events) => {
      await Promise.all(projectors.map((projector) => projector.project(events)));
    });
    while (consumer.position() < count) await sleep(5);
  });
  await bus.close();
  await relay?.stop();
  await removed(arena);
  return speed;
}

/** Nothing but the client: the messages are ready, and those that come are counted. */
async function bare(arena: KafkaOptions, store: EventStore, count: number): Promise<number> {
  const topics = arena.topics as Topics;
  const batches: { topic: string; messages: ReturnType<typeof encodeEvent>[] }[][] = [];
  for await (const page of pagesOfLog(store, 0, BATCH_EVENTS)) {
    const byTopic = new Map<string, ReturnType<typeof encodeEvent>[]>();
    for (const event of page) {
      const topic = topics.of(event.stream);
      byTopic.set(topic, [...(byTopic.get(topic) ?? []), encodeEvent(event, '/bench')]);
    }
    batches.push([...byTopic].map(([topic, messages]) => ({ topic, messages })));
  }
  await prepared(arena);
  const client = new kafkajs.Kafka({ brokers: [...arena.brokers], logLevel: kafkajs.logLevel.NOTHING });
  const producer = client.producer({ idempotent: true, maxInFlightRequests: 1 });
  const consumer = client.consumer({ groupId: randomUUID(), maxWaitTimeInMs: 100 });
  let seen = 0;
  const speed = await perSecond(count, async () => {
    await consumer.connect();
    await consumer.subscribe({ topics: [...topics.events], fromBeginning: true });
    await consumer.run({
      partitionsConsumedConcurrently: 4,
      eachBatch: async ({ batch }) => {
        seen += batch.messages.length;
      },
    });
    await producer.connect();
    for (const topicMessages of batches) await producer.sendBatch({ acks: -1, topicMessages });
    while (seen < count) await sleep(5);
  });
  await consumer.disconnect();
  await producer.disconnect();
  await removed(arena);
  return speed;
}

async function prepared(arena: KafkaOptions): Promise<void> {
  const client = new KafkaClient(arena);
  await client.ensureTopics();
  await client.close();
}

async function removed(arena: KafkaOptions): Promise<void> {
  const client = new KafkaClient(arena);
  const prefix = `${client.topics.prefix}.`;
  await client.asAdmin(async (admin) => {
    await admin.deleteTopics({ topics: (await admin.listTopics()).filter((topic) => topic.startsWith(prefix)) });
  });
  await client.close();
}

/** Milliseconds from the moment an append begins until its rows are committed, one after the other. */
async function delays(folder: string, name: string, arena?: KafkaOptions): Promise<string> {
  const store = await LmdbEventStore.open(`${folder}/${name}`);
  let visible = 0;
  const projections = new Projections({
    views: VIEWS,
    sink: new MemorySink(),
    store,
    upcast,
    makeBus: (checkpoints) => (arena ? new KafkaBus(arena, checkpoints) : new EmbeddedBus(store, checkpoints)),
    onCommitted: ({ view, to }) => {
      if (view === balancesView) visible = to;
    },
  });
  const relay = arena && startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
  await projections.start();
  const delays = await delaysOf(LATENCY_APPENDS, LATENCY_APPENDS / 10, async (i) => {
    await writeHistory(store, 1, `-${name}-${i}`);
    const last = await store.lastPosition();
    while (visible < last) await sleep(0);
  });
  await projections.stop();
  await relay?.stop();
  await store.close();
  return delays;
}
