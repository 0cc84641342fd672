import { z } from 'zod';
import { cents, defineEvents, type EventOf, notChosen, positiveCents, slug, version1 } from '../kernel/index.js';

/** Money that people pay in and take out. Play credits are not: they cost nothing and are worth nothing. */
export const realCurrency = z.enum(['USD', 'EUR', 'GBP']);
const ofOffer = notChosen('names an offer of the arena', z.string().max(40));
const price = { amountCents: positiveCents, currency: realCurrency };

/** What a checkout pays for. */
export const order = z.discriminatedUnion('kind', [
  /** The money can be withdrawn so many seconds after it came in: cards are charged back, and that takes its time. */
  z.object({ kind: z.literal('deposit'), ...price, clearingS: z.int().min(0).max(31_536_000) }),
  z.object({ kind: z.literal('credits'), ...price, packId: ofOffer, creditCents: positiveCents }),
  z.object({ kind: z.literal('plan'), ...price, planId: ofOffer }),
]);

/** An id that the provider gave. */
export const providerId = z.string().regex(/^[A-Za-z0-9_]{1,200}$/);
export const because = notChosen('is said by staff, the arena or the provider', z.string().max(400));

const payment = { accountId: slug, paymentId: z.uuid() };
const refund = z.object({ ...payment, ...price, kind: z.literal('refund'), refundId: providerId, failed: z.boolean() });
const dispute = z.object({
  ...payment,
  ...price,
  kind: z.literal('dispute'),
  disputeId: providerId,
  outcome: z.enum(['open', 'won', 'lost']),
});
/** Late is still being charged; unpaid was given up. */
const planStatus = z.enum(['incomplete', 'active', 'late', 'unpaid', 'ended']);
/** Whole seconds: of two notices about one thing, the later one counts, whatever order they come in. */
const asOfS = z.int().min(0);

/** When a subscription began: of two that run, the newer one is the plan. */
const startedS = z.int().min(0);
const subscription = z.object({
  accountId: slug,
  planId: ofOffer,
  subscriptionId: providerId,
  asOfS,
  startedS,
  status: planStatus,
});

const payoutAccount = { accountId: slug, payoutAccountId: providerId, enabled: z.boolean(), asOfS };
const planPayment = { accountId: slug, planId: ofOffer, invoiceId: providerId, ...price };
const planClaim = {
  accountId: slug,
  planId: ofOffer,
  invoiceId: providerId,
  claimId: providerId,
  ...price,
  cause: z.enum(['refund', 'dispute']),
};

/** What the provider tells us, in our words. A notice that came over a verified webhook is a fact; nothing else is. */
export const notice = z.discriminatedUnion('kind', [
  z.object({ ...payment, ...price, kind: z.literal('paid'), chargeId: providerId }),
  z.object({ ...payment, kind: z.literal('unpaid'), reason: because }),
  refund,
  dispute,
  subscription.extend({ kind: z.literal('plan') }),
  z.object({ kind: z.literal('plan-paid'), ...planPayment }),
  /** A refund or a dispute of what was paid for a plan; it stands until it fails or is won. */
  z.object({ kind: z.literal('plan-claim'), ...planClaim, stands: z.boolean() }),
  /** A transfer was taken back: so much of it in all, up to now. */
  z.object({
    kind: z.literal('transfer-reversed'),
    accountId: slug,
    withdrawalId: z.uuid(),
    transferId: providerId,
    ...price,
  }),
  z.object({ kind: z.literal('payout-account'), ...payoutAccount }),
]);

const askedRefund = { ...payment, requestId: z.uuid() };
const withdrawal = { accountId: slug, withdrawalId: z.uuid(), ...price };
/**
 * What of it is taken out of the wallet, by the deposits that it came in with. Refunds and disputes of one payment can
 * add up to more than was paid; no more than that is ever taken.
 */
const taken = z.array(z.object({ depositId: z.string().max(120), amountCents: positiveCents })).max(100);
const refunded = z.object({ ...payment, refundId: providerId, ...price, order });
const disputed = z.object({ ...payment, disputeId: providerId, ...price, order });
/** What goes back into the wallet, as a deposit with this id. */
const returned = { depositId: z.string().max(120), returnedCents: cents };

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const paymentEvents = defineEvents('payments', {
  CheckoutRequested: version1({ ...payment, order }),
  CheckoutOpened: version1({ ...payment, sessionId: providerId, url: z.url() }),
  CheckoutFailed: version1({ ...payment, reason: because }),
  PaymentReceived: version1({ ...payment, order, chargeId: providerId }),
  PaymentRefunded: { version: 1, schema: refunded.extend({ taken }) },
  /** The key of the call is fixed: from here on, the provider may have been asked. The money is taken by its notice. */
  RefundRequested: version1({
    ...askedRefund,
    ...price,
    chargeId: providerId,
    idempotencyKey: z.string().max(255),
    reason: because,
  }),
  RefundMade: version1({ ...askedRefund, refundId: providerId }),
  RefundRefused: version1({ ...askedRefund, reason: because }),
  RefundFailed: { version: 1, schema: refunded.extend(returned) },
  DisputeOpened: { version: 1, schema: disputed.extend({ taken }) },
  DisputeWon: { version: 1, schema: disputed.extend(returned) },
  DisputeLost: { version: 1, schema: disputed },
  /** A refund or a dispute that was heard of before its payment. */
  NoticeKept: version1({ ...payment, notice: z.discriminatedUnion('kind', [refund, dispute]) }),
  PlanChanged: {
    version: 2,
    schema: subscription,
    // In the days of version 1 nobody asked when it began. It was not after it was first heard of.
    upcast: { 1: (data) => ({ ...data, startedS: data.asOfS }) },
  },
  /** News of a subscription that is not the plan: an older one, or one that nothing was paid for yet. */
  PlanNoted: { version: 1, schema: subscription },
  PlanPaid: version1(planPayment),
  /** The plan itself follows its subscription, not this. */
  PlanPaymentTaken: version1(planClaim),
  PlanPaymentReturned: version1({ ...planClaim, returnedCents: cents }),
  /** Asked for, or of a subscription that another one has replaced. */
  PlanEndRequested: version1({ accountId: slug, subscriptionId: providerId }),
  PayoutAccountRequested: version1({ accountId: slug }),
  PayoutAccountRefused: version1({ accountId: slug, reason: because }),
  PayoutAccountOpened: version1({ accountId: slug, payoutAccountId: providerId }),
  PayoutAccountChanged: version1(payoutAccount),
  WithdrawalAsked: version1(withdrawal),
  WithdrawalRefused: version1({ ...withdrawal, reason: because, availableCents: cents }),
  /** The money is held and the key of the transfer fixed: from here on, the provider may have been asked to pay. */
  WithdrawalRequested: version1({ ...withdrawal, payoutAccountId: providerId, idempotencyKey: z.string().max(255) }),
  /** No transfer is begun from here on. One that was begun before may still turn up. */
  WithdrawalStopped: version1({ ...withdrawal, reason: because }),
  WithdrawalPaid: version1({ ...withdrawal, transferId: providerId }),
  /** So much more of a transfer came back, and so much in all. */
  WithdrawalReversed: version1({ ...withdrawal, transferId: providerId, totalCents: positiveCents }),
  WithdrawalFailed: version1({ ...withdrawal, reason: because }),
});

export type PaymentEvent = EventOf<typeof paymentEvents>;
export type Subscription = z.output<typeof subscription>;
export type Order = z.output<typeof order>;
export type Notice = z.output<typeof notice>;
export type RealCurrency = z.output<typeof realCurrency>;
