import { AgonError, type CommandOf, type Decider } from '../kernel/index.js';
import type * as commands from './commands.js';
import type { PaymentEvent } from './events.js';
import { failCheckout, left, takeNotice } from './notices.js';
import { evolve, initial, isDisputed, maybePaid, type PaymentState, paymentOf, withdrawalOf } from './state.js';

type PaymentCommand = CommandOf<typeof commands>;

/** The smallest payment that providers take, and more than anybody should lose to a typing error. */
const CHECKOUT_CENTS = { min: 100n, max: 100_000_00n } as const;

function decide(command: PaymentCommand, state: PaymentState): PaymentEvent[] {
  switch (command.type) {
    case 'RequestCheckout':
      return requestCheckout(command, state);
    case 'RecordCheckout': {
      // A session that is made again after the first was recorded is nobody's: its address was never shown.
      const { status } = paymentOf(state, command.data.paymentId);
      return status === 'requested' ? [{ type: 'CheckoutOpened', data: command.data }] : [];
    }
    case 'FailCheckout':
      return failCheckout(state, command.data);
    case 'TakeNotice':
      return takeNotice(command.data.notice, state);
    case 'RequestRefund':
      return requestRefund(command, state);
    case 'RecordRefund':
      return isRefundOpen(state, command.data) ? [{ type: 'RefundMade', data: command.data }] : [];
    case 'RefuseRefund':
      return isRefundOpen(state, command.data) ? [{ type: 'RefundRefused', data: command.data }] : [];
    case 'EndPlan': {
      const { accountId } = command.data;
      if (!state.plan || state.plan.status === 'ended') return [];
      const { subscriptionId } = state.plan;
      if (state.planEndings.includes(subscriptionId)) return [];
      return [{ type: 'PlanEndRequested', data: { accountId, subscriptionId } }];
    }
    case 'RequestPayoutAccount':
      return state.payout ? [] : [{ type: 'PayoutAccountRequested', data: command.data }];
    case 'RecordPayoutAccount':
      return state.payout?.id ? [] : [{ type: 'PayoutAccountOpened', data: command.data }];
    case 'RefusePayoutAccount':
      return !state.payout || state.payout.id ? [] : [{ type: 'PayoutAccountRefused', data: command.data }];
    case 'AskWithdrawal':
      return askWithdrawal(command, state);
    case 'ApproveWithdrawal': {
      const { accountId, withdrawalId } = command.data;
      const { status, amountCents, currency } = withdrawalOf(state, withdrawalId);
      if (status !== 'asked') return [];
      const asked = { accountId, withdrawalId, amountCents, currency };
      const payoutAccountId = state.payout?.id;
      // It may have been asked for just before the dispute was heard of.
      if (isDisputed(state)) return [{ type: 'WithdrawalFailed', data: { ...asked, reason: 'a payment is disputed' } }];
      if (!payoutAccountId) return [{ type: 'WithdrawalFailed', data: { ...asked, reason: 'no payout account' } }];
      const idempotencyKey = `agon-withdrawal-${withdrawalId}`;
      return [{ type: 'WithdrawalRequested', data: { ...asked, payoutAccountId, idempotencyKey } }];
    }
    case 'RefuseWithdrawal': {
      const { status, amountCents, currency } = withdrawalOf(state, command.data.withdrawalId);
      return status === 'asked'
        ? [{ type: 'WithdrawalRefused', data: { ...command.data, amountCents, currency } }]
        : [];
    }
    case 'RecordTransfer':
      return recordTransfer(command, state);
    case 'CancelWithdrawal':
      return cancelWithdrawal(command, state);
    case 'FailWithdrawal': {
      const { status, amountCents, currency } = withdrawalOf(state, command.data.withdrawalId);
      const data = { ...command.data, amountCents, currency };
      return maybePaid({ status }) ? [{ type: 'WithdrawalFailed', data }] : [];
    }
  }
}

function requestCheckout({ data }: commands.RequestCheckout, state: PaymentState): PaymentEvent[] {
  if (state.payments[data.paymentId]) {
    throw new AgonError('PAYMENTS.EXISTS', `There is a payment ${data.paymentId} already.`);
  }
  assertAmount(data.order.amountCents, data.order.currency);
  if (data.order.kind === 'plan') assertNoPlan(data.accountId, state);
  return [{ type: 'CheckoutRequested', data }];
}

/** Whoever pays at two pages pays for two plans, month by month. */
function assertNoPlan(accountId: string, { plan, payments }: PaymentState): void {
  if (plan && plan.status !== 'ended') {
    const message = `${accountId} is on the plan ${plan.planId}. End it before another one.`;
    throw new AgonError('PAYMENTS.PLAN_RUNS', message);
  }
  for (const { order, status } of Object.values(payments)) {
    if (order.kind !== 'plan' || (status !== 'requested' && status !== 'open')) continue;
    const page = `There is a page already on which the plan ${order.planId} can be paid, good for a day`;
    throw new AgonError('PAYMENTS.PLAN_CHECKOUT_OPEN', `${page}: "agon wallet payments ${accountId}".`);
  }
}

/** What is on its way back already, and not yet heard of, cannot be given back again. */
function requestRefund({ data }: commands.RequestRefund, state: PaymentState): PaymentEvent[] {
  const { accountId, paymentId, requestId, reason } = data;
  const payment = paymentOf(state, paymentId);
  if (payment.asked[requestId]) throw new AgonError('PAYMENTS.EXISTS', `There is a refund ${requestId} already.`);
  const { order, chargeId, status } = payment;
  if (status !== 'received' || !chargeId || order.kind === 'plan') {
    const why =
      order.kind === 'plan' ? "is for a plan: refund its invoice in the provider's dashboard" : `is ${status}`;
    throw new AgonError('PAYMENTS.NOT_REFUNDABLE', `Payment ${paymentId} ${why}.`);
  }
  const underWay = Object.values(payment.asked)
    .filter((asked) => asked.status === 'requested' || (asked.refundId && !payment.refunds[asked.refundId]))
    .reduce((sum, { amountCents }) => sum + amountCents, 0n);
  const available = left(payment) - underWay;
  const amountCents = data.amountCents === undefined ? available : BigInt(data.amountCents);
  if (amountCents <= 0n || amountCents > available) {
    const message = `${available} cents of payment ${paymentId} are left to be refunded, not ${amountCents}.`;
    throw new AgonError('PAYMENTS.REFUND_TOO_LARGE', message);
  }
  const idempotencyKey = `agon-refund-${requestId}`;
  const { currency } = order;
  const asked = { accountId, paymentId, requestId, amountCents: `${amountCents}`, currency };
  return [{ type: 'RefundRequested', data: { ...asked, chargeId, idempotencyKey, reason } }];
}

function isRefundOpen(state: PaymentState, { paymentId, requestId }: { paymentId: string; requestId: string }) {
  const asked = paymentOf(state, paymentId).asked[requestId];
  if (!asked) throw new AgonError('PAYMENTS.UNKNOWN', `There is no refund ${requestId} of payment ${paymentId}.`);
  return asked.status === 'requested';
}

function askWithdrawal({ data }: commands.AskWithdrawal, state: PaymentState): PaymentEvent[] {
  const { accountId, withdrawalId } = data;
  if (state.withdrawals[withdrawalId]) {
    throw new AgonError('PAYMENTS.EXISTS', `There is a withdrawal ${withdrawalId} already.`);
  }
  if (!state.payout?.enabled) {
    const why = state.payout ? 'is not ready to receive money' : 'does not exist';
    throw new AgonError(
      'PAYMENTS.NO_PAYOUT_ACCOUNT',
      `The payout account of ${accountId} ${why}. Set it up with "agon wallet onboard ${accountId}".`,
    );
  }
  if (isDisputed(state)) {
    throw new AgonError('PAYMENTS.DISPUTED', `A payment of ${accountId} is disputed. Withdraw when that is over.`);
  }
  assertAmount(data.amountCents, data.currency);
  return [{ type: 'WithdrawalAsked', data }];
}

/** Before its key was fixed nobody can have been asked to pay; afterwards the provider has to be asked whether it did. */
function cancelWithdrawal({ data }: commands.CancelWithdrawal, state: PaymentState): PaymentEvent[] {
  const { status, amountCents, currency } = withdrawalOf(state, data.withdrawalId);
  const ended = { ...data, amountCents, currency };
  if (status === 'asked') return [{ type: 'WithdrawalFailed', data: ended }];
  if (status === 'requested') return [{ type: 'WithdrawalStopped', data: ended }];
  if (status === 'stopped') return [];
  throw new AgonError('PAYMENTS.NOT_CANCELLABLE', `Withdrawal ${data.withdrawalId} is ${status}.`);
}

function recordTransfer({ data }: commands.RecordTransfer, state: PaymentState): PaymentEvent[] {
  const { accountId, withdrawalId, transferId } = data;
  const withdrawal = withdrawalOf(state, withdrawalId);
  const { amountCents, currency, status } = withdrawal;
  if (maybePaid(withdrawal)) {
    return [{ type: 'WithdrawalPaid', data: { accountId, withdrawalId, amountCents, currency, transferId } }];
  }
  if (status === 'paid' && withdrawal.transferId === transferId) return [];
  throw new AgonError(
    'PAYMENTS.OTHER_TRANSFER',
    `Withdrawal ${withdrawalId} is ${status}${withdrawal.transferId ? ` by ${withdrawal.transferId}` : ''}, and transfer ${transferId} turned up.`,
  );
}

function assertAmount(amountCents: string, currency: string): void {
  const { min, max } = CHECKOUT_CENTS;
  if (BigInt(amountCents) >= min && BigInt(amountCents) <= max) return;
  throw new AgonError('PAYMENTS.BAD_AMOUNT', `${amountCents} cents of ${currency} are not between ${min} and ${max}.`);
}

export const paymentDecider: Decider<PaymentState, PaymentCommand, PaymentEvent> = { initial, evolve, decide };
