import { z } from 'zod';
import {
  cents,
  currency,
  defineEvents,
  type EventOf,
  notChosen,
  positiveCents,
  readable,
  slug,
  text,
  version1,
} from '../kernel/index.js';

/** Names that others give: of holds, deposits, withdrawals, runs. */
export const reference = notChosen('names what is there already', z.string().min(1).max(120));
/** A moment in UTC to the millisecond, so that comparing the text compares the time. */
export const moment = z.iso.datetime({ precision: 3 });
const agentId = notChosen('names an agent that is there', z.string().min(3).max(80));
export const holdId = reference;

/** What an amount was for. */
export const purpose = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('match'), matchId: z.uuid(), seat: z.int().min(0), agentId: agentId.optional() }),
  z.object({ kind: z.literal('other'), note: notChosen('is written by the arena', text(200)) }),
  z.object({ kind: z.literal('withdrawal'), withdrawalId: reference }),
  /** Compute for an agent. A match is a run with a seat. */
  z.object({ kind: z.literal('run'), runId: reference, agentId, seat: z.int().min(0).optional() }),
  z.object({ kind: z.literal('bounty'), bountyId: reference, matchId: z.uuid() }),
]);

/** In the days of version 1 there were matches and other purposes, nothing expired, and only funds were missing. */
const same = { 1: (data: Record<string, unknown>) => data };

const refusalReason = z.enum(['insufficient', 'not_withdrawable', 'frozen', 'owed', 'budget']);

const money = { accountId: slug, amountCents: positiveCents, currency };
const held = { ...money, holdId, purpose };
/** What was paid for something that is not money itself, such as compute credits. */
const paid = z.object({ amountCents: positiveCents, currency });
const withdrawableAt = moment.optional();
/** A match or a payment in dispute has a freeze of its own; an operator's is for neither. */
const freeze = z.object({
  accountId: slug,
  reason: notChosen('is what staff says', text(200, 1)),
  matchId: z.uuid().optional(),
  disputeId: reference.optional(),
});

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const walletEvents = defineEvents('wallet', {
  CreditsGranted: version1({ ...money, reason: notChosen('is what staff says', readable(z.string().max(200))) }),
  /** Credits for compute, paid for with money that is in the wallet. */
  CreditsBought: version1({ accountId: slug, packId: reference, creditCents: positiveCents, paid }),
  /** Without `withdrawableAt` a deposit is played, or goes back the way it came; it is never withdrawn. */
  FundsDeposited: version1({ ...money, depositId: reference, withdrawableAt, paid: paid.optional() }),
  FundsHeld: {
    version: 2,
    // The day is there when a budget was counted against.
    schema: z.object({ ...held, expiresAt: moment.optional(), budgetDay: z.iso.date().optional() }),
    upcast: same,
  },
  HoldRefused: {
    version: 2,
    schema: z.object({ ...held, availableCents: cents, reason: refusalReason }),
    upcast: { 1: (data) => ({ ...data, reason: 'insufficient' }) },
  },
  HoldPosted: { version: 2, schema: z.object(held), upcast: same },
  HoldVoided: { version: 2, schema: z.object(held), upcast: same },
  HoldExpired: version1(held),
  /** Comes with the hold that was posted just before. What is more than the hold was won, and waits for its window. */
  FundsCredited: { version: 2, schema: z.object({ ...money, purpose, withdrawableAt }), upcast: same },
  BountyAwarded: version1({ ...money, bountyId: reference, matchId: z.uuid(), seat: z.int().min(0), withdrawableAt }),
  /** `owedCents` of the amount was not there any more. */
  FundsClawedBack: version1({
    ...money,
    depositId: reference,
    clawBackId: reference,
    reason: z.enum(['refund', 'chargeback']),
    owedCents: cents,
    paid: paid.optional(),
  }),
  /** The mirror image of a settlement: the stake goes back, and the payout is taken back as far as it is there. */
  SettlementReversed: version1({
    accountId: slug,
    currency,
    purpose,
    stakeCents: cents,
    payoutCents: cents,
    owedCents: cents,
  }),
  DebtRepaid: version1(money),
  WalletFrozen: { version: 1, schema: freeze },
  WalletUnfrozen: { version: 1, schema: freeze },
  /** Of the whole wallet, or of one agent. A cap that is not there does not cap. */
  BudgetSet: version1({
    accountId: slug,
    currency,
    agentId: agentId.optional(),
    perRunCents: cents.optional(),
    perDayCents: cents.optional(),
    totalCents: cents.optional(),
  }),
});

export type WalletEvent = EventOf<typeof walletEvents>;
export type Purpose = z.output<typeof purpose>;
export type RefusalReason = z.output<typeof refusalReason>;
