import { statfsSync } from 'node:fs';
import { AgonError } from '../../kernel/errors.js';

/** A disk with less free space than this counts as full. */
const FREE_BYTES_MIN = 4 * 1024 * 1024;

/**
 * Refuses a write that would fill the disk, before LMDB tries it: its own message about a full disk is longer than the
 * memory it has for it (lmdb 3.5, mdb.c, `last_error`), and may take the process down a little later.
 */
export function assertSpace(folder: string, bytes: number): void {
  const left = freeBytes(folder) - bytes;
  if (left < FREE_BYTES_MIN) throw full(`${folder} would have ${Math.max(0, left)} bytes left`);
}

const freeBytes = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
};

const full = (why: string) =>
  new AgonError('STORE.FULL', `The disk is full: ${why}. Nothing was lost; free some space and try again.`);

/**
 * Waits for an LMDB write. A failed commit rejects with an error that only points to a second rejection, the real one;
 * left alone, that one ends the process, and nobody learns that the disk was full.
 */
export async function committed<T>(write: PromiseLike<T>, folder: string): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const { commitError } = error as { commitError?: Promise<never> };
    throw asStoreError(commitError ? await commitError.catch((cause: unknown) => cause) : error, folder);
  }
}

export function asStoreError(error: unknown, folder?: string): AgonError {
  if (error instanceof AgonError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (/ENOSPC|No space left|MAP_FULL|EDQUOT|EFBIG|File too large/i.test(message) || cutShort(message, folder)) {
    return full(message);
  }
  if (/MDB_(CORRUPTED|INVALID|PAGE_NOTFOUND|VERSION_MISMATCH|BAD_)|not an LMDB file/i.test(message)) {
    return new AgonError('STORE.CORRUPT', `The log cannot be read: ${message}. Restore the data folder from a backup.`);
  }
  return new AgonError('STORE.FAILED', `The log could not be used: ${message}`, {}, { cause: error });
}

/** The last write before a disk is full is usually a partial one, which LMDB can only call an input/output error. */
function cutShort(message: string, folder: string | undefined): boolean {
  if (folder === undefined || !/Input\/output error/i.test(message)) return false;
  return freeBytes(folder) < FREE_BYTES_MIN;
}
