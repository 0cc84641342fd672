import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import pg from 'pg';
import { startPostgres } from '../engines/postgres.js';

const lent = new Set<string>();
const remove = (folder: string) => {
  lent.delete(folder);
  // A process that was just killed in there may still be on its way out.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
};

/** Benchmarks and chaos runs are often interrupted by hand; what they leave in /tmp is large. */
function removeAtExit(): void {
  process.once('exit', () => lent.forEach(remove));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
}
let isRemovedAtExit = false;

/** Lends a folder that is gone afterwards, whatever happens, short of a kill. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  // Not before: the processes that a run starts load this too, and take signals in their own way.
  if (!isRemovedAtExit) removeAtExit();
  isRemovedAtExit = true;
  const folder = mkdtempSync(join(tmpdir(), 'agon-'));
  lent.add(folder);
  try {
    return await use(folder);
  } finally {
    remove(folder);
  }
}

/** Lends something that is closed afterwards. */
export async function closing<T extends { close(): Promise<unknown> }, Result>(
  opening: Promise<T>,
  use: (opened: T) => Promise<Result>,
): Promise<Result> {
  const opened = await opening;
  return use(opened).finally(() => opened.close());
}

/** Lends a PostgreSQL server of its own, the same way, and its folder. */
export function withPostgres<T>(
  use: (url: string, folder: string) => Promise<T>,
  options: { readonly connectionsMax?: number } = {},
): Promise<T> {
  return withFolder(async (folder) => {
    const server = await startPostgres({ folder, ...options });
    return use(server.url, folder).finally(() => server.stop());
  });
}

export async function runSql(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

/** A database of its own for each seed. */
export async function createDatabase(serverUrl: string, name: string): Promise<string> {
  await runSql(serverUrl, `CREATE DATABASE ${name}`);
  return new URL(`/${name}`, serverUrl).href;
}
