import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { openDatabase } from '../../projections/sinks/database.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { type Command, createHandle, derivedId, type Handled, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { GrantCredits, wallet } from '../../services/wallet/index.js';
import { startCluster } from '../engines/cluster.js';
import { startArena } from '../run/arena.js';
import { withFolder } from './folders.js';
import type { BenchOptions, Report } from './rounds.js';

const APPENDS = 200;
const WARM_UP = 20;

interface Deployment {
  readonly database: DataSource;
  execute(command: Command): Promise<Handled>;
}

/** From the moment a command is carried out until its row can be read in PostgreSQL, on both whole deployments. */
export async function visible(options: BenchOptions): Promise<Report> {
  const count = options.quick ? APPENDS / 4 : APPENDS;
  const embedded = await withFolder((folder) => inArena(folder, (arena) => delays(arena, count)));
  options.progress('embedded measured');
  const cluster = await withFolder((folder) => inCluster(folder, (arena) => delays(arena, count)));
  const note =
    `append to visible row in PostgreSQL, ms, ${count} one after the other: embedded arena p50 ${embedded.p50} p99 ` +
    `${embedded.p99}; cluster of processes (log over gRPC, relay, Kafka, projections) p50 ${cluster.p50} p99 ${cluster.p99}`;
  return { results: {}, ratios: {}, targets: {}, notes: [note] };
}

async function inArena<T>(folder: string, use: (arena: Deployment) => Promise<T>): Promise<T> {
  const arena = await startArena(parseConfig({ dataDir: folder, port: 0, analytics: false, runner: false }));
  try {
    return await use(arena);
  } finally {
    await arena.stop();
  }
}

async function inCluster<T>(folder: string, use: (arena: Deployment) => Promise<T>): Promise<T> {
  const cluster = await startCluster({ folder });
  try {
    const store = await EventStoreDbStore.open(cluster.settings.AGON_STORE ?? '');
    const database = await openDatabase(cluster.postgres.url);
    const handle = createHandle({ store });
    try {
      return await use({ database, execute: (command) => handle(wallet, command) });
    } finally {
      await database.destroy();
      await store.close();
    }
  } finally {
    await cluster.stop();
  }
}

async function delays({ database, execute }: Deployment, count: number): Promise<{ p50: number; p99: number }> {
  const took: number[] = [];
  for (let i = 0; i < count + WARM_UP; i++) {
    const accountId = `visible-${i}`;
    const grant = { accountId, amountCents: '100', currency: 'PLAY', reason: 'bench' };
    const startedMs = performance.now();
    await execute(new GrantCredits(grant, newMeta(SYSTEM, { id: derivedId('visible', i) })));
    while (!(await isThere(database, accountId))) await sleep(1);
    if (i >= WARM_UP) took.push(performance.now() - startedMs);
  }
  took.sort((a, b) => a - b);
  const at = (share: number) => Math.round((took[Math.floor(took.length * share)] ?? 0) * 10) / 10;
  return { p50: at(0.5), p99: at(0.99) };
}

async function isThere(database: DataSource, accountId: string): Promise<boolean> {
  const rows = await database.query('SELECT 1 FROM balances WHERE account = $1', [`player:${accountId}`]);
  return rows.length > 0;
}
