import { z } from 'zod';
import { type Actor, actsFor, cents, currency, defineCommand, isStaff, slug } from '../kernel/index.js';
import { holdId, moment, purpose, reference, walletEvents } from './events.js';

const stream = (data: { accountId: string }) => `wallet-${data.accountId}`;
const { specs } = walletEvents;

export class GrantCredits extends defineCommand({
  type: 'GrantCredits',
  data: specs.CreditsGranted.schema,
  stream,
  allow: isStaff,
}) {}

/** Buys credits for compute with money that is there. What they cost is the seller's to say, who sends this. */
export class BuyCredits extends defineCommand({
  type: 'BuyCredits',
  data: specs.CreditsBought.schema,
  stream,
  allow: (actor: Actor, data) => actsFor(actor, data.accountId, 'operator'),
}) {}

/** Money that has come in. Once for each depositId, whatever the command's id. */
export class DepositFunds extends defineCommand({
  type: 'DepositFunds',
  data: specs.FundsDeposited.schema,
  stream,
  allow: isStaff,
}) {}

export class HoldFunds extends defineCommand({
  type: 'HoldFunds',
  // The event's own schema, so that what is recorded as it is was checked once. The budget's day is the decider's to set.
  data: specs.FundsHeld.schema,
  stream,
  allow: isStaff,
}) {}

/** Ends a hold by taking the money, and credits what comes back, if anything, in the same breath. */
export class PostHold extends defineCommand({
  type: 'PostHold',
  data: z.object({ accountId: slug, holdId, payoutCents: cents, withdrawableAt: moment.optional() }),
  stream,
  allow: isStaff,
}) {}

/** Ends a hold by giving the money back. */
export class VoidHold extends defineCommand({
  type: 'VoidHold',
  data: z.object({ accountId: slug, holdId }),
  stream,
  allow: isStaff,
}) {}

/** Gives back every hold whose time has run out. Does nothing for the others. */
export class ExpireHolds extends defineCommand({
  type: 'ExpireHolds',
  data: z.object({ accountId: slug }),
  stream,
  allow: isStaff,
}) {}

export class AwardBounty extends defineCommand({
  type: 'AwardBounty',
  data: specs.BountyAwarded.schema,
  stream,
  allow: isStaff,
}) {}

/**
 * Takes back a deposit, or a part of it, that was refunded or charged back: what is there at once, the rest as a debt.
 * Once for each clawBackId, which is the depositId with the reason when it is left out.
 */
export class ClawBackFunds extends defineCommand({
  type: 'ClawBackFunds',
  data: specs.FundsClawedBack.schema.omit({ owedCents: true }).extend({ clawBackId: reference.optional() }),
  stream,
  allow: isStaff,
}) {}

/** Undoes what a settlement did to this wallet. */
export class ReverseSettlement extends defineCommand({
  type: 'ReverseSettlement',
  data: z.object({ accountId: slug, currency, purpose, stakeCents: cents, payoutCents: cents }),
  stream,
  allow: isStaff,
}) {}

/** Stops withdrawals, not play. Freezes of different matches stand side by side. */
export class FreezeWallet extends defineCommand({
  type: 'FreezeWallet',
  data: specs.WalletFrozen.schema,
  stream,
  allow: isStaff,
}) {}

export class UnfreezeWallet extends defineCommand({
  type: 'UnfreezeWallet',
  data: specs.WalletUnfrozen.schema,
  stream,
  allow: isStaff,
}) {}

/** Caps what is staked and run from a wallet, by its owner. It counts from when it is set. */
export class SetBudget extends defineCommand({
  type: 'SetBudget',
  data: specs.BudgetSet.schema,
  stream,
  allow: (actor: Actor, data) => actsFor(actor, data.accountId, 'operator'),
}) {}

export type WalletCommand =
  | GrantCredits
  | BuyCredits
  | DepositFunds
  | HoldFunds
  | PostHold
  | VoidHold
  | ExpireHolds
  | AwardBounty
  | ClawBackFunds
  | ReverseSettlement
  | FreezeWallet
  | UnfreezeWallet
  | SetBudget;
