import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { freePort } from '../../ops/engines/postgres.js';
import { hotBoardsContract } from '../leaderboards/hot.contract.js';
import { RedisBoards } from './redis.js';

const installed = spawnSync('redis-server', ['--version']).status === 0;

if (!installed) {
  describe('hot boards in Redis', () => {
    it('pass the contract of hot boards', (context) => {
      context.skip('There is no redis-server here; ops/engines/redis.sh installs one.');
    });
  });
} else {
  const folder = mkdtempSync(join(tmpdir(), 'agon-redis-'));
  let server: ChildProcess;
  let redis: Redis;

  beforeAll(async () => {
    const port = await freePort();
    const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'];
    server = spawn('redis-server', options, { stdio: 'ignore' });
    redis = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, maxRetriesPerRequest: null });
    redis.on('error', () => {});
    await redis.ping();
  });

  afterAll(async () => {
    redis?.disconnect();
    server?.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  hotBoardsContract('Redis', async () => {
    await redis.flushall();
    return new RedisBoards(redis);
  });
}
