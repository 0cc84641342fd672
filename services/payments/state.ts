import { AgonError } from '../kernel/index.js';
import type { Notice, Order, PaymentEvent, Subscription } from './events.js';

export interface Payment {
  readonly order: Order;
  readonly status: 'requested' | 'open' | 'failed' | 'received';
  /** What the provider calls it, once it was paid. */
  readonly chargeId?: string;
  /** Refunds that we asked for. */
  readonly asked: Readonly<Record<string, RefundRequest>>;
  readonly refunds: Readonly<Record<string, Claim<'counted' | 'failed'>>>;
  readonly disputes: Readonly<Record<string, Claim<'open' | 'won' | 'lost'>>>;
  /** What is left of it in the wallet, by deposit: the payment itself, and what came back since. */
  readonly deposits: Readonly<Record<string, bigint>>;
  /** Refunds and disputes that came before the payment itself. */
  readonly kept: readonly AfterPayment[];
}

interface RefundRequest {
  readonly amountCents: bigint;
  readonly status: 'requested' | 'made' | 'refused';
  readonly refundId?: string;
}

interface Claim<Stage> {
  readonly stage: Stage;
  readonly amountCents: bigint;
}

interface Withdrawal extends Omit<Extract<PaymentEvent, { type: 'WithdrawalAsked' }>['data'], 'accountId'> {
  readonly status: 'asked' | 'refused' | 'requested' | 'stopped' | 'paid' | 'failed';
  readonly transferId?: string;
  /** What came back of it. */
  readonly reversedCents?: bigint;
}

/** All that an owner and the payment provider have to do with each other. */
export interface PaymentState {
  readonly payments: Readonly<Record<string, Payment>>;
  readonly withdrawals: Readonly<Record<string, Withdrawal>>;
  readonly payout?: { readonly id?: string; readonly enabled: boolean; readonly asOfS: number };
  /** The subscription that counts. */
  readonly plan?: Subscription;
  /** Every subscription that there was, as it was last heard of. */
  readonly subscriptions: Readonly<Record<string, Subscription>>;
  /** Subscriptions whose end was asked for. */
  readonly planEndings: readonly string[];
  readonly invoices: readonly string[];
  /** Refunds and disputes of what was paid for plans. */
  readonly planClaims: Readonly<Record<string, 'taken' | 'returned'>>;
}

export type NoticeOf<Kind extends Notice['kind']> = Extract<Notice, { kind: Kind }>;
type AfterPayment = NoticeOf<'refund'> | NoticeOf<'dispute'>;

export const initial: PaymentState = {
  payments: {},
  withdrawals: {},
  subscriptions: {},
  planEndings: [],
  invoices: [],
  planClaims: {},
};

export function evolve(state: PaymentState, event: PaymentEvent): PaymentState {
  if (isOfPayment(event)) {
    const { paymentId } = event.data;
    const payment = evolvePayment(state.payments[paymentId], event);
    return payment ? { ...state, payments: { ...state.payments, [paymentId]: payment } } : state;
  }
  switch (event.type) {
    case 'PlanChanged':
      return { ...withSubscription(state, event.data), plan: event.data };
    case 'PlanNoted':
      return withSubscription(state, event.data);
    case 'PlanPaid':
      return { ...state, invoices: [...state.invoices, event.data.invoiceId] };
    case 'PlanPaymentTaken':
    case 'PlanPaymentReturned': {
      const stage = event.type === 'PlanPaymentTaken' ? 'taken' : 'returned';
      return { ...state, planClaims: { ...state.planClaims, [event.data.claimId]: stage } };
    }
    case 'PlanEndRequested':
      return { ...state, planEndings: [...state.planEndings, event.data.subscriptionId] };
    case 'PayoutAccountRequested':
      return { ...state, payout: NO_PAYOUT };
    case 'PayoutAccountRefused': {
      const { payout: _payout, ...rest } = state;
      return rest;
    }
    case 'PayoutAccountOpened':
      return { ...state, payout: { ...(state.payout ?? NO_PAYOUT), id: event.data.payoutAccountId } };
    case 'PayoutAccountChanged': {
      const { payoutAccountId: id, enabled, asOfS } = event.data;
      return { ...state, payout: { id, enabled, asOfS } };
    }
    case 'WithdrawalAsked': {
      const { accountId: _accountId, ...asked } = event.data;
      return withWithdrawal(state, { ...asked, status: 'asked' });
    }
    case 'WithdrawalRefused':
    case 'WithdrawalRequested':
    case 'WithdrawalStopped':
    case 'WithdrawalFailed':
      return changeWithdrawal(state, event.data.withdrawalId, { status: WITHDRAWAL_STATUS[event.type] });
    case 'WithdrawalPaid':
      return changeWithdrawal(state, event.data.withdrawalId, { status: 'paid', transferId: event.data.transferId });
    case 'WithdrawalReversed': {
      const { withdrawalId, totalCents } = event.data;
      return changeWithdrawal(state, withdrawalId, { reversedCents: BigInt(totalCents) });
    }
  }
}

export const NO_PAYOUT = { enabled: false, asOfS: 0 } as const;

const WITHDRAWAL_STATUS = {
  WithdrawalRefused: 'refused',
  WithdrawalRequested: 'requested',
  WithdrawalStopped: 'stopped',
  WithdrawalFailed: 'failed',
} as const;
const DISPUTE_STAGE = { DisputeOpened: 'open', DisputeWon: 'won', DisputeLost: 'lost' } as const;

type OfPayment = Extract<PaymentEvent, { data: { paymentId: string } }>;

const isOfPayment = (event: PaymentEvent): event is OfPayment => 'paymentId' in event.data;

/** Undefined for a payment that nobody asked for. */
function evolvePayment(payment: Payment | undefined, event: OfPayment): Payment | undefined {
  if (event.type === 'CheckoutRequested') {
    const nothing = { asked: {}, refunds: {}, disputes: {}, deposits: {}, kept: [] };
    return { order: event.data.order, status: 'requested', ...nothing };
  }
  if (!payment) return undefined;
  switch (event.type) {
    case 'CheckoutOpened':
      return { ...payment, status: 'open' };
    case 'CheckoutFailed':
      return { ...payment, status: 'failed' };
    case 'PaymentReceived': {
      const { paymentId, order, chargeId } = event.data;
      const deposits = { [paymentId]: BigInt(order.amountCents) };
      return { ...payment, status: 'received', chargeId, kept: [], deposits };
    }
    case 'RefundRequested':
      return withAsked(payment, event.data, { amountCents: BigInt(event.data.amountCents), status: 'requested' });
    case 'RefundMade':
      return withAsked(payment, event.data, { status: 'made', refundId: event.data.refundId });
    case 'RefundRefused':
      return withAsked(payment, event.data, { status: 'refused' });
    case 'NoticeKept':
      return { ...payment, kept: [...payment.kept, event.data.notice] };
    case 'PaymentRefunded':
    case 'RefundFailed': {
      const stage = event.type === 'RefundFailed' ? 'failed' : 'counted';
      const claim = { stage, amountCents: BigInt(event.data.amountCents) } as const;
      const refunds = { ...payment.refunds, [event.data.refundId]: claim };
      return { ...payment, refunds, deposits: moved(payment.deposits, event.data) };
    }
    case 'DisputeOpened':
    case 'DisputeWon':
    case 'DisputeLost': {
      const claim = { stage: DISPUTE_STAGE[event.type], amountCents: BigInt(event.data.amountCents) };
      const disputes = { ...payment.disputes, [event.data.disputeId]: claim };
      return { ...payment, disputes, deposits: moved(payment.deposits, event.data) };
    }
  }
}

type ClaimEvent = Extract<OfPayment, { data: { amountCents: string } }>;

function moved(deposits: Payment['deposits'], data: ClaimEvent['data']): Payment['deposits'] {
  if ('returnedCents' in data) return { ...deposits, [data.depositId]: BigInt(data.returnedCents) };
  const after: Record<string, bigint> = { ...deposits };
  if ('taken' in data) {
    for (const part of data.taken) after[part.depositId] = (after[part.depositId] ?? 0n) - BigInt(part.amountCents);
  }
  return after;
}

function withAsked(payment: Payment, { requestId }: { requestId: string }, change: Partial<RefundRequest>): Payment {
  const before = payment.asked[requestId] ?? { amountCents: 0n, status: 'requested' };
  return { ...payment, asked: { ...payment.asked, [requestId]: { ...before, ...change } } };
}

function withSubscription(state: PaymentState, heard: Subscription): PaymentState {
  const startedS = Math.min(heard.startedS, state.subscriptions[heard.subscriptionId]?.startedS ?? heard.startedS);
  return { ...state, subscriptions: { ...state.subscriptions, [heard.subscriptionId]: { ...heard, startedS } } };
}

const withWithdrawal = (state: PaymentState, withdrawal: Withdrawal): PaymentState => ({
  ...state,
  withdrawals: { ...state.withdrawals, [withdrawal.withdrawalId]: withdrawal },
});

function changeWithdrawal(state: PaymentState, withdrawalId: string, change: Partial<Withdrawal>): PaymentState {
  const withdrawal = state.withdrawals[withdrawalId];
  return withdrawal ? withWithdrawal(state, { ...withdrawal, ...change }) : state;
}

/** Money may be on its way back to whoever paid it in. A plan was never in the wallet. */
export const isDisputed = (state: PaymentState): boolean =>
  Object.values(state.payments).some(
    ({ order, disputes }) => order.kind !== 'plan' && Object.values(disputes).some(({ stage }) => stage === 'open'),
  );

/** The key of its transfer is fixed and nobody knows yet whether it was made. */
export const maybePaid = ({ status }: Pick<Withdrawal, 'status'>): boolean =>
  status === 'requested' || status === 'stopped';

export function paymentOf(state: PaymentState, paymentId: string): Payment {
  const payment = state.payments[paymentId];
  if (!payment) throw new AgonError('PAYMENTS.UNKNOWN', `There is no payment ${paymentId}.`);
  return payment;
}

export function withdrawalOf(state: PaymentState, withdrawalId: string): Withdrawal {
  const withdrawal = state.withdrawals[withdrawalId];
  if (!withdrawal) throw new AgonError('PAYMENTS.UNKNOWN', `There is no withdrawal ${withdrawalId}.`);
  return withdrawal;
}
