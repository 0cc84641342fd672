import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AgonError } from '../services/kernel/index.js';

/** The compiled code lies one folder deeper than its source, so the root is where package.json is, not a fixed climb. */
function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new AgonError('SANDBOX.NO_ROOT', 'There is no package.json above the sandbox runner.');
    folder = parent;
  }
  return folder;
}

/** The repository's root, from the source tree as well as from dist/. */
export const root: string = findRoot();

/** What a child process gets of our environment. */
export const inherited = (names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));

/** A cell is a process of plain Node, so it is always the compiled file, even when the host runs from source. */
export function compiledCell(): string {
  const file = join(root, 'dist', 'sandbox-runner', 'cell.js');
  if (!existsSync(file)) {
    throw new AgonError('SANDBOX.NOT_BUILT', 'The sandbox cell is not compiled yet; run the build first.', { file });
  }
  return file;
}
