import { channelContract } from './channel.contract.js';
import { MemoryChannel } from './channel.js';

channelContract('a channel in one process', async () => {
  const channel = new MemoryChannel();
  return [channel, channel];
});
