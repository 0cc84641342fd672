import { z } from 'zod';
import { actsFor, cents, commandsOn, currency, isStaff, slug } from '../kernel/index.js';
import { holdId, moment, purpose, reference, walletEvents } from './events.js';

const stream = (data: { accountId: string }) => `wallet-${data.accountId}`;
const { specs } = walletEvents;
const byStaff = commandsOn(stream, isStaff);
const byOperator = commandsOn(stream, (actor, { accountId }) => actsFor(actor, accountId, 'operator'));

export class GrantCredits extends byStaff('GrantCredits', specs.CreditsGranted.schema) {}

/** Buys credits for compute with money that is there. What they cost is the seller's to say, who sends this. */
export class BuyCredits extends byOperator('BuyCredits', specs.CreditsBought.schema) {}

/** Money that has come in. Once for each depositId, whatever the command's id. */
export class DepositFunds extends byStaff('DepositFunds', specs.FundsDeposited.schema) {}

/** By the event's own schema, so that what is recorded was checked once. The budget's day is the decider's to set. */
export class HoldFunds extends byStaff('HoldFunds', specs.FundsHeld.schema) {}

/** Ends a hold by taking the money, and credits what comes back, if anything, in the same breath. */
export class PostHold extends byStaff(
  'PostHold',
  z.object({ accountId: slug, holdId, payoutCents: cents, withdrawableAt: moment.optional() }),
) {}

/** Ends a hold by giving the money back. */
export class VoidHold extends byStaff('VoidHold', z.object({ accountId: slug, holdId })) {}

/** Gives back every hold whose time has run out. Does nothing for the others. */
export class ExpireHolds extends byStaff('ExpireHolds', z.object({ accountId: slug })) {}
export class AwardBounty extends byStaff('AwardBounty', specs.BountyAwarded.schema) {}

/**
 * Takes back a deposit, or a part of it, that was refunded or charged back: what is there at once, the rest as a debt.
 * Once for each clawBackId, which is the depositId with the reason when it is left out.
 */
export class ClawBackFunds extends byStaff(
  'ClawBackFunds',
  specs.FundsClawedBack.schema.omit({ owedCents: true }).extend({ clawBackId: reference.optional() }),
) {}

/** Undoes what a settlement did to this wallet. */
export class ReverseSettlement extends byStaff(
  'ReverseSettlement',
  z.object({ accountId: slug, currency, purpose, stakeCents: cents, payoutCents: cents }),
) {}

/** Stops withdrawals, not play. Freezes of different matches stand side by side. */
export class FreezeWallet extends byStaff('FreezeWallet', specs.WalletFrozen.schema) {}
export class UnfreezeWallet extends byStaff('UnfreezeWallet', specs.WalletUnfrozen.schema) {}

/** Caps what is staked and run from a wallet, by its owner. It counts from when it is set. */
export class SetBudget extends byOperator('SetBudget', specs.BudgetSet.schema) {}
