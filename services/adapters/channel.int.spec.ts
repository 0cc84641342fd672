import { afterAll, beforeAll, describe, it } from 'vitest';
import { whyNoRedis } from '../../ops/engines/redis.js';
import { type OwnRedis, ownRedis } from '../../ops/engines/shared.contract.js';
import { channelContract } from './channel.contract.js';
import { RedisChannel } from './channel.js';

const missing = whyNoRedis();
if (missing) {
  describe('Redis: a channel', () => {
    it('passes the contract of channels', (context) => context.skip(`${missing}.`));
  });
} else {
  let server: OwnRedis;
  beforeAll(async () => {
    server = await ownRedis();
  });
  afterAll(() => server?.close());
  const end = () => new RedisChannel(server.connect(), () => server.connect());

  channelContract('a channel over Redis', async () => [end(), end()]);
}
