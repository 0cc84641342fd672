import { existsSync, readFileSync } from 'node:fs';
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

/**
 * What Node is started with for anything of ours that writes or projects: short-lived objects get more room before the
 * collector looks through them. package.json, the first line of agon.js and the Dockerfile say the same.
 */
export const nodeFlags = ['--max-semi-space-size=32'] as const;

/** The version in package.json. */
export const version: string = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')).version;
