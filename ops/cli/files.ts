import { readFileSync } from 'node:fs';
import { AgonError } from '../../services/kernel/index.js';

/** A file that somebody named on the command line. */
export function readGiven(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new AgonError('FILE.UNREADABLE', `${file} cannot be read: ${(error as Error).message}.`);
  }
}
