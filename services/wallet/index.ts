import { defineContext } from '../kernel/index.js';
import * as commands from './commands.js';
import { walletDecider } from './decider.js';
import { walletEvents } from './events.js';
import { stakes } from './policies.js';

export { spentOn } from './budget.js';
export * from './commands.js';
export { purseOf, type WalletState, walletDecider, withheld } from './decider.js';
export { type Purpose, type WalletEvent, walletEvents } from './events.js';
export { ExpiringHolds } from './expiry.js';
export * from './summary.js';

export const wallet = defineContext({
  name: 'wallet',
  streams: 'wallet',
  events: walletEvents,
  decider: walletDecider,
  commands,
  policies: [stakes],
});
