import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { execPath, stderr } from 'node:process';
import { packageRoot } from '../../services/adapters/compiled.js';
import { AgonError } from '../../services/kernel/index.js';

/** The peers have a package of their own, so that nobody installs them to use Agon. */
const folder = join(packageRoot, 'ops', 'bench');
const requirePeer = createRequire(join(folder, 'package.json'));

/** A peer's CommonJS entry. Its types stay with the caller, who may not have it installed when compiling. */
export const loadPeer = <T>(name: string): T => requirePeer(name) as T;

/** Installs the peers, exactly as locked, unless they are there already. */
export function installPeers(): void {
  if (isInstalled()) return;
  stderr.write('Installing the peers to compare with (once; better-sqlite3 may be compiled, which takes minutes)...\n');
  // npm that started us says where it is; otherwise the one on the path.
  const npm = process.env.npm_execpath;
  const [file, ...first] = npm ? [execPath, npm] : ['npm'];
  const installed = spawnSync(file as string, [...first, 'ci', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  });
  if (installed.status === 0 && isInstalled()) return;
  throw new AgonError(
    'BENCH.PEERS_NOT_INSTALLED',
    `The peers could not be installed: npm ci in ops/bench ended with ${installed.error?.message ?? installed.status}. ` +
      'It needs the npm registry and, where better-sqlite3 has no ready build, a C++ compiler and Python.',
  );
}

function isInstalled(): boolean {
  // An interrupted installation leaves the package without its compiled part.
  if (!existsSync(join(folder, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'))) return false;
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return Object.entries(dependencies).every(([name, version]) => {
    const manifest = join(folder, 'node_modules', name, 'package.json');
    return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === version;
  });
}
