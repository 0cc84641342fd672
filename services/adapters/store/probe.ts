import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { AgonError } from '../../kernel/errors.js';
import { compiled } from '../../runtime/package.js';
import { logPath } from './environments.js';

/**
 * Reads every block of a log in a child process and reports damage as STORE.CORRUPT. LMDB maps the file into memory,
 * so a truncated or mangled file can end the process that reads it: that process must not be the arena. The index is
 * read as well; whether it is whole is told, not thrown, because it can be made anew. A writer has a write rehearsed.
 */
export async function probe(
  folder: string,
  mode: 'read' | 'write' = 'read',
): Promise<{ readonly indexIsWhole: boolean }> {
  if (!existsSync(logPath(folder))) return { indexIsWhole: true };
  const reader = compiled(import.meta.url, './probe-child.js');
  if (!existsSync(reader)) throw new AgonError('BUILD.MISSING', 'Agon is not built. Run: npm run build');
  const child = spawn(process.execPath, [reader, folder, mode], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {},
    // In a process group of its own: a Ctrl-C would end it, and that would look like damage.
    detached: true,
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (...ended) => resolve(ended));
  });
  const [first = '', second] = output.split('\n');
  if (first === 'log') return { indexIsWhole: second === 'index' };
  const said = parse(first);
  throw new AgonError(
    said?.code ?? 'STORE.CORRUPT',
    said?.message ??
      `The log in ${folder} cannot be read (the reader ended with ${signal ?? code}). The file is truncated or ` +
        'damaged. Nothing was changed; restore the data folder from a backup.',
    said?.details ?? {},
  );
}

function parse(output: string): { code: string; message: string; details: Record<string, unknown> } | undefined {
  try {
    return JSON.parse(output);
  } catch {
    return undefined;
  }
}
