import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kill } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { viewNamed } from '../../projections/engine/projections.js';
import type { PostgresSink } from '../../projections/sinks/postgres.js';
import { views } from '../../projections/views.js';
import type { Cluster } from '../engines/cluster.js';
import { pidOfRunning } from '../engines/postgres.js';
import type { DatabaseProxy, Trap } from './database-proxy.js';
import { between, type Random } from './workload.js';

/** What is struck, and by what means. */
export interface Target {
  readonly cluster: Cluster;
  readonly proxy: DatabaseProxy;
  readonly sink: PostgresSink;
  /** Fires when there is nothing more to strike at. */
  readonly over: AbortSignal;
}

/** Says what it did, once all that it took away is on its way back. */
type Blow = (target: Target, random: Random) => Promise<string>;

/** Longer than the lease of a relay. */
const STANDSTILL_MS = { min: 1_000, max: 5_000 };
/** Longer than Kafka waits for a member of a group: another one has its work when it goes on. */
const LONG_STANDSTILL_MS = 14_000;
const BROKER_AWAY_MS = 3_000;
const BROKER_TRIES = 4;
/** About as long as an event takes from the log to Kafka. */
const PUBLISHING_MS = 40;
const BUILD_AGAIN_MS = 200;

/** Which processes keep a view. */
const keepers: Readonly<Record<string, string>> = {
  leaderboards: 'projections-boards',
  balances: 'projections-money',
  payments: 'projections-money',
};

const pick = <T>(random: Random, all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;

export async function killProcess({ cluster }: Target, random: Random): Promise<string> {
  const victim = pick(random, cluster.processes);
  await victim.kill('SIGKILL');
  return victim.name;
}

/** The one that dies may have the group, or wait for it: with luck, it has just been given it. */
async function killKeepersInTurn({ cluster }: Target, random: Random): Promise<string> {
  const boards = cluster.processes.filter(({ name }) => name.startsWith('projections-boards'));
  for (const victim of boards) {
    await victim.kill('SIGKILL');
    await sleep(between(random, 0, 4_000));
  }
  return boards.map(({ name }) => name).join(' then ');
}

async function killBroker({ cluster: { kafka } }: Target, random: Random): Promise<string> {
  const node = pick(random, kafka.nodes);
  await node.kill();
  await sleep(BROKER_AWAY_MS);
  node.restart();
  await brokersReady(kafka);
  return `kafka ${node.id}`;
}

/** However long a busy machine takes: the next seed strikes another one, and two of three are needed. */
async function brokersReady(kafka: Cluster['kafka']): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      return await kafka.ready();
    } catch (error) {
      if (failures === BROKER_TRIES) throw error;
    }
  }
}

/** It keeps its connections, and answers nobody. */
async function pauseBroker({ cluster: { kafka, folder } }: Target, random: Random): Promise<string> {
  const node = pick(random, kafka.nodes);
  const pid = pidOfBroker(join(folder, 'kafka', `node-${node.id}`));
  const ms = between(random, STANDSTILL_MS.min, STANDSTILL_MS.max);
  await standStill(pid, ms);
  await brokersReady(kafka);
  return `kafka ${node.id} stood still for ${ms} ms`;
}

/** Its process is one of Java that was told of the folder. */
function pidOfBroker(folder: string): number | undefined {
  const told = join(folder, 'server.properties');
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      const [command = '', ...args] = readFileSync(join('/proc', name, 'cmdline'), 'utf8').split('\0');
      if (/java$/.test(command) && args.includes(told)) return Number(name);
    } catch {}
  }
  return undefined;
}

async function standStill(pid: number | undefined, ms: number): Promise<void> {
  if (pid === undefined) return;
  const send = (signal: NodeJS.Signals) => {
    try {
      kill(pid, signal);
    } catch {}
  };
  send('SIGSTOP');
  await sleep(ms);
  send('SIGCONT');
}

/** It wakes up with work in hand that another one has done meanwhile. */
async function pauseProcess({ cluster }: Target, random: Random): Promise<string> {
  const names = /^(relay|projections)/;
  const victim = pick(
    random,
    cluster.processes.filter(({ name }) => names.test(name)),
  );
  const long = victim.name.startsWith('projections-boards');
  const ms = long ? LONG_STANDSTILL_MS : between(random, STANDSTILL_MS.min, STANDSTILL_MS.max);
  await standStill(victim.pid, ms);
  return `${victim.name} stood still for ${ms} ms`;
}

/** Whichever publishes: events are in Kafka by then, or their transaction is open, or its end is not confirmed. */
async function killRelay({ cluster }: Target, random: Random): Promise<string> {
  const relays = cluster.processes.filter(({ name }) => name.startsWith('relay'));
  await sleep(random() * PUBLISHING_MS);
  await Promise.all(relays.map((relay) => relay.kill('SIGKILL')));
  return relays.map(({ name }) => name).join(' and ');
}

function databaseDies({ folder }: Cluster): void {
  const pid = pidOfRunning(join(folder, 'postgres'));
  if (pid !== undefined) kill(pid, 'SIGKILL');
}

async function killDatabase({ cluster }: Target): Promise<string> {
  databaseDies(cluster);
  return 'postgres';
}

async function loseRedis({ cluster }: Target): Promise<string> {
  await cluster.restartRedis();
  return 'redis';
}

async function flushRedis({ cluster }: Target): Promise<string> {
  const redis = new Redis(cluster.settings.REDIS_URL ?? '', { maxRetriesPerRequest: 20 });
  redis.on('error', () => {});
  await redis.flushall().finally(() => redis.disconnect());
  return 'redis emptied';
}

/** So long is a moment waited for that always comes, if the builder is not away all the time. */
const MOMENT_MS = 60_000;

/** Strikes in the moment in which a statement goes by: who sent it never hears what became of it, or dies, or both. */
async function strikeAt(
  target: Target,
  random: Random,
  view: string,
  trap: Omit<Trap, 'cut'>,
  over: AbortSignal,
): Promise<string> {
  const { cluster, proxy } = target;
  const cut = random() < 0.7;
  const dies = pick(random, cut ? ['nobody', 'database', 'keepers'] : ['database', 'keepers']);
  const name = keepers[view] ?? 'projections-matches';
  const victims = cluster.processes.filter((process) => process.name.startsWith(name));
  const struck = await new Promise<boolean>((resolve) => {
    const giveUp = proxy.set({ ...trap, cut }, () => {
      if (dies === 'database') databaseDies(cluster);
      if (dies === 'keepers') for (const victim of victims) void victim.kill('SIGKILL');
      resolve(true);
    });
    const end = () => {
      giveUp();
      resolve(false);
    };
    if (over.aborted) end();
    over.addEventListener('abort', end, { once: true });
  });
  const how = [...(cut ? ['answer lost'] : []), ...(dies === 'nobody' ? [] : [`${dies} killed`])].join(', ');
  return struck ? how : 'did not come';
}

async function strikeCommit(target: Target, random: Random): Promise<string> {
  const view = random() < 0.5 ? 'leaderboards' : pick(random, views).name;
  const trap = { after: view, at: 'COMMIT' };
  return `commit of ${view}: ${await strikeAt(target, random, view, trap, target.over)}`;
}

/** A build is asked for, and struck where it fills its tables, where it takes the others' place, or as that is committed. */
async function strikeBuild(target: Target, random: Random): Promise<string> {
  const view = random() < 0.5 ? 'leaderboards' : pick(random, views).name;
  const [moment, trap] = pick(random, [
    ['start', { after: `CREATE SCHEMA build_${view}`, at: 'COMMIT' }],
    ['batch', { after: `search_path TO build_${view}, public; SET`, at: 'COMMIT' }],
    ['swap', { after: `ALTER TABLE build_${view}.`, at: `ALTER TABLE build_${view}.` }],
    ['swap done', { after: `DROP SCHEMA build_${view} CASCADE`, at: 'COMMIT' }],
  ] as const);
  const struck = strikeAt(target, random, view, trap, AbortSignal.timeout(MOMENT_MS));
  await askFor(target.sink, view);
  return `build of ${view}, ${moment}: ${await struck}`;
}

/** The database may be away: somebody else has struck it. */
async function askFor(sink: PostgresSink, name: string): Promise<void> {
  const view = viewNamed(views, name);
  for (let asked = false; !asked; ) {
    asked = await sink.ask(view).then(
      () => true,
      () => false,
    );
    if (!asked) await sleep(BUILD_AGAIN_MS);
  }
}

/** By turns, so that few seeds strike in every way. */
export const blows: readonly Blow[] = [
  killBroker,
  strikeCommit,
  killDatabase,
  strikeBuild,
  loseRedis,
  killRelay,
  strikeCommit,
  pauseBroker,
  strikeBuild,
  flushRedis,
  killKeepersInTurn,
  strikeBuild,
  pauseProcess,
];
