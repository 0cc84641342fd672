import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Projections } from '../../projections/engine/projections.js';
import { Projector } from '../../projections/engine/projector.js';
import { playedHistory } from '../../projections/history.contract.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { upcast, views } from '../../projections/views.js';
import { MemoryCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { KafkaBus } from '../../services/adapters/bus/kafka.js';
import { KafkaClient, type KafkaOptions } from '../../services/adapters/bus/kafka-client.js';
import { startKafkaRelay } from '../../services/adapters/bus/kafka-relay.js';
import { decodeEvent, Topics } from '../../services/adapters/bus/message.js';
import { MemoryLease } from '../../services/adapters/lease.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { chain } from '../../services/kernel/fixtures.js';
import { AgonError, type EventStore, type RecordedEvent, randomIds } from '../../services/kernel/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { whyNoKafka } from '../engines/kafka.js';
import { whyNoRedis } from '../engines/redis.js';
import { type OwnRedis, ownName, ownRedis, sharedKafka } from '../engines/shared.contract.js';
import { run, runWith, temporaryFolder } from './agon.contract.js';

const missing = whyNoKafka() ?? whyNoRedis();
const soon = async (condition: () => boolean) => {
  while (!condition()) await sleep(20);
};

/** A relay as anybody starts it, with what it last said about itself. */
class RelayProcess {
  state = 'stand-by';
  readonly child: ChildProcess;

  constructor(data: string, kafka: KafkaOptions, redis: string) {
    const agon = join(packageRoot, 'ops', 'cli', 'agon.js');
    const args = ['bus', 'relay', '--data', data, '--kafka', kafka.brokers.join(','), '--redis', redis];
    const own = ['--prefix', kafka.topics?.prefix ?? '', '--lease-ms', '3000', '--json'];
    this.child = spawn(execPath, [agon, ...args, ...own], { stdio: ['ignore', 'pipe', 'inherit'] });
    createInterface(this.child.stdout as NodeJS.ReadableStream).on('line', (line) => {
      this.state = (JSON.parse(line) as { state: string }).state;
    });
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    await ended;
  }
}

if (missing) {
  describe('the bus of a cluster', () => {
    it('runs on Kafka and Redis', (context) => context.skip(`${missing}.`));
  });
} else {
  const folder = temporaryFolder();
  let kafka: Awaited<ReturnType<typeof sharedKafka>>;
  let redis: OwnRedis;
  let arenas = 0;
  beforeAll(async () => {
    [kafka, redis] = await Promise.all([sharedKafka(), ownRedis()]);
  });
  afterAll(() => {
    redis?.close();
    folder.remove();
  });
  const options = () => ({
    brokers: kafka.brokers,
    topics: new Topics(ownName('bus')),
    partitions: 1,
    ids: randomIds,
  });

  const appendTo = async (store: EventStore, stream: string, count: number) => {
    const head = await store.head(stream);
    await store.append(stream, head?.revision ?? -1, chain(stream, count, head ? { after: head } : {}));
  };

  /** Everything that any reader of committed records sees, topic by topic. */
  const published = async (arena: KafkaOptions): Promise<RecordedEvent[][]> => {
    const client = new KafkaClient(arena);
    const all: RecordedEvent[][] = [];
    for (const topic of client.topics.events) all.push((await client.read(topic)).map(decodeEvent));
    await client.close();
    return all;
  };

  describe('two relays on one log', () => {
    const play = async (strike: (active: RelayProcess, other: RelayProcess) => Promise<void>) => {
      const data = join(folder.path, `data-${arenas++}`);
      mkdirSync(data);
      const arena = options();
      const store = await LmdbEventStore.open(join(data, 'log'));
      await appendTo(store, 'wallet-a', 5);
      const relays = [0, 1].map(() => new RelayProcess(data, arena, redis.url)) as [RelayProcess, RelayProcess];
      const bus = new KafkaBus(arena, new MemoryCheckpoints());
      const seen: number[] = [];
      const consumer = await bus.consume({ group: 'g' }, async (events) => {
        seen.push(...events.map(({ position }) => position));
      });
      await soon(() => consumer.position() === 5 && relays.some(({ state }) => state === 'publishing'));
      const [active, other] = relays[0].state === 'publishing' ? relays : ([relays[1], relays[0]] as const);
      expect([active.state, other.state]).toEqual(['publishing', 'stand-by']);

      let appending = true;
      const flow = (async () => {
        while (appending) {
          for (const stream of ['wallet-a', 'match-b', 'agent-c']) await appendTo(store, stream, 4);
          await sleep(5);
        }
      })();
      await sleep(300);
      await strike(active, other);
      await soon(() => other.state === 'publishing');
      await sleep(300);
      appending = false;
      await flow;
      const last = await store.lastPosition();
      await soon(() => consumer.position() === last);
      expect(seen).toEqual(Array.from({ length: last }, (_, i) => i + 1));
      await bus.close();
      for (const relay of relays) await relay.end('SIGTERM');
      const topics = await published(arena);
      for (const events of topics) {
        const positions = events.map(({ position }) => position);
        expect(positions).toEqual([...positions].sort((a, b) => a - b));
      }
      expect(topics.flat().sort((a, b) => a.position - b.position)).toEqual(await store.readAll());
      await store.close();
      return { active, other };
    };

    it('go on without a gap or a repetition when the active one is killed', async () => {
      const { active, other } = await play((relay) => relay.end('SIGKILL'));
      expect(active.child.signalCode).toBe('SIGKILL');
      expect(other.child.exitCode).toBe(0);
    });

    it('do not let one that stood still publish late', async () => {
      await play(async (relay, other) => {
        relay.child.kill('SIGSTOP');
        await soon(() => other.state === 'publishing');
        relay.child.kill('SIGCONT');
        await soon(() => relay.state === 'stand-by');
      });
    });
  });

  describe('views that are fed from Kafka', () => {
    it('hold the same rows as views that are fed from the log', async () => {
      const history = await playedHistory(30);
      const arena = { ...options(), partitions: 3 };
      const store = new MemoryEventStore();
      const relay = startKafkaRelay({ store, kafka: arena, lease: new MemoryLease(), batchEvents: 7 });
      const sink = new MemorySink();
      const makeBus = (checkpoints: ConstructorParameters<typeof KafkaBus>[1]) => new KafkaBus(arena, checkpoints);
      const projections = new Projections({ views, sink, store, upcast, makeBus, batchEvents: 16 });
      await projections.start();
      for (const event of history) await store.append(event.stream, event.revision - 1, [event]);
      await soon(() => [...projections.consumers.values()].every(({ position }) => position() === history.length));
      await projections.stop();
      await relay.stop();
      const straight = new MemorySink();
      for (const view of views) await new Projector(view, straight, upcast).project(history);
      for (const table of views.flatMap((view) => view.tables)) {
        expect([table.name, await sink.rows(table)]).toEqual([table.name, await straight.rows(table)]);
      }
    });
  });

  describe('agon bus', () => {
    it('lists dead letters and hands them out again', async () => {
      const arena = options();
      const at = ['--kafka', kafka.brokers.join(','), '--prefix', arena.topics.prefix];
      const store = new MemoryEventStore();
      const relay = startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
      const bus = new KafkaBus(arena, new MemoryCheckpoints());
      let broken = true;
      const taken: number[] = [];
      const consumer = await bus.consume({ group: 'policy.pay', attemptsMax: 1 }, async ([event]) => {
        if (broken) throw new AgonError('TEST.BROKEN', 'Not now.');
        taken.push(event?.position ?? 0);
      });
      expect(await run('bus', 'dead-letters', ...at)).toMatchObject({ code: 0, stdout: 'No dead letters.\n' });
      await appendTo(store, 'wallet-a', 1);
      await soon(() => consumer.position() === 1);
      const listed = await run('bus', 'dead-letters', '--group', 'policy.pay', '--json', ...at);
      expect(JSON.parse(listed.stdout)).toMatchObject([{ group: 'policy.pay', position: 1, code: 'TEST.BROKEN' }]);
      expect((await run('bus', 'dead-letters', ...at)).stdout).toContain('Not now.');
      expect(await run('bus', 'replay', ...at)).toMatchObject({ code: 2 });
      expect(await run('bus', 'replay', '--event', 'none', ...at)).toMatchObject({ code: 1 });
      broken = false;
      const replayed = await run('bus', 'replay', '--group', 'policy.pay', '--json', ...at);
      expect(JSON.parse(replayed.stdout)).toMatchObject({ replayed: 1 });
      await soon(() => taken.length === 1);
      expect(await run('bus', 'dead-letters', '--json', ...at)).toMatchObject({ code: 0, stdout: '[]\n' });
      await bus.close();
      await relay.stop();
    });

    it('reaches Kafka by TLS as a user whose password is in the environment', async () => {
      const { sasl, ca, user, password } = kafka.secured;
      const at = ['--kafka', sasl.join(','), '--kafka-ca', ca, '--kafka-sasl', 'scram-sha-512', '--kafka-user', user];
      const ask = (AGON_KAFKA_PASSWORD: string) => runWith({ AGON_KAFKA_PASSWORD }, 'bus', 'dead-letters', ...at);
      expect(await ask(password)).toMatchObject({ code: 0, stdout: 'No dead letters.\n' });
      const refused = await ask('hidden');
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('BUS.CREDENTIALS')]);
      expect(refused.stdout + refused.stderr).not.toContain('hidden');
    });

    it.each([
      [['dead-letters', '--kafka', '127.0.0.1:1', '--kafka-user', 'ada'], 'CONFIG.INVALID', 2],
      [['dead-letters', '--kafka', '127.0.0.1:1', '--kafka-ca', '/nowhere.crt'], 'CONFIG.INVALID', 2],
      [['dead-letters'], 'ARENA.NOT_RUNNING', 1],
      [['dead-letters', '--kafka', 'nowhere'], 'CONFIG.INVALID', 2],
      [['dead-letters', '--kafka', '127.0.0.1:1'], 'BUS.UNREACHABLE', 1],
      [['relay', '--kafka', '127.0.0.1:1', '--redis', 'http://x'], 'CONFIG.INVALID', 2],
      [['relay', '--kafka', '127.0.0.1:1', '--prefix', 'a.b'], 'CONFIG.INVALID', 2],
    ])('refuses %j with %s', async (args, code, exit) => {
      const refused = await run('bus', ...args, '--data', join(folder.path, 'none'));
      expect([refused.code, refused.stderr]).toEqual([exit, expect.stringContaining(code)]);
    });
  });
}
