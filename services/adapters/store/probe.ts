import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AgonError } from '../../kernel/index.js';
import { compiled } from '../compiled.js';

/**
 * Reads every block of a log in a child process and reports damage as STORE.CORRUPT. LMDB maps the file into memory,
 * so a truncated or mangled file can end the process that reads it: that process must not be the arena.
 */
export async function probe(folder: string): Promise<void> {
  if (!existsSync(join(folder, 'events.mdb'))) return;
  const child = spawn(process.execPath, [compiled(import.meta.url, './probe-child.js'), folder], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {},
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (...ended) => resolve(ended));
  });
  if (code === 0) return;
  const said = parse(output);
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
