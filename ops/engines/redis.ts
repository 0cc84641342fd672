import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { AgonError } from '../../services/kernel/index.js';
import { freePort, Server, tied } from './server.js';

const READY_MS = 30_000;

/** Why no Redis can be started here; undefined when one can. */
export const whyNoRedis = (): string | undefined =>
  spawnSync('redis-server', ['--version']).status === 0
    ? undefined
    : 'There is no redis-server here; ops/engines/redis.sh installs one.';

interface RedisOptions {
  readonly folder: string;
  readonly port?: number;
  /** How many databases it keeps apart; Redis' own default is 16. */
  readonly databases?: number;
  /** Started again whenever it ends by itself; what it knew is gone. */
  readonly lasting?: boolean;
}

/** A Redis on loopback that keeps nothing on disk: all of it can be built again. */
export async function startRedis(options: RedisOptions) {
  const dir = join(options.folder, 'redis');
  mkdirSync(dir, { recursive: true });
  const port = options.port ?? (await freePort());
  const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'no'];
  if (options.databases !== undefined) settings.push('--databases', `${options.databases}`);
  const command = tied('redis-server', settings);
  const server = new Server(() => spawn(...command, { stdio: 'ignore' }));
  const first = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
  first.on('error', () => {});
  try {
    await server.ready(async () => {
      if (first.status !== 'ready') await first.connect();
      await first.ping();
    }, READY_MS);
  } catch (error) {
    await server.stop();
    throw new AgonError('REDIS.FAILED', `Redis did not answer on port ${port}: ${(error as Error).message}.`);
  } finally {
    first.disconnect();
  }
  if (options.lasting) server.keep();
  return { url: `redis://127.0.0.1:${port}`, port, stop: () => server.stop() };
}
