import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's root, or the installed package's. */
export const packageRoot = (() => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
})();

/**
 * The compiled file beside a module, for starting it as a process of its own. Tests run from the sources, child
 * processes run from dist/, and `npm test` builds first.
 */
export function compiled(moduleUrl: string, file: string): string {
  const here = resolve(dirname(fileURLToPath(moduleUrl)), file);
  const fromRoot = relative(packageRoot, here);
  return fromRoot.startsWith('dist') ? here : join(packageRoot, 'dist', fromRoot);
}
