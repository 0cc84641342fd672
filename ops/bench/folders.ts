import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const lent = new Set<string>();
const remove = (folder: string) => {
  lent.delete(folder);
  // A process that was just killed in there may still be on its way out.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
};

// Benchmarks and chaos runs are often interrupted by hand; what they leave in /tmp is large.
process.once('exit', () => lent.forEach(remove));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

/** Lends a folder that is gone afterwards, whatever happens, short of a kill. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'agon-'));
  lent.add(folder);
  try {
    return await use(folder);
  } finally {
    remove(folder);
  }
}
