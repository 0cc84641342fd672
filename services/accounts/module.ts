import { defineContext } from '../kernel/index.js';
import { IssueApiKey, RegisterOwner, RevokeApiKey } from './commands.js';
import { accountDecider } from './decider.js';
import { accountEvents } from './events.js';

export const accounts = defineContext({
  name: 'accounts',
  events: accountEvents,
  decider: accountDecider,
  commands: [RegisterOwner, IssueApiKey, RevokeApiKey],
});
