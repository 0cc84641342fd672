import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { execPath, stderr } from 'node:process';
import { AgonError } from '../../services/kernel/index.js';
import { packageRoot } from '../../services/runtime/package.js';

/** The peers have a package of their own, so that nobody installs them to use Agon. */
const folder = join(packageRoot, 'ops', 'bench');
/** Among what npm installs, because every tool here leaves that alone. */
const environment = join(folder, 'node_modules', '.python');
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

/** The Python of an environment of its own that has kaggle-environments, without the games that take gigabytes. */
export function installKaggle(): string {
  const python = join(environment, 'bin', 'python');
  const works = () => spawnSync(python, ['-c', 'import kaggle_environments'], { stdio: 'ignore' }).status === 0;
  if (works()) return python;
  stderr.write('Installing kaggle-environments to compare with (once)...\n');
  const pip = [python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  const steps = [
    ['python3', '-m', 'venv', environment],
    [...pip, '--no-deps', ...KAGGLE],
    [...pip, ...KAGGLE_NEEDS],
  ];
  const failed = steps.find(([file, ...args]) => spawnSync(file as string, args, { stdio: 'ignore' }).status !== 0);
  if (!failed && works()) return python;
  throw new AgonError(
    'BENCH.PEERS_NOT_INSTALLED',
    `kaggle-environments could not be installed: ${(failed ?? [python]).join(' ')} failed. ` +
      'It needs Python 3.11 or newer with venv, and PyPI.',
  );
}

const KAGGLE = ['kaggle-environments==1.33.2'];
const KAGGLE_NEEDS = ['jsonschema==4.26.0', 'requests==2.34.2'];

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
