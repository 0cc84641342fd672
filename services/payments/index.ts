import { defineContext } from '../kernel/index.js';
import * as commands from './commands.js';
import { paymentDecider } from './decider.js';
import { paymentEvents } from './events.js';
import { paidIn, withdrawals } from './policies.js';

export * from './commands.js';
export type * from './events.js';
export { paymentEvents, realCurrency } from './events.js';
export * from './incoming.js';
export * from './offers.js';
export type * from './provider.js';

export const payments = defineContext({
  name: 'payments',
  streams: 'payments',
  events: paymentEvents,
  decider: paymentDecider,
  commands,
  policies: [paidIn, withdrawals],
});
