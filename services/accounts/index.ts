import { defineContext } from '../kernel/index.js';
import * as commands from './commands.js';
import { accountDecider } from './decider.js';
import { accountEvents } from './events.js';

export * from './commands.js';
export { type AccountState, type ApiKey, accountDecider, assertJoins } from './decider.js';
export { type AccountEvent, accountEvents, type KeyScope, keyScopes, ownerScopes } from './events.js';
export * from './vault.js';

export const accounts = defineContext({
  name: 'accounts',
  streams: 'account',
  events: accountEvents,
  decider: accountDecider,
  commands,
});
