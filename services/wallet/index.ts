export {
  AwardBounty,
  ClawBackFunds,
  DepositFunds,
  ExpireHolds,
  FreezeWallet,
  GrantCredits,
  HoldFunds,
  PostHold,
  ReverseSettlement,
  SetBudget,
  UnfreezeWallet,
  VoidHold,
} from './commands.js';
export { type Purpose, type WalletEvent, walletEvents } from './events.js';
export { wallet } from './module.js';
