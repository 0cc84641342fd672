import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AgonError } from '../../services/kernel/index.js';
import { freePort, Server, tied } from './server.js';
import { cached, whyMissing } from './tools.js';

const READY_MS = 30_000;
/** The same version and place as in anvil.sh, which puts it there. */
const binary = () => cached('anvil-1.7.1');

/** Why no chain can be started here; undefined when one can. */
export const whyNoAnvil = () => whyMissing(binary(), 'anvil.sh puts it there, with npm');

/** Starts a chain of this machine's own on loopback. It goes on with what the folder holds, and ends with this process. */
export async function startAnvil({ folder }: { readonly folder: string }) {
  const missing = whyNoAnvil();
  if (missing) throw new AgonError('CHAIN.MISSING', `${missing}.`);
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const state = join(folder, 'chain.json');
  const command = tied(binary(), ['--host', '127.0.0.1', '--port', `${port}`, '--state', state, '--silent']);
  const server = new Server(() => spawn(...command, { stdio: 'ignore' }));
  const url = `http://127.0.0.1:${port}`;
  try {
    await server.ready(() => answers(url), READY_MS);
    return { url, pid: server.pid, stop: () => server.stop() };
  } catch (error) {
    await server.stop();
    throw new AgonError('CHAIN.FAILED', `anvil does not answer at ${url}: ${(error as Error).message}.`);
  }
}

async function answers(url: string): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
  const { ok, status } = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  if (!ok) throw new Error(`it said ${status}`);
}
