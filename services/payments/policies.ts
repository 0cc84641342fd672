import { definePolicy, type Reaction } from '../kernel/index.js';
import {
  ClawBackFunds,
  DepositFunds,
  FreezeWallet,
  HoldFunds,
  PostHold,
  UnfreezeWallet,
  VoidHold,
  type WalletEvent,
} from '../wallet/index.js';
import { ApproveWithdrawal, RefuseWithdrawal } from './commands.js';
import type { Order, PaymentEvent } from './events.js';

type Event<Type extends PaymentEvent['type']> = Extract<PaymentEvent, { type: Type }>;

/** What an amount of money is worth in the wallet: itself, or its share of the credits that were bought with it. */
function worth(order: Order, amountCents: string) {
  const { currency } = order;
  if (order.kind !== 'credits') return { amountCents, currency };
  const whole = BigInt(order.amountCents);
  const credits = (BigInt(order.creditCents) * BigInt(amountCents)) / whole;
  return { amountCents: `${credits}`, currency: 'COMPUTE', paid: { amountCents, currency } };
}

function deposit(
  { accountId, order }: { accountId: string; order: Order },
  depositId: string,
  cents: string,
  atIso: string,
  meta: Reaction,
) {
  const amount = worth(order, cents);
  if (amount.amountCents === '0') return [];
  const clearsAt = (clearingS: number) => new Date(Date.parse(atIso) + clearingS * 1000).toISOString();
  const withdrawableAt = order.kind === 'deposit' ? { withdrawableAt: clearsAt(order.clearingS) } : {};
  return [new DepositFunds({ accountId, depositId, ...amount, ...withdrawableAt }, meta(0))];
}

function clawBack(
  { accountId, order, taken }: Event<'PaymentRefunded' | 'DisputeOpened'>['data'],
  clawBackId: string,
  reason: 'refund' | 'chargeback',
  meta: Reaction,
) {
  return taken.flatMap(({ depositId, amountCents }, index) => {
    const amount = worth(order, amountCents);
    if (amount.amountCents === '0') return [];
    return [new ClawBackFunds({ accountId, depositId, clawBackId, reason, ...amount }, meta(index + 1))];
  });
}

/** Every dispute has a freeze of its own, so that the end of one lifts neither another's nor an operator's. */
const freezeOf = ({ accountId, disputeId }: Event<'DisputeLost'>['data']) => ({
  accountId,
  disputeId,
  reason: `dispute ${disputeId}`,
});

const unfreeze = (data: Event<'DisputeLost'>['data'], meta: Reaction) => [new UnfreezeWallet(freezeOf(data), meta(1))];

const CLAIMS = ['PaymentRefunded', 'RefundFailed', 'DisputeOpened', 'DisputeWon', 'DisputeLost'] as const;

/** What was paid is in the wallet; what was refunded or charged back is not; what came back is there again. */
export const paidIn = definePolicy<Event<'PaymentReceived' | (typeof CLAIMS)[number]>>(
  'payments.paid-in',
  ['PaymentReceived', ...CLAIMS],
  ({ type, data, time }, meta) => {
    // A plan is paid for, not paid in: nothing of it was ever in the wallet.
    if (data.order.kind === 'plan') return [];
    switch (type) {
      case 'PaymentReceived':
        return deposit(data, data.paymentId, data.order.amountCents, time, meta);
      case 'PaymentRefunded':
        return clawBack(data, data.refundId, 'refund', meta);
      case 'RefundFailed':
        return deposit(data, data.depositId, data.returnedCents, time, meta);
      case 'DisputeOpened': {
        const freeze = new FreezeWallet(freezeOf(data), meta(0));
        return [freeze, ...clawBack(data, data.disputeId, 'chargeback', meta)];
      }
      case 'DisputeWon':
        return [...deposit(data, data.depositId, data.returnedCents, time, meta), ...unfreeze(data, meta)];
      case 'DisputeLost':
        return unfreeze(data, meta);
    }
  },
);

const withdrawalHoldId = (withdrawalId: string) => `withdrawal:${withdrawalId}`;

type Step =
  | Event<'WithdrawalAsked' | 'WithdrawalPaid' | 'WithdrawalReversed' | 'WithdrawalFailed'>
  | Extract<WalletEvent, { type: 'FundsHeld' | 'HoldRefused' }>;

/** Held when it is asked for, posted when it is paid, given back when it cannot be or when it came back. */
export const withdrawals = definePolicy<Step>(
  'payments.withdrawals',
  ['WithdrawalAsked', 'FundsHeld', 'HoldRefused', 'WithdrawalPaid', 'WithdrawalReversed', 'WithdrawalFailed'],
  ({ type, data, time }, meta) => {
    const { accountId } = data;
    switch (type) {
      case 'WithdrawalAsked': {
        const { withdrawalId, amountCents, currency } = data;
        const purpose = { kind: 'withdrawal', withdrawalId } as const;
        const holdId = withdrawalHoldId(withdrawalId);
        return [new HoldFunds({ accountId, holdId, amountCents, currency, purpose }, meta(0))];
      }
      case 'FundsHeld':
        if (data.purpose.kind !== 'withdrawal') return [];
        return [new ApproveWithdrawal({ accountId, withdrawalId: data.purpose.withdrawalId }, meta(0))];
      case 'HoldRefused': {
        if (data.purpose.kind !== 'withdrawal') return [];
        const { availableCents, reason } = data;
        const { withdrawalId } = data.purpose;
        return [new RefuseWithdrawal({ accountId, withdrawalId, reason, availableCents }, meta(0))];
      }
      case 'WithdrawalPaid':
        return [new PostHold({ accountId, holdId: withdrawalHoldId(data.withdrawalId), payoutCents: '0' }, meta(0))];
      case 'WithdrawalReversed': {
        // It could be withdrawn before, and can be again.
        const { amountCents, currency, transferId, totalCents } = data;
        const depositId = `${transferId}:reversed:${totalCents}`;
        return [new DepositFunds({ accountId, depositId, amountCents, currency, withdrawableAt: time }, meta(0))];
      }
      case 'WithdrawalFailed':
        return [new VoidHold({ accountId, holdId: withdrawalHoldId(data.withdrawalId) }, meta(0))];
    }
  },
);
