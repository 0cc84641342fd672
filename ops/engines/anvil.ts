import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError } from '../../services/kernel/index.js';
import { freePort } from './postgres.js';

/** The same version and place as in anvil.sh, which puts it there. */
const VERSION = '1.7.1';
const READY_MS = 30_000;
const BEAT_MS = 50;
const binary = () => join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'agon', `anvil-${VERSION}`);

export interface Anvil {
  /** Where it answers to JSON-RPC. */
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Why no chain can be started here; undefined when one can. */
export const whyNoAnvil = (): string | undefined =>
  existsSync(binary()) ? undefined : `${binary()} is missing; ops/engines/anvil.sh puts it there, with npm`;

/** Starts a chain of this machine's own on loopback. It goes on with what the folder holds, and ends with this process. */
export async function startAnvil(options: { readonly folder: string; readonly port?: number }): Promise<Anvil> {
  const missing = whyNoAnvil();
  if (missing) throw new AgonError('CHAIN.MISSING', `${missing}.`);
  mkdirSync(options.folder, { recursive: true });
  const port = options.port ?? (await freePort());
  const state = join(options.folder, 'chain.json');
  const args = ['--host', '127.0.0.1', '--port', `${port}`, '--state', state, '--silent'];
  // Where the system can, its life is tied to ours.
  const tied = spawnSync('setpriv', ['--version'], { stdio: 'ignore' }).status === 0;
  const [file, ...all] = [...(tied ? ['setpriv', '--pdeathsig', 'TERM'] : []), binary(), ...args];
  const child: ChildProcess = spawn(`${file}`, all, { stdio: 'ignore' });
  const ended = once(child, 'exit').then(() => {
    throw new AgonError('CHAIN.FAILED', `anvil ended before it answered on port ${port}.`);
  });
  ended.catch(() => {});
  const stop = async () => {
    child.kill('SIGTERM');
    await ended.catch(() => {});
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await Promise.race([answers(url), ended]);
    return { url, pid: child.pid as number, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function answers(url: string): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
  const headers = { 'content-type': 'application/json' };
  for (let waitedMs = 0; waitedMs < READY_MS; waitedMs += BEAT_MS) {
    if (
      await fetch(url, { method: 'POST', headers, body }).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return;
    await sleep(BEAT_MS);
  }
  throw new AgonError('CHAIN.FAILED', `anvil does not answer at ${url}.`);
}
