import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
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
import { type Anvil, startAnvil, whyNoAnvil } from './anvil.js';
import { ChdbEngine } from './chdb.js';
import { type Kafka, startKafka, whyNoKafka } from './kafka.js';
import { type Postgres, startPostgres } from './postgres.js';
import { type RunningRedis, startRedis, whyNoRedis } from './redis.js';
import { isFree } from './server.js';

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
  /** Of the door for agents from outside; any free one for 0. */
  readonly playPort?: number;
  /** Whether there is such a door; there is when left out. */
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

/** One of Agon's processes. */
export interface ClusterProcess {
  readonly name: string;
  /** Where it says how it is. */
  readonly health: string;
  readonly pid: number | undefined;
  kill(signal?: NodeJS.Signals): Promise<void>;
  start(): void;
}

export interface Cluster {
  readonly url: string;
  /** host:port of the door for agents from outside. */
  readonly play: string;
  readonly folder: string;
  /** What all processes were told, for commands that shall speak to the same engines. */
  readonly settings: Readonly<Record<string, string>>;
  readonly operatorToken: string;
  readonly processes: readonly ClusterProcess[];
  readonly kafka: Kafka;
  readonly postgres: Postgres;
  /** Ends Redis, with all that it knew, and starts another in its place. */
  restartRedis(): Promise<void>;
  readonly engines: readonly { readonly name: string; readonly address: string }[];
  status(): Promise<readonly ProcessStatus[]>;
  /** Resolves when every process says that it is ready. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

export interface ProcessStatus {
  readonly process: string;
  readonly ready: boolean;
  readonly parts: readonly PartStatus[];
}

/** Why there can be no cluster here; undefined when there can. */
export const whyNoCluster = (): string | undefined => whyNoKafka() ?? whyNoRedis();

/** Puts the engines that are missing on this machine, as far as it lets us. */
export function installEngines(onStep: (step: string) => void): void {
  for (const [why, script] of [
    [whyNoKafka, 'kafka.sh'],
    [whyNoRedis, 'redis.sh'],
  ] as const) {
    if (why() === undefined) continue;
    onStep(`installing by ops/engines/${script}`);
    const file = join(packageRoot, 'ops', 'engines', script);
    const { status, stderr } = spawnSync('bash', [file], { encoding: 'utf8' });
    const left = why();
    if (status !== 0 || left !== undefined) {
      throw new AgonError('CLUSTER.ENGINE_MISSING', `${left ?? script}: ${stderr.trim().split('\n').at(-1) ?? ''}`);
    }
  }
}

/** Puts a chain on this machine, if it lets us; says why not otherwise, since nothing depends on one. */
export function installChain(onStep: (step: string) => void): boolean {
  if (whyNoAnvil() === undefined) return true;
  onStep('installing by ops/engines/anvil.sh');
  const { stderr } = spawnSync('bash', [join(packageRoot, 'ops', 'engines', 'anvil.sh')], { encoding: 'utf8' });
  const left = whyNoAnvil();
  if (left !== undefined) onStep(`There will be no chain: ${left}: ${stderr.trim().split('\n').at(-1) ?? ''}`);
  return left === undefined;
}

/** Starts real engines and Agon's processes on this machine, each on ports of its own. They end with this process. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { folder, onStep = () => {}, signal } = options;
  const running: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of running.splice(0).reverse()) await end().catch(() => {});
  };
  const step = (name: string) => {
    signal?.throwIfAborted();
    onStep(name);
  };
  try {
    const missing = whyNoCluster();
    if (missing) throw new AgonError('CLUSTER.ENGINE_MISSING', missing);
    mkdirSync(join(folder, 'logs'), { recursive: true });
    step('Kafka, PostgreSQL and Redis');
    const [kafka, postgres, redis] = await Promise.all([
      startKafka({ folder: join(folder, 'kafka'), brokers: options.brokers ?? 1 }).then(kept(running)),
      startPostgres({ folder: join(folder, 'postgres'), connectionsMax: CONNECTIONS_MAX }).then(kept(running)),
      startRedis({ folder, lasting: true }).then(kept(running)),
    ]);
    const chdb = options.analytics ? await startChdb(join(folder, 'clickhouse'), step) : undefined;
    if (chdb) running.push(() => chdb.stop());
    const chain = options.chain ? await startAnvil({ folder: join(folder, 'chain') }).then(kept(running)) : undefined;
    step("Agon's processes");
    return await launch(options, { kafka, postgres, redis, chdb, chain }, running, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

const kept =
  (running: (() => Promise<unknown>)[]) =>
  <T extends { stop(): Promise<unknown> }>(engine: T): T => {
    running.push(() => engine.stop());
    return engine;
  };

async function startChdb(folder: string, step: (name: string) => void): Promise<ChdbEngine> {
  step("ClickHouse's engine");
  const engine = new ChdbEngine(folder);
  await engine.ensure();
  return engine;
}

interface EnginesUp {
  readonly kafka: Kafka;
  readonly postgres: Postgres;
  readonly redis: RunningRedis;
  readonly chdb: ChdbEngine | undefined;
  readonly chain: Anvil | undefined;
}

async function launch(
  options: ClusterOptions,
  engines: EnginesUp,
  running: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<Cluster> {
  const { folder, port = 0, playPort = 0, cells = 2, standby = false, storeUrl } = options;
  const { kafka, postgres, chdb, chain } = engines;
  let { redis } = engines;
  const data = join(folder, 'data');
  const logData = join(folder, 'log');
  const ports = await lastingPorts();
  const [gatewayPort, tablePort] = [port || (await ports()), playPort || (await ports())];
  const [grpcPort, eventstorePort] = [await ports(), await ports()];
  for (const path of [data, logData]) mkdirSync(path, { recursive: true });
  // Made before anybody starts, so that all find the same.
  const operatorToken = DataFolder.beside(data).operatorToken();
  DataFolder.beside(data).runnerToken();
  const { eventstoreCert } = folderLayout(logData);
  const storeKey = DataFolder.beside(logData).operatorToken();
  const settings: Record<string, string> = {
    AGON_STORE: storeUrl ?? `esdb://agon:${storeKey}@127.0.0.1:${eventstorePort}?tlsCAFile=${eventstoreCert}`,
    KAFKA_BROKERS: kafka.brokers.join(','),
    AGON_KAFKA_REPLICATION: `${kafka.brokers.length}`,
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    AGON_DATA: data,
    ...options.settings,
  };
  const analytics: Record<string, string> = chdb ? { CLICKHOUSE_URL: chdb.writerUrl } : {};
  const charts: Record<string, string> = chdb ? { CLICKHOUSE_URL: chdb.url } : { AGON_ANALYTICS: 'false' };
  const grpc = `127.0.0.1:${grpcPort}`;
  const own: readonly (readonly [name: string, process: string, settings: Record<string, string>])[] = [
    ...(storeUrl === undefined
      ? [['eventstore', 'eventstore', { AGON_DATA: logData, AGON_EVENTSTORE_PORT: `${eventstorePort}` }] as const]
      : []),
    ['relay', 'relay', {}],
    ...(standby ? [['relay-2', 'relay', {}] as const] : []),
    ['arena', 'arena', { AGON_GRPC_PORT: `${grpcPort}` }],
    ...(options.play === false ? [] : [['play', 'play', { AGON_PLAY_PORT: `${tablePort}`, AGON_CELLS: '1' }] as const]),
    ['wallet', 'wallet', {}],
    ['payments', 'payments', {}],
    ['projections-boards', 'projections', { AGON_VIEWS: 'leaderboards', AGON_DATABASE_POOL: '5' }],
    ['projections-money', 'projections', { AGON_VIEWS: 'balances,payments', AGON_DATABASE_POOL: '5' }],
    ['projections-matches', 'projections', { AGON_VIEWS: 'agents,matches,runners,accounts', AGON_DATABASE_POOL: '5' }],
    ...(chdb ? [['analytics', 'analytics', analytics] as const] : []),
    ['runner', 'runner', { AGON_ARENA: grpc, AGON_CELLS: `${cells}`, AGON_DATA: join(folder, 'runner') }],
    ['gateway', 'gateway', { AGON_PORT: `${gatewayPort}`, AGON_CELLS: '1', ...charts }],
    ...(options.more ?? []),
  ];
  mkdirSync(join(folder, 'runner'), { recursive: true });
  if (options.runnerKey) copyFileSync(options.runnerKey, folderLayout(join(folder, 'runner')).runnerKey);
  const runnerToken = DataFolder.beside(data).runnerToken();
  const processes: Child[] = [];
  for (const [name, process, more] of own) {
    const health = await ports();
    const told: Record<string, string> = { ...settings, ...more, AGON_HEALTH_PORT: `${health}` };
    if (process === 'runner') told.AGON_RUNNER_TOKEN = runnerToken;
    // The log's own process must not look for a log elsewhere.
    if (process === 'eventstore') delete told.AGON_STORE;
    const child = new Child(name, process, health, told, join(folder, 'logs', `${name}.log`));
    processes.push(child);
    child.start();
  }
  running.push(() => Promise.all(processes.map((child) => child.end())));
  const status = () => Promise.all(processes.map(statusOf));
  const cluster: Cluster = {
    url: `http://127.0.0.1:${gatewayPort}`,
    play: `127.0.0.1:${tablePort}`,
    folder,
    settings,
    operatorToken,
    processes,
    kafka,
    postgres,
    status,
    stop,
    engines: [
      { name: 'Kafka', address: kafka.brokers.join(',') },
      { name: 'PostgreSQL', address: new URL(postgres.url).host },
      { name: 'Redis', address: redis.url },
      ...(chdb ? [{ name: 'ClickHouse', address: chdb.url }] : []),
      ...(chain ? [{ name: 'Chain', address: chain.url }] : []),
    ],
    restartRedis: async () => {
      await redis.stop();
      redis = await startRedis({ folder, port: redis.port, lasting: true }).then(kept(running));
    },
    ready: async () => {
      const endMs = performance.now() + READY_MS;
      for (;;) {
        options.signal?.throwIfAborted();
        const found = await status();
        if (found.every(({ ready }) => ready)) return;
        if (performance.now() > endMs) throw notReady(found);
        options.onStep?.(`${found.filter(({ ready }) => ready).length} of ${found.length} processes are ready`);
        await sleep(BEAT_MS);
      }
    },
  };
  await cluster.ready();
  return cluster;
}

/**
 * Ports that stay free until somebody listens on them, and while a process is away: below those that systems give to
 * connections that are made.
 */
async function lastingPorts(): Promise<() => Promise<number>> {
  let next = 12_000 + Math.floor(Math.random() * 18_000);
  return async () => {
    while (!(await isFree(next))) next += 1;
    return next++;
  };
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

export async function statusOf({ name, health }: Pick<ClusterProcess, 'name' | 'health'>): Promise<ProcessStatus> {
  try {
    const response = await fetch(`${health}/readyz`, { signal: AbortSignal.timeout(5_000) });
    const { parts } = (await response.json()) as { parts: PartStatus[] };
    return { process: name, ready: response.ok, parts };
  } catch (error) {
    const detail = `no answer at ${health}: ${(error as Error).message}`;
    return { process: name, ready: false, parts: [{ part: 'process', ready: false, detail }] };
  }
}

class Child implements ClusterProcess {
  readonly health: string;
  private child: ChildProcess | undefined;
  private ending = false;

  constructor(
    readonly name: string,
    private readonly process: string,
    healthPort: number,
    private readonly settings: Readonly<Record<string, string>>,
    private readonly log: string,
  ) {
    this.health = `http://127.0.0.1:${healthPort}`;
  }

  get pid(): number | undefined {
    return this.runs ? this.child?.pid : undefined;
  }

  start(): void {
    if (this.runs || this.ending) return;
    const log = openSync(this.log, 'a');
    // Its standard input ends with us, and so does it.
    const main = compiled(import.meta.url, '../run/main.js');
    const child = spawn(execPath, [...nodeFlags, main, '--with-stdin', this.process], {
      env: { PATH: env.PATH, HOME: env.HOME, XDG_CACHE_HOME: env.XDG_CACHE_HOME, ...this.settings },
      stdio: ['pipe', log, log],
      detached: true,
    });
    closeSync(log);
    child.on('error', () => {});
    child.stdin?.on('error', () => {});
    this.child = child;
    // As whoever runs processes for a living would: what ends is started again.
    child.once('exit', () => {
      setTimeout(() => this.start(), AGAIN_MS).unref();
    });
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.runs || !this.child) return;
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    await ended;
  }

  /** For good. */
  async end(): Promise<void> {
    this.ending = true;
    const { child } = this;
    if (!this.runs || !child) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })]);
    if (this.runs) await this.kill('SIGKILL');
  }

  private get runs(): boolean {
    const { child } = this;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }
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
