export { GrantCredits, HoldFunds, PostHold, VoidHold } from './commands.js';
export { type WalletEvent, walletEvents } from './events.js';
export { wallet } from './module.js';
