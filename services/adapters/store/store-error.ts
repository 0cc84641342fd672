import { statfsSync } from 'node:fs';
import { AgonError } from '../../kernel/index.js';

/** Below this much free space, a write that was cut short is taken for what it is: a full disk. */
const FREE_BYTES_MIN = 4 * 1024 * 1024;

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
    return new AgonError(
      'STORE.FULL',
      `The disk is full: ${message}. Nothing was lost; free some space and try again.`,
    );
  }
  if (/MDB_(CORRUPTED|INVALID|PAGE_NOTFOUND|VERSION_MISMATCH|BAD_)|not an LMDB file/i.test(message)) {
    return new AgonError('STORE.CORRUPT', `The log cannot be read: ${message}. Restore the data folder from a backup.`);
  }
  return new AgonError('STORE.FAILED', `The log could not be used: ${message}`, {}, { cause: error });
}

/** The last write before a disk is full is usually a partial one, which LMDB can only call an input/output error. */
function cutShort(message: string, folder: string | undefined): boolean {
  if (folder === undefined || !/Input\/output error/i.test(message)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < FREE_BYTES_MIN;
}
