import { Redis } from 'ioredis';
import { AgonError } from '../../services/kernel/index.js';
import type { Host } from '../../services/runtime/host.js';

type Wants = Pick<Host, 'engine' | 'log'>;

/** For what many processes share and nobody keeps. Commands that cannot be sent fail instead of waiting. */
export function redisOf(host: Wants, url: string): Promise<Redis> {
  return host.engine('redis', async () => {
    const redis = new Redis(url, { lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 1 });
    redis.on('error', (err) => host.log.debug({ err }, 'Redis does not answer'));
    await redis.connect().catch((error: Error) => {
      redis.disconnect();
      throw new AgonError('REDIS.UNREACHABLE', `Redis does not answer: ${error.message}.`);
    });
    return { value: redis, ready: () => redis.ping(), stop: async () => redis.disconnect() };
  });
}

/** A connection that waits for Redis as long as it takes: for leases, and for those who listen. */
export function patientRedis(host: Wants, name: string, url: string): Promise<Redis> {
  return host.engine(`redis for ${name}`, async () => {
    const redis = new Redis(url, { maxRetriesPerRequest: null });
    redis.on('error', (err) => host.log.debug({ err }, 'Redis does not answer'));
    return { value: redis, ready: () => redis.ping(), stop: async () => redis.disconnect() };
  });
}
