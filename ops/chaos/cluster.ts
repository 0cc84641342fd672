import { join } from 'node:path';
import { kill } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ledgerSums } from '../../projections/balances/query.js';
import { balances } from '../../projections/balances/table.js';
import { ratings } from '../../projections/leaderboards/table.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { type Cluster, startCluster } from '../engines/cluster.js';
import { pidOfRunning } from '../engines/postgres.js';
import { withFolder } from '../harness/folders.js';
import { chainsHold, readLog } from './checks.js';
import { leftovers } from './outcomes.js';
import { rebuiltFrom, rowFaults } from './rows.js';
import { type Run, tellStep } from './run.js';
import { type Receipt, Season } from './season.js';
import { between, type Random, seededRandom } from './workload.js';

const OWNERS = 8;
const ROUNDS = 3;
const LEASE_MS = 3_000;
const SETTLE_MS = 120_000;
const BEAT_MS = 250;

export const cluster: Run = {
  name: 'cluster',
  about: 'processes of a cluster killed during matches for money, with a broker, PostgreSQL or Redis',
  holds:
    'nothing acknowledged is lost, nothing is paid twice, lag returns to zero, and rows and boards equal a rebuild',
  lanes: 1,
  start: (seeds) => withCluster((running) => seeds((seed) => runSeed(seed, running))),
};

/** One cluster for all seeds: each finds it as the one before has left it. */
async function withCluster<T>(use: (cluster: Cluster) => Promise<T>): Promise<T> {
  const settings = { AGON_LEASE_MS: `${LEASE_MS}`, AGON_LOG_LEVEL: 'warn' };
  return withFolder(async (folder) => {
    const running = await startCluster({ folder, brokers: 3, standby: true, settings, onStep: tellStep });
    return use(running).finally(() => running.stop());
  });
}

/** Plays staked matches while things die, and looks at what is left once all are back. */
async function runSeed(seed: number, cluster: Cluster) {
  const random = seededRandom('cluster', seed);
  const season = new Season({ url: cluster.url, token: cluster.operatorToken }, `s${seed}`, OWNERS, SETTLE_MS);
  const killed: string[] = [];
  const failures: string[] = [];
  const note = (what: string) => (error: unknown) => failures.push(`${what}: ${(error as Error).message}`);
  const load = (async () => {
    await season.open();
    for (let round = 0; round < ROUNDS; round++) {
      await season.propose(round);
      await sleep(between(random, 0, 1_500));
    }
  })();
  const trouble = strike(cluster, seed, random, killed);
  await load.catch(note('The load came to nothing'));
  await trouble.catch(note('What was killed could not be brought back'));
  await season.paid().catch(note('Matches do not end'));
  await settled(cluster).catch(note('Lag does not return to zero'));
  failures.push(...(await faultsOf(cluster, season.receipts)));
  const { receipts, matchIds, retries } = season;
  tellStep(`seed ${seed}: killed ${killed.join(', ')}; ${matchIds.length} matches, ${retries} retries`);
  return { killed, acknowledged: receipts.length, matches: matchIds.length, retries, failures };
}

/** A process at least, and by turns a broker, the database, Redis or another process. */
async function strike(cluster: Cluster, seed: number, random: Random, killed: string[]): Promise<void> {
  const blows = [killProcess, [killProcess, killBroker, killDatabase, loseRedis][seed % 4] ?? killProcess];
  await Promise.all(
    blows.map(async (blow) => {
      const [afterMs, choice] = [between(random, 200, 6_000), random()];
      await sleep(afterMs);
      killed.push(await blow(cluster, choice));
    }),
  );
}

async function killProcess({ processes }: Cluster, choice: number): Promise<string> {
  const victim = processes[Math.floor(choice * processes.length)];
  await victim?.kill('SIGKILL');
  return `${victim?.name}`;
}

async function killBroker({ kafka }: Cluster, choice: number): Promise<string> {
  const node = kafka.nodes[Math.floor(choice * kafka.nodes.length)];
  await node?.kill();
  await sleep(3_000);
  node?.restart();
  await kafka.ready();
  return `kafka ${node?.id}`;
}

async function killDatabase({ folder }: Cluster): Promise<string> {
  const pid = pidOfRunning(join(folder, 'postgres'));
  if (pid !== undefined) kill(pid, 'SIGKILL');
  return 'postgres';
}

async function loseRedis(cluster: Cluster): Promise<string> {
  await cluster.restartRedis();
  return 'redis';
}

/** Until every process is ready, and every consumer that is active has taken in everything. */
async function settled(cluster: Cluster): Promise<void> {
  const behind = async () => {
    const found = await cluster.status();
    const bad = found.filter(({ ready }) => !ready).map(({ process }) => process);
    const late = found.flatMap(({ process, parts }) =>
      parts
        .filter(({ detail }) => /^[1-9]\d* positions behind/.test(detail))
        .map(({ part, detail }) => `${process} ${part} ${detail}`),
    );
    return [...bad, ...late];
  };
  const endMs = performance.now() + SETTLE_MS;
  for (let left = await behind(); left.length > 0; left = await behind()) {
    if (performance.now() > endMs) throw new Error(left.join('; '));
    await sleep(BEAT_MS);
  }
}

async function faultsOf(cluster: Cluster, receipts: readonly Receipt[]): Promise<string[]> {
  const store = await EventStoreDbStore.open(cluster.settings.AGON_STORE ?? '');
  try {
    const log = await readLog(store);
    return [
      ...lost(log, receipts),
      ...(await chainsHold({ store })),
      ...leftovers(log),
      ...paidTwice(log),
      ...(await otherThanRebuilt(cluster, log)),
    ];
  } finally {
    await store.close();
  }
}

/** Every event of a receipt stands where it was said, in the stream of what it is about, by one command. */
function lost(log: readonly RecordedEvent[], receipts: readonly Receipt[]): string[] {
  return receipts
    .filter(({ id, position, events }) => {
      const there = log.slice(position - events.length, position);
      const [first] = there;
      const whole = there.every(
        ({ type, stream, revision, meta }, i) =>
          type === events[i] &&
          stream === first?.stream &&
          stream.slice(stream.indexOf('-') + 1) === id &&
          revision === first.revision + i &&
          meta.commandId === first.meta.commandId,
      );
      return there.length !== events.length || !whole;
    })
    .map(({ id, position }) => `Lost: what was acknowledged of ${id} at position ${position}.`);
}

/** What was held is posted or given back once, and every seat is paid once. */
function paidTwice(log: readonly RecordedEvent[]): string[] {
  const counts = new Map<string, number>();
  for (const event of log) {
    const { holdId, purpose } = event.data as { holdId?: string; purpose?: { matchId?: string; seat?: number } };
    const isEnd = /^Hold(Posted|Voided|Expired)$/.test(event.type);
    const isPaid = event.type === 'FundsCredited';
    const name = isEnd ? `hold ${holdId}` : `pay ${event.stream} ${purpose?.matchId} ${purpose?.seat}`;
    if (isEnd || isPaid) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].filter(([, n]) => n > 1).map(([name, n]) => `${name} happened ${n} times.`);
}

/** The rows that serve, and the boards in Redis, are those that the log alone gives. */
async function otherThanRebuilt(cluster: Cluster, log: readonly RecordedEvent[]): Promise<string[]> {
  const rebuilt = await rebuiltFrom(log);
  const database = await openDatabase(cluster.postgres.url);
  const redis = new Redis(cluster.settings.REDIS_URL ?? '');
  try {
    const sink = new PostgresSink(database);
    const faults = await rowFaults(sink, rebuilt);
    const boards = new RedisBoards(redis);
    for (const row of await rebuilt.rows(ratings)) {
      const found = await boards.rankOf(row, row.agentId);
      if (found?.rating !== row.rating)
        faults.push(`The board has ${found?.rating} for ${row.agentId}, not ${row.rating}.`);
    }
    for (const [currency, sum] of Object.entries(ledgerSums(await sink.rows(balances)))) {
      if (sum !== 0n) faults.push(`Money sums to ${sum} ${currency}, not to zero.`);
    }
    return faults;
  } finally {
    redis.disconnect();
    await database.destroy();
  }
}
