import { defineContext } from '../kernel/index.js';
import { GrantCredits, HoldFunds, PostHold, VoidHold } from './commands.js';
import { walletDecider } from './decider.js';
import { walletEvents } from './events.js';
import { stakes } from './policies.js';

export const wallet = defineContext({
  name: 'wallet',
  events: walletEvents,
  decider: walletDecider,
  commands: [GrantCredits, HoldFunds, PostHold, VoidHold],
  policies: [stakes],
});
