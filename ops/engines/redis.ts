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

const AGAIN_MS = 500;

export interface RedisOptions {
  readonly folder: string;
  readonly port?: number;
  /** How many databases it keeps apart; Redis' own default is 16. */
  readonly databases?: number;
  /** Started again whenever it ends by itself; what it knew is gone. */
  readonly lasting?: boolean;
}

/** Tied to this process, however that ends, where the system can do it. */
function spawned(settings: readonly string[]): ChildProcess {
  const tie = ['--pdeathsig', 'TERM', 'redis-server'];
  const tied = spawnSync('setpriv', [...tie, '--version'], { stdio: 'ignore' }).status === 0;
  const [file, args] = tied ? ['setpriv', [...tie, ...settings]] : ['redis-server', settings];
  return spawn(file, args, { stdio: 'ignore' });
}

/** A Redis on loopback that keeps nothing on disk: all of it can be built again. */
export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const dir = join(options.folder, 'redis');
  mkdirSync(dir, { recursive: true });
  const port = options.port ?? (await freePort());
  const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'no'];
  if (options.databases !== undefined) settings.push('--databases', `${options.databases}`);
  let server = spawned(settings);
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
  let stopping = false;
  const keep = () =>
    server.once('exit', () => {
      if (stopping) return;
      setTimeout(() => {
        if (stopping) return;
        server = spawned(settings);
        keep();
      }, AGAIN_MS).unref();
    });
  if (options.lasting) keep();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid as number;
    },
    connect,
    async stop() {
      stopping = true;
      if (server.exitCode !== null || server.signalCode !== null) return;
      const ended = once(server, 'exit');
      server.kill('SIGTERM');
      await ended;
    },
  };
}
