import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ABORT, type Key, open, type RootDatabase } from 'lmdb';

/** The log's file. lmdb's types leave out that its asynchronous put takes the options of the synchronous one. */
export type LogEnvironment = Omit<RootDatabase<Buffer, number>, 'put'> & {
  /** Resolves to false, and writes nothing, if the key is taken. */
  put(key: number, value: Buffer, options: { noOverwrite: true }): Promise<boolean>;
};
type IndexEnvironment = RootDatabase<Buffer, [string, number]>;

const common = {
  noSubdir: true,
  encoding: 'binary',
  cache: false,
  // Batching by turn makes a second promise for each commit, which nobody could catch on a full disk.
  eventTurnBatching: false,
} as const;

export const logPath = (folder: string): string => join(folder, 'events.mdb');
export const indexPath = (folder: string): string => join(folder, 'streams.mdb');

/** Opens the log's LMDB file. A commit is synced before it is visible, so that readers never see what may be lost. */
export function openLog(folder: string, readOnly: boolean): LogEnvironment {
  // The page size is part of how blocks are laid out, so it must not depend on the machine.
  const options = { ...common, path: logPath(folder), readOnly, overlappingSync: false, pageSize: 4096 };
  return open<Buffer, number>(options) as unknown as LogEnvironment;
}

/** What the stream index needs of its file. */
export type IndexFile = Pick<IndexEnvironment, 'get' | 'getRange' | 'put' | 'transaction' | 'close'>;

/** A reader may come before the index was ever written, or after it was thrown away; it then has the log alone. */
const noIndex = {
  get: () => undefined,
  getRange: () => [],
  close: async () => {},
} as unknown as IndexFile;

/** Opens the stream index, which may lag behind the log and therefore need not be synced with every commit. */
export function openIndex(folder: string, readOnly: false): IndexEnvironment;
export function openIndex(folder: string, readOnly: boolean): IndexFile;
export function openIndex(folder: string, readOnly: boolean): IndexFile {
  if (readOnly && !existsSync(indexPath(folder))) return noIndex;
  return open<Buffer, [string, number]>({ ...common, path: indexPath(folder), readOnly });
}

/** Throws the stream index away. It holds nothing that the log does not; the next open writes it anew. */
export function discardIndex(folder: string): void {
  for (const path of [indexPath(folder), `${indexPath(folder)}-lock`]) rmSync(path, { force: true });
}

/** More pages in one piece than are ever free: LMDB looks through its whole list of free pages for them. */
const REHEARSAL_BYTES = 4 * 1024 * 1024;

/**
 * Rehearses a write and takes it back. Reading never touches the list of free pages, so damage to it would first be
 * met by a write, which it can end the process of.
 */
export async function rehearseWrite<K extends Key>(
  env: Pick<RootDatabase<Buffer, K>, 'transactionSync' | 'putSync' | 'get' | 'close'>,
  unusedKey: K,
): Promise<void> {
  env.transactionSync(() => {
    env.putSync(unusedKey, Buffer.alloc(REHEARSAL_BYTES));
    // A put that fails inside of a transaction does not say so; reading it back does.
    if (env.get(unusedKey)?.length !== REHEARSAL_BYTES) throw new Error('MDB_CORRUPTED: a rehearsed write failed');
    return ABORT;
  });
  await env.close();
}
