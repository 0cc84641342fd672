export { spentOn } from './budget.js';
export {
  AwardBounty,
  BuyCredits,
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
export { purseOf, type WalletState, walletDecider, withheld } from './decider.js';
export { type Purpose, type WalletEvent, walletEvents } from './events.js';
export { ExpiringHolds } from './expiry.js';
export { wallet } from './module.js';
export { afford, type PurseSummary, pursesOf } from './summary.js';
