import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError } from '../../services/kernel/index.js';
import { freePort } from './postgres.js';

const READY_MS = 20_000;

/** Why Redis cannot run here, if it cannot. */
export const whyNoRedis = (): string | undefined =>
  spawnSync('redis-server', ['--version']).status === 0
    ? undefined
    : 'There is no redis-server here; ops/engines/redis.sh installs one';

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts a Redis that keeps nothing, on a free port of loopback. */
export async function startRedis(folder: string): Promise<RedisServer> {
  const port = await freePort();
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'];
  const server = spawn('redis-server', options, { stdio: 'ignore' });
  const stop = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  for (let waitedMs = 0; waitedMs < READY_MS; waitedMs += 20) {
    if (await answers(port)) return { url: `redis://127.0.0.1:${port}`, port, stop };
    await sleep(20);
  }
  await stop();
  throw new AgonError('REDIS.FAILED', `Redis does not answer on port ${port} after ${READY_MS / 1000} s.`);
}

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
