import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis, whyNoRedis } from '../../ops/engines/redis.js';
import { type OwnRedis, ownRedis } from '../../ops/engines/shared.contract.js';
import { type HeldLease, randomIds } from '../kernel/index.js';
import { leaseContract, never } from './lease.contract.js';
import { RedisLease } from './lease.js';
import { until } from './store/subscription.contract.js';

const missing = whyNoRedis();
if (missing) {
  describe('Redis: a lease', () => {
    it('passes the contract of leases', (context) => context.skip(`${missing}.`));
  });
} else {
  const folder = mkdtempSync(join(tmpdir(), 'agon-lease-'));
  let server: OwnRedis;
  let redis: Redis;
  let names = 0;
  beforeAll(async () => {
    server = await ownRedis();
    redis = server.connect();
  });
  afterAll(() => {
    server?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const leaseNamed = (name: string, ttlMs = 1_200) => new RedisLease({ redis, name, ids: randomIds, ttlMs });

  leaseContract('Redis', () => leaseNamed(`lease-${names++}`));

  // Whoever never hears of its loss waits for ever: half a minute is enough to know.
  describe('a lease in Redis', { timeout: 30_000 }, () => {
    it('is kept for as long as its holder lives, however long that is', async () => {
      const held = await leaseNamed('kept', 1_500).acquire(never);
      const stopping = new AbortController();
      const other = leaseNamed('kept').acquire(stopping.signal);
      await sleep(1_800);
      expect(held.lost.aborted).toBe(false);
      stopping.abort();
      await expect(other).rejects.toThrow();
      await held.release();
    });

    it('passes on when its holder is gone, and tells the holder', async () => {
      const first = await leaseNamed('passed').acquire(never);
      await redis.del('{agon:lease:passed}');
      const second = await leaseNamed('passed').acquire(never);
      await until(() => first.lost.aborted);
      expect(second.token).toBeGreaterThan(first.token);
      // A holder that is late does not take the lease from its successor.
      await first.release();
      expect(await redis.exists('{agon:lease:passed}')).toBe(1);
      await second.release();
    });

    it('tells whether anybody has it', async () => {
      const lease = leaseNamed('told');
      expect(await lease.taken()).toBe(false);
      const held = await lease.acquire(never);
      expect(await leaseNamed('told').taken()).toBe(true);
      await held.release();
      expect(await lease.taken()).toBe(false);
    });

    it('gives greater tokens even after Redis has forgotten everything', async () => {
      const first = await leaseNamed('forgotten').acquire(never);
      await sleep(5);
      await redis.flushdb();
      const second = await leaseNamed('forgotten').acquire(never);
      expect(second.token).toBeGreaterThan(first.token);
      for (const held of [first, second]) await held.release();
    });

    it.each([
      ['asks again for as long as it takes', { maxRetriesPerRequest: null }, []],
      ['gives up at once', { enableOfflineQueue: false, retryStrategy: null }, [expect.any(Error)]],
    ] as const)(
      'counts as lost before it can be another one’s when Redis no longer answers a client that %s',
      async (_how, options, told) => {
        const away = await startRedis({ folder: folder });
        const client = new Redis(away.port, '127.0.0.1', { ...options, lazyConnect: true });
        client.on('error', () => {});
        await client.connect();
        const troubles: unknown[] = [];
        const onTrouble = (error: unknown) => troubles.push(error);
        const lease = new RedisLease({ redis: client, name: 'x', ids: randomIds, ttlMs: 300, onTrouble });
        const held: HeldLease = await lease.acquire(never);
        expect(troubles).toEqual([]);
        await away.stop();
        await until(() => held.lost.aborted);
        await held.release();
        // A question that goes unanswered is waited for; one that is refused is told.
        expect(troubles.slice(0, 1)).toEqual(told);
        client.disconnect();
      },
    );
  });
}
