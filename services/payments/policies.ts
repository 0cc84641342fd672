import { definePolicy, type EventOf, type Reaction } from '../kernel/index.js';
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
import type { Order, PaymentEvent, paymentEvents } from './events.js';

type Event<Type extends PaymentEvent['type']> = Extract<EventOf<typeof paymentEvents>, { type: Type }>;
type Taken = 'PaymentReceived' | 'PaymentRefunded' | 'RefundFailed' | 'DisputeOpened' | 'DisputeWon' | 'DisputeLost';

/** What an amount of money is worth in the wallet: itself, or its share of the credits that were bought with it. */
function worth(order: Order, amountCents: string) {
  const { currency } = order;
  if (order.kind !== 'credits') return { amountCents, currency };
  const whole = BigInt(order.amountCents);
  const credits = (BigInt(order.credits) * BigInt(amountCents)) / whole;
  return { amountCents: `${credits}`, currency: 'COMPUTE', paid: { amountCents, currency } };
}

function deposit(
  data: { accountId: string; order: Order },
  depositId: string,
  cents: string,
  atIso: string,
  meta: Reaction,
) {
  const { accountId, order } = data;
  const withdrawableAt =
    order.kind === 'deposit'
      ? { withdrawableAt: new Date(Date.parse(atIso) + order.clearingS * 1000).toISOString() }
      : {};
  return new DepositFunds({ accountId, depositId, ...worth(order, cents), ...withdrawableAt }, meta(0));
}

const freezeOf = (accountId: string, disputeId: string) => ({ accountId, reason: `dispute ${disputeId}` });

const unfreeze = ({ accountId, disputeId, othersOpen }: Event<'DisputeWon'>['data'], meta: Reaction) =>
  othersOpen > 0 ? [] : [new UnfreezeWallet(freezeOf(accountId, disputeId), meta(1))];

/** What was paid is in the wallet; what was refunded or charged back is not; what came back is there again. */
export const paidIn = definePolicy<Event<Taken>>(
  'payments.paid-in',
  ['PaymentReceived', 'PaymentRefunded', 'RefundFailed', 'DisputeOpened', 'DisputeWon', 'DisputeLost'],
  (event, meta) => {
    const { accountId, paymentId: depositId, order } = event.data;
    // A plan is paid for, not paid in: nothing of it was ever in the wallet.
    if (order.kind === 'plan') return [];
    switch (event.type) {
      case 'PaymentReceived':
        return [deposit(event.data, depositId, order.amountCents, event.time, meta)];
      case 'PaymentRefunded': {
        const { refundId: clawBackId, amountCents } = event.data;
        const reason = 'refund' as const;
        return [new ClawBackFunds({ accountId, depositId, clawBackId, reason, ...worth(order, amountCents) }, meta(0))];
      }
      case 'RefundFailed':
        return [deposit(event.data, `${event.data.refundId}:failed`, event.data.amountCents, event.time, meta)];
      case 'DisputeOpened': {
        const { disputeId: clawBackId, amountCents } = event.data;
        const reason = 'chargeback' as const;
        return [
          new ClawBackFunds({ accountId, depositId, clawBackId, reason, ...worth(order, amountCents) }, meta(0)),
          new FreezeWallet(freezeOf(accountId, clawBackId), meta(1)),
        ];
      }
      case 'DisputeWon': {
        const { disputeId, amountCents } = event.data;
        return [deposit(event.data, `${disputeId}:won`, amountCents, event.time, meta), ...unfreeze(event.data, meta)];
      }
      case 'DisputeLost':
        return unfreeze(event.data, meta);
    }
  },
);

const withdrawalHoldId = (withdrawalId: string) => `withdrawal:${withdrawalId}`;

type Step =
  | Event<'WithdrawalAsked' | 'WithdrawalPaid' | 'WithdrawalFailed'>
  | Extract<WalletEvent, { type: 'FundsHeld' | 'HoldRefused' }>;

/** Held when it is asked for, posted when it is paid, given back when it cannot be. */
export const withdrawals = definePolicy<Step>(
  'payments.withdrawals',
  ['WithdrawalAsked', 'FundsHeld', 'HoldRefused', 'WithdrawalPaid', 'WithdrawalFailed'],
  ({ type, data }, meta) => {
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
      case 'WithdrawalFailed':
        return [new VoidHold({ accountId, holdId: withdrawalHoldId(data.withdrawalId) }, meta(0))];
    }
  },
);
