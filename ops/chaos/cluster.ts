import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kill } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { balances } from '../../projections/balances/table.js';
import { Projector } from '../../projections/engine/projector.js';
import { ratings } from '../../projections/leaderboards/table.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { upcast, views } from '../../projections/views.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { chainFault, EMPTY_HEAD, type RecordedEvent, type StreamHead } from '../../services/kernel/index.js';
import { type Cluster, startCluster } from '../engines/cluster.js';
import { pidOfRunning } from '../engines/postgres.js';
import { readLog } from './checks.js';
import { hashOf } from './projections.js';
import { type Receipt, Season } from './season.js';
import { between, type Random, seededRandom } from './workload.js';

const OWNERS = 8;
const ROUNDS = 3;
const LEASE_MS = 3_000;
const SETTLE_MS = 120_000;
const BEAT_MS = 250;

export interface ClusterResult {
  readonly seed: number;
  /** What was done to it, in words. */
  readonly faults: readonly string[];
  readonly acknowledged: number;
  readonly matches: number;
  readonly retries: number;
  readonly failures: readonly string[];
}

/** One cluster for all seeds: each finds it as the one before has left it. */
export async function withCluster<T>(use: (cluster: Cluster) => Promise<T>, tell: (step: string) => void): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'agon-chaos-cluster-'));
  const settings = { AGON_LEASE_MS: `${LEASE_MS}`, AGON_LOG_LEVEL: 'warn' };
  try {
    const cluster = await startCluster({ folder, brokers: 3, standby: true, settings, onStep: tell });
    try {
      return await use(cluster);
    } finally {
      await cluster.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Plays staked matches while things die, and looks at what is left once all are back. */
export async function runClusterSeed(seed: number, cluster: Cluster): Promise<ClusterResult> {
  const random = seededRandom('cluster', seed);
  const season = new Season({ url: cluster.url, token: cluster.operatorToken }, `s${seed}`, OWNERS, SETTLE_MS);
  const faults: string[] = [];
  const failures: string[] = [];
  const note = (what: string) => (error: unknown) => failures.push(`${what}: ${(error as Error).message}`);
  const load = (async () => {
    await season.open();
    for (let round = 0; round < ROUNDS; round++) {
      await season.propose(round);
      await sleep(between(random, 0, 1_500));
    }
  })();
  const trouble = strike(cluster, seed, random, faults);
  await load.catch(note('The load came to nothing'));
  await trouble.catch(note('What was killed could not be brought back'));
  await season.paid().catch(note('Matches do not end'));
  await settled(cluster).catch(note('Lag does not return to zero'));
  failures.push(...(await faultsOf(cluster, season.receipts, season.matchIds)));
  const { receipts, matchIds, retries } = season;
  return { seed, faults, acknowledged: receipts.length, matches: matchIds.length, retries, failures };
}

/** A process at least, and by turns a broker, the database, Redis or another process. */
async function strike(cluster: Cluster, seed: number, random: Random, told: string[]): Promise<void> {
  const blows = [killProcess, [killProcess, killBroker, killDatabase, loseRedis][seed % 4] ?? killProcess];
  await Promise.all(
    blows.map(async (blow) => {
      const [afterMs, choice] = [between(random, 200, 6_000), random()];
      await sleep(afterMs);
      told.push(await blow(cluster, choice));
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
        .filter(({ detail }) => /^[1-9]\d* events behind/.test(detail))
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

async function faultsOf(
  cluster: Cluster,
  receipts: readonly Receipt[],
  matchIds: readonly string[],
): Promise<string[]> {
  const store = await EventStoreDbStore.open(cluster.settings.AGON_STORE ?? '');
  try {
    const log = await readLog(store);
    return [
      ...lost(log, receipts),
      ...broken(log),
      ...paidTwice(log, matchIds),
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

function broken(log: readonly RecordedEvent[]): string[] {
  const heads = new Map<string, StreamHead>();
  return log.flatMap((event) => {
    const why = chainFault(event, heads.get(event.stream) ?? EMPTY_HEAD);
    heads.set(event.stream, event);
    return why ? [`${event.stream} at position ${event.position}: ${why}.`] : [];
  });
}

/** Every match ends once, and what was held for it is posted or given back once, and paid for once. */
function paidTwice(log: readonly RecordedEvent[], matchIds: readonly string[]): string[] {
  const counts = new Map<string, number>();
  const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const event of log) {
    const { holdId, matchId, purpose } = event.data as {
      holdId?: string;
      matchId?: string;
      purpose?: { matchId?: string; seat?: number };
    };
    if (event.type === 'MatchSettled' || event.type === 'MatchVoided') count(`end ${matchId}`);
    if (/^Hold(Posted|Voided|Expired)$/.test(event.type)) count(`hold ${holdId}`);
    if (event.type === 'FundsHeld') count(`held ${holdId}`);
    if (event.type === 'FundsCredited') count(`pay ${event.stream} ${purpose?.matchId} ${purpose?.seat}`);
  }
  const twice = [...counts].filter(([, n]) => n > 1).map(([name, n]) => `${name} happened ${n} times.`);
  const open = matchIds.filter((id) => counts.get(`end ${id}`) !== 1).map((id) => `Match ${id} has not ended.`);
  const held = [...counts.keys()]
    .filter((name) => name.startsWith('held ') && !counts.has(name.replace('held', 'hold')))
    .map((name) => `${name} was never given back nor posted.`);
  return [...twice, ...open, ...held];
}

/** The rows that serve, and the boards in Redis, are those that the log alone gives. */
async function otherThanRebuilt(cluster: Cluster, log: readonly RecordedEvent[]): Promise<string[]> {
  const rebuilt = new MemorySink();
  for (const view of views) await new Projector(view, rebuilt, upcast).project(log);
  const database = await openDatabase(cluster.postgres.url);
  const redis = new Redis(cluster.settings.REDIS_URL ?? '');
  try {
    const sink = new PostgresSink(database);
    const faults: string[] = [];
    for (const view of views) {
      const [rows, expected] = await Promise.all([hashOf(sink, view), hashOf(rebuilt, view)]);
      if (rows !== expected) faults.push(`The rows of ${view.name} are not those of a rebuild.`);
    }
    const boards = new RedisBoards(redis);
    for (const row of await rebuilt.rows(ratings)) {
      const found = await boards.rankOf(row, row.agentId);
      if (found?.rating !== row.rating)
        faults.push(`The board has ${found?.rating} for ${row.agentId}, not ${row.rating}.`);
    }
    const sums = new Map<string, bigint>();
    for (const { currency, balanceCents } of await sink.rows(balances)) {
      sums.set(currency, (sums.get(currency) ?? 0n) + balanceCents);
    }
    for (const [currency, sum] of sums) if (sum !== 0n) faults.push(`Money sums to ${sum} ${currency}, not to zero.`);
    return faults;
  } finally {
    redis.disconnect();
    await database.destroy();
  }
}
