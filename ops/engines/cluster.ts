import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError } from '../../services/kernel/index.js';
import { DataFolder, folderLayout } from '../../services/runtime/data-folder.js';
import { compiled, nodeFlags, packageRoot } from '../../services/runtime/package.js';
import type { PartStatus } from '../../services/runtime/status.js';
import { startAnvil, whyNoAnvil } from './anvil.js';
import { ChdbEngine } from './chdb.js';
import { startKafka, whyNoKafka } from './kafka.js';
import { startPostgres } from './postgres.js';
import { startRedis, whyNoRedis } from './redis.js';
import { isFree, Server } from './server.js';

const READY_MS = 300_000;
const STOP_MS = 30_000;
const AGAIN_MS = 1_000;
const BEAT_MS = 100;
const CONNECTIONS_MAX = 200;

export interface ClusterOptions {
  /** Holds everything. What an earlier one has left in the log goes on; the rest follows from it. */
  readonly folder: string;
  /** Of the gateway; any free one for 0. */
  readonly port?: number;
  /** Of the endpoint for agents from outside; any free one for 0. */
  readonly playPort?: number;
  /** Whether there is such an endpoint; there is when left out. */
  readonly play?: boolean;
  readonly brokers?: 1 | 3;
  /** A log that is there already, instead of one in the folder behind EventStoreDB's protocol. */
  readonly storeUrl?: string;
  readonly analytics?: boolean;
  /** A chain to try things on; no process depends on it. */
  readonly chain?: boolean;
  /** Matches that the runner plays at a time. */
  readonly cells?: number;
  /** The key that signs the runner's reports; one of its own making when left out. */
  readonly runnerKey?: string;
  /** A second relay that stands by for the first. */
  readonly standby?: boolean;
  /** More processes besides: a name, which of Agon's it is, and its own settings. */
  readonly more?: readonly (readonly [name: string, process: string, settings: Record<string, string>])[];
  /** More settings for all processes. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly onStep?: (step: string) => void;
  /** Fires when whoever started it has had enough. */
  readonly signal?: AbortSignal;
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>;

export interface ProcessStatus {
  readonly process: string;
  readonly ready: boolean;
  readonly parts: readonly PartStatus[];
}

/** Why there can be no cluster here; undefined when there can. */
export const whyNoCluster = (): string | undefined => whyNoKafka() ?? whyNoRedis();

/** Puts the engines that are missing on this machine, as far as it lets us. */
export function installEngines(onStep: (step: string) => void): void {
  const failed = installed(whyNoKafka, 'kafka.sh', onStep) ?? installed(whyNoRedis, 'redis.sh', onStep);
  if (failed !== undefined) throw new AgonError('CLUSTER.ENGINE_MISSING', failed);
}

/** Puts a chain on this machine, if it lets us; says why not otherwise, since nothing depends on one. */
export function installChain(onStep: (step: string) => void): boolean {
  const failed = installed(whyNoAnvil, 'anvil.sh', onStep);
  const isThere = whyNoAnvil() === undefined;
  if (!isThere) onStep(`There will be no chain: ${failed}`);
  return isThere;
}

/** Runs the script where it is needed; says what is still missing afterwards, if anything is. */
function installed(why: () => string | undefined, script: string, onStep: (step: string) => void): string | undefined {
  if (why() === undefined) return undefined;
  onStep(`installing by ops/engines/${script}`);
  const file = join(packageRoot, 'ops', 'engines', script);
  const { status, stderr } = spawnSync('bash', [file], { encoding: 'utf8' });
  const left = why();
  if (status === 0 && left === undefined) return undefined;
  return `${left ?? script}: ${stderr.trim().split('\n').at(-1) ?? ''}`;
}

/** Starts real engines and Agon's processes on this machine, each on ports of its own. They end with this process. */
export async function startCluster(options: ClusterOptions) {
  const running: Running = [];
  const stop = async () => {
    for (const end of running.splice(0).reverse()) await end().catch(() => {});
  };
  try {
    const engines = await startEngines(options, running);
    const launched = await launch(options, engines, running);
    return { ...launched, folder: options.folder, kafka: engines.kafka, postgres: engines.postgres, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** How to end what was started so far. */
type Running = (() => Promise<unknown>)[];

const kept =
  (running: Running) =>
  <T extends { stop(): Promise<unknown> }>(engine: T): T => {
    running.push(() => engine.stop());
    return engine;
  };

async function startEngines({ folder, onStep, signal, ...options }: ClusterOptions, running: Running) {
  const step = (name: string) => {
    signal?.throwIfAborted();
    onStep?.(name);
  };
  const missing = whyNoCluster();
  if (missing) throw new AgonError('CLUSTER.ENGINE_MISSING', missing);
  mkdirSync(join(folder, 'logs'), { recursive: true });
  step('Kafka, PostgreSQL and Redis');
  const [kafka, postgres, redis] = await Promise.all([
    startKafka({ folder: join(folder, 'kafka'), brokers: options.brokers ?? 1 }).then(kept(running)),
    startPostgres({ folder: join(folder, 'postgres'), connectionsMax: CONNECTIONS_MAX }).then(kept(running)),
    startRedis({ folder, lasting: true }).then(kept(running)),
  ]);
  const chdb = options.analytics ? new ChdbEngine(join(folder, 'clickhouse')) : undefined;
  if (chdb) {
    step("ClickHouse's engine");
    await kept(running)(chdb).ensure();
  }
  const chain = options.chain ? await startAnvil({ folder: join(folder, 'chain') }).then(kept(running)) : undefined;
  step("Agon's processes");
  return { kafka, postgres, redis, chdb, chain };
}

type EnginesUp = Awaited<ReturnType<typeof startEngines>>;

async function launch(options: ClusterOptions, engines: EnginesUp, running: Running) {
  const { folder } = options;
  const { kafka, postgres, chdb, chain } = engines;
  let { redis } = engines;
  const ports = await portsOf(options);
  const data = DataFolder.beside(join(folder, 'data'));
  for (const name of ['data', 'log', 'runner']) mkdirSync(join(folder, name), { recursive: true });
  // Made before anybody starts, so that all find the same.
  const operatorToken = data.operatorToken();
  const runnerToken = data.runnerToken();
  const settings = settingsOf(options, engines, ports.eventstore);
  if (options.runnerKey) copyFileSync(options.runnerKey, folderLayout(join(folder, 'runner')).runnerKey);
  const processes: ClusterProcess[] = [];
  for (const [name, process, more] of processesOf(options, chdb, ports)) {
    const health = await ports.next();
    const told: Record<string, string> = { ...settings, ...more, AGON_HEALTH_PORT: `${health}` };
    if (process === 'runner') told.AGON_RUNNER_TOKEN = runnerToken;
    // The log's own process must not look for a log elsewhere.
    if (process === 'eventstore') delete told.AGON_STORE;
    processes.push(new ClusterProcess(name, process, health, told, join(folder, 'logs', `${name}.log`)));
  }
  running.push(() => Promise.all(processes.map((child) => child.stop('SIGTERM', STOP_MS, 'SIGKILL'))));
  const status = () => Promise.all(processes.map(statusOf));
  await untilReady(status, options);
  return {
    url: `http://127.0.0.1:${ports.gateway}`,
    /** host:port of the endpoint for agents from outside. */
    play: `127.0.0.1:${ports.play}`,
    /** What all processes were told, for commands that shall speak to the same engines. */
    settings,
    operatorToken,
    processes,
    status,
    engines: [
      { name: 'Kafka', address: kafka.brokers.join(',') },
      { name: 'PostgreSQL', address: new URL(postgres.url).host },
      { name: 'Redis', address: redis.url },
      ...(chdb ? [{ name: 'ClickHouse', address: chdb.url }] : []),
      ...(chain ? [{ name: 'Chain', address: chain.url }] : []),
    ],
    /** Ends Redis, with all that it knew, and starts another in its place. */
    restartRedis: async () => {
      await redis.stop();
      redis = await startRedis({ folder, port: redis.port, lasting: true }).then(kept(running));
    },
  };
}

/** What all processes are told. */
function settingsOf({ folder, storeUrl, settings }: ClusterOptions, engines: EnginesUp, eventstorePort: number) {
  const { kafka, postgres, redis } = engines;
  const log = DataFolder.beside(join(folder, 'log'));
  const ownStore = `esdb://agon:${log.operatorToken()}@127.0.0.1:${eventstorePort}?tlsCAFile=${log.paths.eventstoreCert}`;
  return {
    AGON_STORE: storeUrl ?? ownStore,
    KAFKA_BROKERS: kafka.brokers.join(','),
    AGON_KAFKA_REPLICATION: `${kafka.brokers.length}`,
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    AGON_DATA: join(folder, 'data'),
    ...settings,
  };
}

/** Every process under its own name, and what it alone is told. */
function processesOf(
  options: ClusterOptions,
  chdb: ChdbEngine | undefined,
  ports: Awaited<ReturnType<typeof portsOf>>,
) {
  const { folder, cells = 2, standby = false, play = true, more = [], storeUrl } = options;
  const charts: Record<string, string> = chdb ? { CLICKHOUSE_URL: chdb.url } : { AGON_ANALYTICS: 'false' };
  const all: [name: string, process: string, settings: Record<string, string>, isWanted?: boolean][] = [
    [
      'eventstore',
      'eventstore',
      { AGON_DATA: join(folder, 'log'), AGON_EVENTSTORE_PORT: `${ports.eventstore}` },
      storeUrl === undefined,
    ],
    ['relay', 'relay', {}],
    ['relay-2', 'relay', {}, standby],
    ['arena', 'arena', { AGON_GRPC_PORT: `${ports.grpc}` }],
    ['play', 'play', { AGON_PLAY_PORT: `${ports.play}`, AGON_CELLS: '1' }, play],
    ['wallet', 'wallet', {}],
    ['payments', 'payments', {}],
    ['projections-boards', 'projections', { AGON_VIEWS: 'leaderboards', AGON_DATABASE_POOL: '5' }],
    ['projections-money', 'projections', { AGON_VIEWS: 'balances,payments', AGON_DATABASE_POOL: '5' }],
    ['projections-matches', 'projections', { AGON_VIEWS: 'agents,matches,runners,accounts', AGON_DATABASE_POOL: '5' }],
    ['analytics', 'analytics', { CLICKHOUSE_URL: chdb?.writerUrl ?? '' }, chdb !== undefined],
    [
      'runner',
      'runner',
      { AGON_ARENA: `127.0.0.1:${ports.grpc}`, AGON_CELLS: `${cells}`, AGON_DATA: join(folder, 'runner') },
    ],
    ['gateway', 'gateway', { AGON_PORT: `${ports.gateway}`, AGON_CELLS: '1', ...charts }],
    ...more.map((each) => [...each] as [string, string, Record<string, string>]),
  ];
  return all.filter(([, , , isWanted = true]) => isWanted);
}

async function untilReady(status: () => Promise<readonly ProcessStatus[]>, { signal, onStep }: ClusterOptions) {
  for (const endMs = performance.now() + READY_MS; ; await sleep(BEAT_MS)) {
    signal?.throwIfAborted();
    const found = await status();
    if (found.every(({ ready }) => ready)) return;
    if (performance.now() > endMs) throw notReady(found);
    onStep?.(`${found.filter(({ ready }) => ready).length} of ${found.length} processes are ready`);
  }
}

/**
 * Ports that stay free until somebody listens on them, and while a process is away: below those that systems give to
 * connections that are made.
 */
async function portsOf({ port = 0, playPort = 0 }: ClusterOptions) {
  let candidate = 12_000 + Math.floor(Math.random() * 18_000);
  const next = async () => {
    while (!(await isFree(candidate))) candidate += 1;
    return candidate++;
  };
  const [gateway, play] = [port || (await next()), playPort || (await next())];
  return { gateway, play, grpc: await next(), eventstore: await next(), next };
}

function notReady(found: readonly ProcessStatus[]): AgonError {
  const why = found
    .filter(({ ready }) => !ready)
    .map(({ process, parts }) => {
      const bad = parts.filter((part) => !part.ready).map(({ part, detail }) => `${part}: ${detail}`);
      return `${process} (${bad.join('; ') || 'no answer'})`;
    });
  return new AgonError('CLUSTER.NOT_READY', `Not ready after ${READY_MS / 1000} s: ${why.join(', ')}.`);
}

export async function statusOf({ name, health }: { name: string; health: string }): Promise<ProcessStatus> {
  try {
    const response = await fetch(`${health}/readyz`, { signal: AbortSignal.timeout(5_000) });
    const { parts } = (await response.json()) as { parts: PartStatus[] };
    return { process: name, ready: response.ok, parts };
  } catch (error) {
    const detail = `no answer at ${health}: ${(error as Error).message}`;
    return { process: name, ready: false, parts: [{ part: 'process', ready: false, detail }] };
  }
}

/** One of Agon's processes. As whoever runs processes for a living would: what ends is started again. */
class ClusterProcess extends Server {
  /** Where it says how it is. */
  readonly health: string;

  constructor(
    readonly name: string,
    process: string,
    healthPort: number,
    settings: Readonly<Record<string, string>>,
    log: string,
  ) {
    super(() => spawnProcess(process, settings, log), AGAIN_MS);
    this.health = `http://127.0.0.1:${healthPort}`;
    this.keep();
  }
}

function spawnProcess(name: string, settings: Readonly<Record<string, string>>, logFile: string): ChildProcess {
  const log = openSync(logFile, 'a');
  // Its standard input ends with us, and so does it.
  const main = compiled(import.meta.url, '../run/main.js');
  const child = spawn(execPath, [...nodeFlags, main, '--with-stdin', name], {
    env: { PATH: env.PATH, HOME: env.HOME, XDG_CACHE_HOME: env.XDG_CACHE_HOME, ...settings },
    stdio: ['pipe', log, log],
    detached: true,
  });
  closeSync(log);
  child.stdin?.on('error', () => {});
  return child;
}

/** What `agon cluster` writes down about the one that runs on a folder. */
export interface ClusterNote {
  readonly pid: number;
  /** When it started, by the system: the number may be another's later. */
  readonly started: string;
  readonly state: 'starting' | 'ready' | 'failed';
  readonly step: string;
  readonly url?: string;
  readonly play?: string;
  readonly engines?: Cluster['engines'];
  readonly processes?: readonly { readonly name: string; readonly health: string; readonly pid: number | undefined }[];
}

const noteIn = (folder: string) => join(folder, 'cluster.json');

export function readNote(folder: string): ClusterNote | undefined {
  return existsSync(noteIn(folder)) ? (JSON.parse(readFileSync(noteIn(folder), 'utf8')) as ClusterNote) : undefined;
}

export function writeNote(folder: string, note: ClusterNote): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${noteIn(folder)}.new`, JSON.stringify(note), { mode: 0o600 });
  renameSync(`${noteIn(folder)}.new`, noteIn(folder));
}
