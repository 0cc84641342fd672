import { defineContext } from '../kernel/index.js';
import {
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
import { walletDecider } from './decider.js';
import { walletEvents } from './events.js';
import { stakes } from './policies.js';

export const wallet = defineContext({
  name: 'wallet',
  streams: 'wallet',
  events: walletEvents,
  decider: walletDecider,
  commands: [
    GrantCredits,
    BuyCredits,
    DepositFunds,
    HoldFunds,
    PostHold,
    VoidHold,
    ExpireHolds,
    AwardBounty,
    ClawBackFunds,
    ReverseSettlement,
    FreezeWallet,
    UnfreezeWallet,
    SetBudget,
  ],
  policies: [stakes],
});
