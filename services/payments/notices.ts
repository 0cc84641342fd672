import { AgonError, fold } from '../kernel/index.js';
import type { Notice, PaymentEvent, Subscription } from './events.js';
import {
  evolve,
  initial,
  maybePaid,
  NO_PAYOUT,
  type NoticeOf,
  type Payment,
  type PaymentState,
  paymentOf,
  withdrawalOf,
} from './state.js';

/** Notices come in any order, and some twice. What each does depends on what is known, never on when it came. */
export function takeNotice(notice: Notice, state: PaymentState): PaymentEvent[] {
  switch (notice.kind) {
    case 'paid':
      return receive(notice, state);
    case 'unpaid': {
      const { kind: _kind, ...data } = notice;
      return failCheckout(state, data);
    }
    case 'refund':
    case 'dispute': {
      const { accountId, paymentId } = notice;
      const payment = paymentOf(state, paymentId);
      if (payment.status !== 'received') return [{ type: 'NoticeKept', data: { accountId, paymentId, notice } }];
      return notice.kind === 'refund' ? refund(notice, payment) : dispute(notice, payment);
    }
    case 'plan':
      return changePlan(notice, state);
    case 'plan-paid': {
      const { kind: _kind, ...data } = notice;
      return state.invoices.includes(data.invoiceId) ? [] : [{ type: 'PlanPaid', data }];
    }
    case 'plan-claim':
      return claimPlan(notice, state);
    case 'transfer-reversed':
      return reverseTransfer(notice, state);
    case 'payout-account': {
      const { kind: _kind, ...data } = notice;
      const { asOfS, enabled } = state.payout ?? NO_PAYOUT;
      const isNews = data.asOfS > asOfS || (data.asOfS === asOfS && data.enabled && !enabled);
      return isNews ? [{ type: 'PayoutAccountChanged', data }] : [];
    }
  }
}

function receive(notice: NoticeOf<'paid'>, state: PaymentState): PaymentEvent[] {
  const { accountId, paymentId, amountCents, currency, chargeId } = notice;
  const { order, status, kept } = paymentOf(state, paymentId);
  if (status === 'received') return [];
  if (order.amountCents !== amountCents || order.currency !== currency) {
    const asked = `${order.amountCents} ${order.currency}`;
    throw new AgonError('PAYMENTS.OTHER_AMOUNT', `${asked} were asked for, and ${amountCents} ${currency} were paid.`);
  }
  const events: PaymentEvent[] = [{ type: 'PaymentReceived', data: { accountId, paymentId, order, chargeId } }];
  for (const early of kept) events.push(...takeNotice(early, fold({ initial, evolve }, events, state)));
  return events;
}

/** A refund takes the money back when it is first heard of, and gives it back if it fails. Failing is final. */
function refund(notice: NoticeOf<'refund'>, payment: Payment): PaymentEvent[] {
  const { accountId, paymentId, refundId, amountCents, currency, failed } = notice;
  const data = { accountId, paymentId, refundId, amountCents, currency, order: payment.order };
  const before = payment.refunds[refundId]?.stage;
  if (before === 'failed' || (before === 'counted' && !failed)) return [];
  const counted: PaymentEvent = { type: 'PaymentRefunded', data: { ...data, taken: take(payment, amountCents) } };
  if (!failed) return [counted];
  // Heard of its failure first: nothing was taken, nothing is given back, and its beginning will not count any more.
  const returnedCents = before === 'counted' ? giveBack(payment, amountCents) : '0';
  return [{ type: 'RefundFailed', data: { ...data, depositId: `${refundId}:failed`, returnedCents } }];
}

/** A dispute takes the money when it opens; a won one gives it back. Its end is final, also if heard of first. */
function dispute(notice: NoticeOf<'dispute'>, payment: Payment): PaymentEvent[] {
  const { accountId, paymentId, disputeId, amountCents, currency, outcome } = notice;
  const data = { accountId, paymentId, disputeId, amountCents, currency, order: payment.order };
  const before = payment.disputes[disputeId]?.stage;
  if (before === 'won' || before === 'lost' || before === outcome) return [];
  const opened: PaymentEvent = { type: 'DisputeOpened', data: { ...data, taken: take(payment, amountCents) } };
  if (outcome === 'open') return [opened];
  if (outcome === 'lost') {
    const lost: PaymentEvent = { type: 'DisputeLost', data };
    return before === 'open' ? [lost] : [opened, lost];
  }
  const returnedCents = before === 'open' ? giveBack(payment, amountCents) : '0';
  return [{ type: 'DisputeWon', data: { ...data, depositId: `${disputeId}:won`, returnedCents } }];
}

/** What was paid for a plan went to the house, so the house gives it back; whoever hears of the end first, hears it for good. */
function claimPlan({ kind: _kind, stands, ...claim }: NoticeOf<'plan-claim'>, state: PaymentState): PaymentEvent[] {
  const before = state.planClaims[claim.claimId];
  if (before === 'returned' || (before === 'taken' && stands)) return [];
  if (stands) return [{ type: 'PlanPaymentTaken', data: claim }];
  const returnedCents = before === 'taken' ? claim.amountCents : '0';
  return [{ type: 'PlanPaymentReturned', data: { ...claim, returnedCents } }];
}

/** The provider says how much has come back in all: what is more than was known is news. */
function reverseTransfer(notice: NoticeOf<'transfer-reversed'>, state: PaymentState): PaymentEvent[] {
  const { accountId, withdrawalId, transferId, amountCents: totalCents, currency } = notice;
  const { status, amountCents: paidCents, ...known } = withdrawalOf(state, withdrawalId);
  const isOther = status === 'paid' ? known.transferId !== transferId : !maybePaid({ status });
  if (isOther) {
    const name = `Withdrawal ${withdrawalId} is ${status}${known.transferId ? ` by ${known.transferId}` : ''}`;
    throw new AgonError('PAYMENTS.OTHER_TRANSFER', `${name}, and transfer ${transferId} was reversed.`);
  }
  if (BigInt(totalCents) > BigInt(paidCents) || currency !== known.currency) {
    const paid = `${paidCents} ${known.currency}`;
    throw new AgonError('PAYMENTS.OTHER_AMOUNT', `${paid} were paid out, and ${totalCents} ${currency} came back.`);
  }
  const amountCents = BigInt(totalCents) - (known.reversedCents ?? 0n);
  if (amountCents <= 0n) return [];
  const withdrawal = { accountId, withdrawalId, currency, transferId };
  const paid: PaymentEvent = { type: 'WithdrawalPaid', data: { ...withdrawal, amountCents: paidCents } };
  const data = { ...withdrawal, amountCents: `${amountCents}`, totalCents };
  const reversed: PaymentEvent = { type: 'WithdrawalReversed', data };
  // What came back was paid, also if nobody has recorded that yet.
  return status === 'paid' ? [reversed] : [paid, reversed];
}

/** What of a payment is the owner's while so much of it is claimed back: never less than nothing. */
export function left({ order, refunds, disputes }: Payment, changeCents = 0n): bigint {
  const claims = [
    ...Object.values(refunds).filter(({ stage }) => stage === 'counted'),
    ...Object.values(disputes).filter(({ stage }) => stage !== 'won'),
  ];
  const claimed = claims.reduce((sum, { amountCents }) => sum + amountCents, changeCents);
  const cents = BigInt(order.amountCents) - claimed;
  return cents > 0n ? cents : 0n;
}

/** As much of this claim as is left, out of the deposits that hold it. */
function take(payment: Payment, amountCents: string) {
  let wanted = left(payment) - left(payment, BigInt(amountCents));
  return Object.entries(payment.deposits).flatMap(([depositId, has]) => {
    const part = has < wanted ? has : wanted;
    wanted -= part;
    return part > 0n ? [{ depositId, amountCents: part.toString() }] : [];
  });
}

/** What the end of this claim leaves the owner with; other claims may want some of it. */
const giveBack = (payment: Payment, amountCents: string): string =>
  (left(payment, -BigInt(amountCents)) - left(payment)).toString();

/** Of two notices of one second, the one further on in a subscription's life counts. */
const STAGES = ['incomplete', 'active', 'late', 'unpaid', 'ended'] as const;
const stage = ({ status }: Subscription) => STAGES.indexOf(status);
const isInForce = ({ status }: Subscription) => status === 'active' || status === 'late';

/**
 * The plan is a function of all that is known about an owner's subscriptions, whatever order it was heard in: one that is
 * in force before one that is not, then the newest that has not ended.
 */
function changePlan({ kind: _kind, ...heard }: NoticeOf<'plan'>, state: PaymentState): PaymentEvent[] {
  const known = state.subscriptions[heard.subscriptionId];
  if (known && !isNews(heard, known)) return [];
  const all = Object.values({ ...state.subscriptions, [heard.subscriptionId]: heard });
  const plan = all.reduce((a, b) => (outranks(b, a) ? b : a));
  const changed: PaymentEvent = { type: 'PlanChanged', data: plan };
  const noted: PaymentEvent = { type: 'PlanNoted', data: heard };
  const others = plan.subscriptionId === state.plan?.subscriptionId ? [noted] : [noted, changed];
  return [...(plan === heard ? [changed] : others), ...endReplaced(all, plan, state)];
}

/** An end is final, also if it is heard of first. */
function isNews(heard: Subscription, known: Subscription): boolean {
  if (known.status === 'ended') return false;
  if (heard.status === 'ended') return true;
  if (heard.asOfS !== known.asOfS) return heard.asOfS > known.asOfS;
  return stage(heard) > stage(known);
}

function outranks(a: Subscription, b: Subscription): boolean {
  const rank = (each: Subscription) => [isInForce(each), each.status !== 'ended'].map(Number);
  const [ofA, ofB] = [
    [...rank(a), a.startedS],
    [...rank(b), b.startedS],
  ];
  const first = ofA.findIndex((value, i) => value !== ofB[i]);
  return first < 0 ? a.subscriptionId > b.subscriptionId : (ofA[first] ?? 0) > (ofB[first] ?? 0);
}

/** Nobody pays for two: every other one that is still charged for is ended. */
function endReplaced(all: readonly Subscription[], plan: Subscription, { planEndings }: PaymentState): PaymentEvent[] {
  if (!isInForce(plan)) return [];
  return all
    .filter((each) => each !== plan && (isInForce(each) || each.status === 'unpaid'))
    .filter(({ subscriptionId }) => !planEndings.includes(subscriptionId))
    .map(({ accountId, subscriptionId }) => ({ type: 'PlanEndRequested', data: { accountId, subscriptionId } }));
}

export function failCheckout(
  state: PaymentState,
  data: { accountId: string; paymentId: string; reason: string },
): PaymentEvent[] {
  const { status } = paymentOf(state, data.paymentId);
  return status === 'requested' || status === 'open' ? [{ type: 'CheckoutFailed', data }] : [];
}
