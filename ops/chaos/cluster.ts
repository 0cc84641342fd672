import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../projections/sinks/database.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import type { EventStore } from '../../services/kernel/index.js';
import { startCluster } from '../engines/cluster.js';
import { urlOfRunning } from '../engines/postgres.js';
import { withFolder } from '../harness/folders.js';
import { blows, killProcess, type Target } from './blows.js';
import { ExpectedRows, faultsOf } from './cluster-faults.js';
import { lagOf, rowLagOf } from './cluster-lag.js';
import { DatabaseProxy } from './database-proxy.js';
import { type Run, tellStep } from './run.js';
import { Season } from './season.js';
import { between, seededRandom } from './workload.js';

const OWNERS = 8;
const ROUNDS = 3;
const LEASE_MS = 3_000;
/** What is over by itself is no fault: on a busy machine Kafka was seen without a controller for five minutes. */
const SETTLE_MS = 600_000;
const BEAT_MS = 250;
/** What a season is told in the end, so that blows fall wherever it is, however fast the machine. */
const RECEIPTS = 3 * OWNERS + (ROUNDS * OWNERS) / 2;
/** Of so many more that never come: some blows fall when all is played and the log is quiet, and no event mends anything. */
const LATE = 8;
const DELAY_MS_MAX = 1_500;

export const cluster: Run = {
  name: 'cluster',
  about:
    'processes of a cluster killed or stopped during matches for money and rebuilds, with a broker, PostgreSQL, answers to ' +
    'its commits, or Redis',
  holds:
    'nothing acknowledged is lost, nothing is paid twice, lag returns to zero, and rows and boards equal a rebuild',
  lanes: 1,
  start: (seeds) => withCluster((scene) => seeds((seed) => runSeed(seed, scene))),
};

interface Scene extends Omit<Target, 'over'> {
  readonly expected: ExpectedRows;
}

/** One cluster for all seeds: each finds it as the one before has left it. */
async function withCluster<T>(use: (scene: Scene) => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    const postgres = join(folder, 'postgres');
    const proxy = await DatabaseProxy.listen(() => {
      const url = urlOfRunning(postgres);
      return url === undefined ? undefined : Number(new URL(url).port);
    });
    // Processes are told of the proxy before there is a PostgreSQL behind it.
    const password = randomBytes(18).toString('base64url');
    mkdirSync(postgres, { recursive: true });
    writeFileSync(join(postgres, 'password'), password, { mode: 0o600 });
    const settings = {
      AGON_LEASE_MS: `${LEASE_MS}`,
      AGON_LOG_LEVEL: 'warn',
      DATABASE_URL: `postgres://agon:${password}@127.0.0.1:${proxy.port}/postgres`,
    };
    const spare = ['projections-boards-2', 'projections', { AGON_VIEWS: 'leaderboards' }] as const;
    try {
      const running = await startCluster({ folder, brokers: 3, standby: true, more: [spare], settings });
      tellStep('the cluster is ready');
      // Not by way of the proxy: nobody strikes at those who look.
      const database = await openDatabase(running.postgres.url);
      const scene = { cluster: running, proxy, sink: new PostgresSink(database), expected: new ExpectedRows() };
      return await use(scene).finally(async () => {
        await database.destroy();
        await running.stop();
      });
    } finally {
      await proxy.close();
    }
  });
}

/** Plays staked matches while things die, and looks at what is left once all are back. */
async function runSeed(seed: number, scene: Scene) {
  const { cluster: running } = scene;
  const startedMs = performance.now();
  const random = seededRandom('cluster', seed);
  const season = new Season({ url: running.url, token: running.operatorToken }, `s${seed}`, OWNERS, SETTLE_MS);
  const done: string[] = [];
  const failures: string[] = [];
  const since = () => `+${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
  const note = (what: string) => (error: unknown) => failures.push(`${what}: ${(error as Error).message}`);
  const played = new AbortController();
  const load = (async () => {
    await season.open();
    for (let round = 0; round < ROUNDS; round++) {
      await season.propose(round);
      await sleep(between(random, 0, 1_500));
    }
  })();
  const killed: string[] = [];
  const tell = (what: string) => done.push(`${since()} ${what}`);
  const struck = (what: string) => {
    killed.push(what.replace(/ for \d+ ms$/, ''));
    tell(what);
  };
  const trouble = strike({ ...scene, over: played.signal }, seed, season, struck).catch(
    note('What was killed could not be brought back'),
  );
  await load.catch(note('The load came to nothing'));
  await season.paid().catch(note('Matches do not end'));
  tell('all is played');
  played.abort();
  await trouble;
  tell('all is back');
  await settled(scene).catch(note('Lag does not return to zero'));
  tell('all is taken in');
  const redisUrl = running.settings.REDIS_URL ?? '';
  const look = (store: EventStore) => faultsOf({ ...scene, store, redisUrl }, season.receipts);
  failures.push(...(await withLog(scene, look).catch((error: unknown) => [`Nobody can look: ${error}`])));
  const { receipts, matchIds, retries } = season;
  tellStep(`seed ${seed}: ${done.join('; ')}; ${since()} ${matchIds.length} matches, ${retries} retries`);
  return { killed, acknowledged: receipts.length, matches: matchIds.length, retries, failures };
}

/** A process, a blow by turns and one or two of any kind, side by side, each as the season comes to a seeded point. */
async function strike(target: Target, seed: number, season: Season, tell: (what: string) => void): Promise<void> {
  const chosen = seededRandom('blows', seed);
  const any = Array.from({ length: between(chosen, 1, 2) }, () => blows[between(chosen, 0, blows.length - 1)]);
  await Promise.all(
    [killProcess, blows[seed % blows.length], ...any].map(async (blow, i) => {
      const random = seededRandom('blow', seed, i);
      const [receipts, delayMs] = [between(random, 4, RECEIPTS + LATE), between(random, 0, DELAY_MS_MAX)];
      while (season.receipts.length < receipts && !target.over.aborted) await sleep(BEAT_MS / 10);
      await sleep(delayMs);
      tell((await blow?.(target, random)) ?? '');
    }),
  );
}

/** Until every process is ready, everything is taken in by whoever keeps it, and no build is under way. */
async function settled(scene: Scene): Promise<void> {
  const { cluster: running, sink } = scene;
  const behind = async () => {
    const left = lagOf(await running.status());
    if (left.length > 0) return left;
    return withLog(scene, async (store) =>
      rowLagOf(sink, running.settings.REDIS_URL ?? '', await store.lastPosition()),
    );
  };
  // What is away for a moment cannot be asked.
  const asked = () => behind().catch((error: unknown) => [`${error}`]);
  const endMs = performance.now() + SETTLE_MS;
  for (let left = await asked(); left.length > 0; left = await asked()) {
    if (performance.now() > endMs) throw new Error(left.join('; '));
    await sleep(BEAT_MS);
  }
}

/** By a connection of its own: the log's process may have been killed since the last one. */
async function withLog<T>({ cluster: running }: Scene, use: (store: EventStore) => Promise<T>): Promise<T> {
  const store = await EventStoreDbStore.open(running.settings.AGON_STORE ?? '');
  return use(store).finally(() => store.close());
}
