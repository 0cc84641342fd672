import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { AgonError } from '../../services/kernel/index.js';
import { freePort } from './postgres.js';

export interface RunningRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** A connection of its own; the caller ends it. */
  connect(): Redis;
  stop(): Promise<void>;
}

/** Why no Redis can be started here; undefined when one can. */
export const whyNoRedis = (): string | undefined =>
  spawnSync('redis-server', ['--version']).status === 0
    ? undefined
    : 'There is no redis-server here; ops/engines/redis.sh installs one.';

/** A Redis on loopback that keeps nothing on disk: all of it can be built again. */
export async function startRedis(options: { readonly folder: string; readonly port?: number }): Promise<RunningRedis> {
  const dir = join(options.folder, 'redis');
  mkdirSync(dir, { recursive: true });
  const port = options.port ?? (await freePort());
  const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'no'];
  const server: ChildProcess = spawn('redis-server', settings, { stdio: 'ignore' });
  const connect = () => {
    const redis = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, maxRetriesPerRequest: null });
    // Said by every command that fails; an error event that nobody hears would end the process.
    return redis.on('error', () => {});
  };
  const first = connect();
  try {
    const ended = once(server, 'exit').then(() => {
      throw new AgonError('REDIS.FAILED', `Redis ended before it answered on port ${port}.`);
    });
    ended.catch(() => {});
    await Promise.race([first.ping(), ended]);
  } finally {
    first.disconnect();
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: server.pid as number,
    connect,
    async stop() {
      if (server.exitCode !== null || server.signalCode !== null) return;
      const ended = once(server, 'exit');
      server.kill('SIGTERM');
      await ended;
    },
  };
}
