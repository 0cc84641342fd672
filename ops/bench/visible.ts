import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { openDatabase } from '../../projections/sinks/database.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { type Command, createHandle, derivedId, type Handled, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { GrantCredits, wallet } from '../../services/wallet/index.js';
import { startCluster } from '../engines/cluster.js';
import { withFolder } from '../harness/folders.js';
import { startArena } from '../run/arena.js';
import { type BenchOptions, delaysOf, type Report, scaled } from './rounds.js';

const APPENDS = 200;
const WARM_UP = 20;

interface Deployment {
  readonly database: DataSource;
  execute(command: Command): Promise<Handled>;
}

/** From the moment a command is carried out until its row can be read in PostgreSQL, on both whole deployments. */
export async function visible(options: BenchOptions): Promise<Report> {
  const count = scaled(options, APPENDS, 4);
  const embedded = await withFolder((folder) => inArena(folder, (arena) => delays(arena, count)));
  options.progress('embedded measured');
  const cluster = await withFolder((folder) => inCluster(folder, (arena) => delays(arena, count)));
  const note =
    `append to visible row in PostgreSQL, ms, ${count} one after the other: embedded arena ${embedded}; cluster of ` +
    `processes (log over gRPC, relay, Kafka, projections) ${cluster}`;
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

const delays = ({ database, execute }: Deployment, count: number): Promise<string> =>
  delaysOf(count, WARM_UP, async (i) => {
    const accountId = `visible-${i}`;
    const grant = { accountId, amountCents: '100', currency: 'PLAY', reason: 'bench' };
    await execute(new GrantCredits(grant, newMeta(SYSTEM, { id: derivedId('visible', i) })));
    while (!(await isThere(database, accountId))) await sleep(1);
  });

async function isThere(database: DataSource, accountId: string): Promise<boolean> {
  const rows = await database.query('SELECT 1 FROM balances WHERE account = $1', [`player:${accountId}`]);
  return rows.length > 0;
}
