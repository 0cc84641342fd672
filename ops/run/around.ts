import { existsSync, readFileSync } from 'node:fs';
import { env } from 'node:process';
import { openEventStoreDoor } from '../../gateway/eventstore/endpoint.js';
import { EmbeddedAnalytics } from '../../projections/analytics/service.js';
import {
  Cells,
  Egress,
  GrpcArena,
  keyIn,
  type Runner,
  type RunnerOptions,
  readPolicy,
  startRunner,
} from '../../sandbox-runner/index.js';
import { startKafkaRelay } from '../../services/adapters/bus/kafka-relay.js';
import { RedisLease } from '../../services/adapters/lease.js';
import { AgonError, randomIds } from '../../services/kernel/index.js';
import { claimIdsOf, clockOf } from '../../services/runtime/clock.js';
import { DataFolder, folderLayout } from '../../services/runtime/data-folder.js';
import { addGauges } from '../../services/runtime/gauges.js';
import type { Frame } from '../../services/runtime/host.js';
import type { Config } from '../../services/runtime/settings.js';
import type { Engines } from './engines.js';
import { openLog } from './log.js';
import type { Doors } from './main.js';

const EVENTSTORE_PORT = 2113;
const GRACE_MS = 10_000;

/** Publishes the log to Kafka. Several agree by a lease on who does; Kafka's fence keeps the order, whatever they think. */
export async function relay(frame: Frame, engines: Engines): Promise<Doors> {
  const kafka = await engines.kafka();
  const redis = await engines.patientRedis('lease');
  frame.part('redis', () => redis.ping());
  const store = await engines.store();
  const onTrouble = (error: unknown) => frame.onRetry('relay', error);
  const lease = new RedisLease({ redis, name: `${frame.config.kafkaPrefix}.relay`, ids: randomIds, onTrouble });
  const running = startKafkaRelay({ store, kafka, lease, onRetry: onTrouble });
  frame.started('relay', running, () => running.stop());
  frame.watch('relay', { ...running, active: () => running.state() !== 'stand-by' }, async () => {
    // One that stands by is of use only while another publishes, and one that cannot begin publishes nothing.
    if (running.state() === 'stand-by' && !(await lease.taken())) throw new Error('nobody publishes');
    if (running.state() === 'taking over') throw new Error('publishes nothing yet');
    return store.lastPosition();
  });
  return {};
}

/** Takes every event into ClickHouse. */
export async function analytics(frame: Frame, engines: Engines): Promise<Doors> {
  const { config } = frame;
  const store = await engines.store();
  const kept = new EmbeddedAnalytics(config, folderLayout(config.dataDir), store, (error) =>
    frame.onRetry('analytics', error),
  );
  frame.started('analytics', kept, () => kept.stop());
  const stop = () => kept.stop();
  frame.consumers.set('analytics', { stop, done: new Promise(() => {}), position: () => kept.position() });
  frame.part('analytics', async () => {
    const { ready, detail } = kept.status(await store.lastPosition());
    if (!ready) throw new Error(detail);
    return detail;
  });
  kept.start();
  return {};
}

/** Plays matches of the arena whose door was named. */
export async function runner(frame: Frame): Promise<Doors> {
  const { config } = frame;
  const address = config.arena;
  if (address === undefined) {
    throw new AgonError('CONFIG.INVALID', "AGON_ARENA is missing: a runner needs host:port of the arena's door.");
  }
  const key = keyIn(folderLayout(config.dataDir).runnerKey);
  const egress = config.egress === undefined ? undefined : new Egress(readPolicy(config.egress, [], env));
  let holding: Runner['holding'] = () => [];
  const claimIds = claimIdsOf(config);
  const port = await frame.need('arena', async () => {
    const arena = new GrpcArena({
      address,
      token: runnerToken(config),
      key,
      clock: clockOf(config),
      ids: randomIds,
      ...(claimIds ? { claimIds } : {}),
      holding: () => holding(),
    });
    await arena.connect().catch((error: unknown) => {
      arena.close();
      throw error;
    });
    return arena;
  });
  frame.started('arena', port, async () => port.close());
  const concurrency = config.cells;
  const pool = new Cells({ size: concurrency, queueLength: concurrency * 2 }, egress);
  const say = (text: string, matchId: string) => frame.log.debug({ matchId }, text);
  const { metrics } = frame;
  const onPlayed: RunnerOptions['onPlayed'] = ({ game, outcome: { reason } }) => metrics.matches.inc({ game, reason });
  addGauges(metrics.registry, { cells: pool, cellsMax: concurrency });
  const played = metrics.pool(pool);
  const running = startRunner({ arena: port, key, pool: played, concurrency, live: true, say, onPlayed });
  holding = running.holding;
  running.done.catch(frame.giveUp);
  frame.started('runner', running, () => running.drain(GRACE_MS));
  frame.part('runner', async () => `${running.holding().length} matches in hand`);
  return {};
}

function runnerToken({ runnerToken: given, dataDir }: Config): string {
  if (given) return given.reveal();
  const path = folderLayout(dataDir).runnerToken;
  if (existsSync(path)) return readFileSync(path, 'utf8').trim();
  throw new AgonError('RUNNERS.NO_TOKEN', `There is no runner token: set AGON_RUNNER_TOKEN, or put one at ${path}.`);
}

/** The log of a folder behind EventStoreDB's protocol: a store for a cluster where there is no EventStoreDB. */
export async function eventstore(frame: Frame): Promise<Doors> {
  const { config } = frame;
  const folder = await frame.need('data folder', async () => DataFolder.take(config.dataDir));
  frame.started('data folder', folder, async () => folder.release());
  const store = await frame.need('log', () => openLog({ dataDir: config.dataDir, storeUrl: undefined }));
  frame.started('log', store, () => store.close());
  frame.part('log', async () => `at position ${await store.lastPosition()}`);
  addGauges(frame.metrics.registry, { store, dataDir: config.dataDir, logDir: folder.paths.log });
  const operatorToken = config.operatorToken?.reveal() ?? folder.operatorToken();
  const tokens = { operatorToken, readerToken: folder.readerToken() };
  const onInternalError = (err: unknown) => frame.log.error({ err }, 'internal error');
  const parts = { store, clock: clockOf(config), ids: randomIds, config, paths: folder.paths, ...tokens };
  const port = config.eventstorePort ?? EVENTSTORE_PORT;
  const door = await frame.need('eventstore', () => openEventStoreDoor({ ...parts, onInternalError }, port));
  frame.started('eventstore', door, () => door.close());
  frame.part('eventstore', async () => door.url);
  return { eventstore: door.url };
}
