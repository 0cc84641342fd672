import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
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
import type { Bus, Checkpoints, EventStore } from '../../services/kernel/index.js';
import { startKafka } from '../engines/kafka.js';
import { startPostgres } from '../engines/postgres.js';
import { withFolder } from './folders.js';
import { writeHistory } from './history.js';
import { type BenchOptions, figures, type Report, race, ratio, thousands } from './rounds.js';

const EVENTS = 200_000;
const BATCH_EVENTS = 2_048;
const VIEWS: readonly View[] = [balancesView, leaderboardsView];
const LATENCY_APPENDS = 200;

/** A log relayed through Kafka and taken into views, against the bare client moving the same messages. */
export async function kafka(options: BenchOptions): Promise<Report> {
  return withFolder(async (folder) => {
    const store = await LmdbEventStore.open(`${folder}/log`);
    const engine = await startKafka({ folder: `${folder}/kafka` });
    const postgres = await startPostgres({ folder: `${folder}/postgres` });
    const db = await openDatabase(postgres.url);
    try {
      const count = await writeHistory(store, options.quick ? EVENTS / 20 : EVENTS);
      options.progress(`${thousands(count)} events written`);
      const arena = (): KafkaOptions => ({
        brokers: engine.brokers,
        topics: new Topics(`bench${randomUUID().slice(0, 8)}`),
        ids: randomUUID,
      });
      const sink = new PostgresSink(db);
      const measured = await race(
        [
          { name: 'relayed', run: () => relayed(arena(), store, sink, count) },
          { name: 'kafkajs', run: () => bare(arena(), store, count) },
        ],
        options,
      );
      const embedded = await delays(
        folder,
        'embedded',
        (_store, checkpoints, log) => new EmbeddedBus(log, checkpoints),
      );
      const remote = arena();
      const overKafka = await delays(
        folder,
        'kafka',
        (_store, checkpoints) => new KafkaBus(remote, checkpoints),
        remote,
      );
      return {
        results: Object.fromEntries([...measured].map(([name, rounds]) => [name, figures(rounds)])),
        ratios: { kafkajs: ratio(measured, 'relayed', 'kafkajs') },
        targets: { kafkajs: 0.4 },
        notes: [
          `${thousands(count)} events of staked matches: read from the log, published in transactions, read, put in order, ` +
            'and taken into balances and leaderboards in PostgreSQL. kafkajs sends and reads the same messages, made ' +
            'beforehand, idempotently and with acks from all, and does nothing with them.',
          `append to visible row, ms: embedded p50 ${embedded.p50} p99 ${embedded.p99}; Kafka p50 ${overKafka.p50} p99 ${overKafka.p99}`,
        ],
      };
    } finally {
      await db.destroy();
      await postgres.stop();
      await engine.stop();
      await store.close();
    }
  });
}

async function relayed(arena: KafkaOptions, store: EventStore, sink: PostgresSink, count: number): Promise<number> {
  for (const view of VIEWS) await sink.reset(view);
  const projectors = VIEWS.map((view) => new Projector(view, sink, upcast));
  await prepared(arena);
  const bus = new KafkaBus(arena, new MemoryCheckpoints());
  const startedMs = performance.now();
  const relay = startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
  const consumer = await bus.consume({ group: 'bench', batchSize: BATCH_EVENTS }, async (events) => {
    await Promise.all(projectors.map((projector) => projector.project(events)));
  });
  while (consumer.position() < count) await sleep(5);
  const perSecond = (count / (performance.now() - startedMs)) * 1000;
  await bus.close();
  await relay.stop();
  await removed(arena);
  return perSecond;
}

/** Nothing but the client: the messages are ready, and those that come are counted. */
async function bare(arena: KafkaOptions, store: EventStore, count: number): Promise<number> {
  const topics = arena.topics as Topics;
  const batches: { topic: string; messages: ReturnType<typeof encodeEvent>[] }[][] = [];
  for (let after = 0; after < count; ) {
    const page = await store.readAll({ after, limit: BATCH_EVENTS });
    const byTopic = new Map<string, ReturnType<typeof encodeEvent>[]>();
    for (const event of page) {
      const topic = topics.of(event.stream);
      byTopic.set(topic, [...(byTopic.get(topic) ?? []), encodeEvent(event, '/bench')]);
    }
    batches.push([...byTopic].map(([topic, messages]) => ({ topic, messages })));
    after = page.at(-1)?.position ?? count;
  }
  await prepared(arena);
  const client = new kafkajs.Kafka({ brokers: [...arena.brokers], logLevel: kafkajs.logLevel.NOTHING });
  const producer = client.producer({ idempotent: true, maxInFlightRequests: 1 });
  const consumer = client.consumer({ groupId: randomUUID(), maxWaitTimeInMs: 100 });
  const startedMs = performance.now();
  let seen = 0;
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
  const perSecond = (count / (performance.now() - startedMs)) * 1000;
  await consumer.disconnect();
  await producer.disconnect();
  await removed(arena);
  return perSecond;
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
async function delays(
  folder: string,
  name: string,
  makeBus: (store: EventStore, checkpoints: Checkpoints, log: EventStore) => Bus,
  arena?: KafkaOptions,
): Promise<{ p50: number; p99: number }> {
  const store = await LmdbEventStore.open(`${folder}/${name}`);
  let visible = 0;
  const projections = new Projections({
    views: VIEWS,
    sink: new MemorySink(),
    store,
    upcast,
    makeBus: (checkpoints) => makeBus(store, checkpoints, store),
    onCommitted: ({ view, to }) => {
      if (view === balancesView) visible = to;
    },
  });
  const relay = arena && startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
  await projections.start();
  const took: number[] = [];
  for (let i = 0; i < LATENCY_APPENDS; i++) {
    const startedMs = performance.now();
    await writeHistory(store, 1, `-${name}-${i}`);
    const last = await store.lastPosition();
    while (visible < last) await sleep(0);
    // The first ones find connections and topics.
    if (i >= LATENCY_APPENDS / 10) took.push(performance.now() - startedMs);
  }
  await projections.stop();
  await relay?.stop();
  await store.close();
  took.sort((a, b) => a - b);
  const at = (share: number) => Math.round((took[Math.floor(took.length * share)] ?? 0) * 10) / 10;
  return { p50: at(0.5), p99: at(0.99) };
}
