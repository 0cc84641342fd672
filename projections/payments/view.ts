import { formatMoney, type RecordedEvent } from '../../services/kernel/index.js';
import type { PaymentEvent } from '../../services/payments/index.js';
import { type Change, changing, defineView, type Rows } from '../engine/view.js';
import { noPayer, type PayerRow, type PaymentRow, payers, payments } from './table.js';

const changed = <Data>(idOf: (data: Data) => string, change: Change<Data, PaymentRow>) =>
  changing<Data, PaymentRow>(payments, idOf, (data, row, updatedAt) => ({
    updatedAt,
    ...change(data, row, updatedAt),
  }));

const payment = <Data extends { paymentId: string }>(change: Change<Data, PaymentRow>) =>
  changed(({ paymentId }: Data) => paymentId, change);

const withdrawal = <Data extends { withdrawalId: string }>(change: Change<Data, PaymentRow>) =>
  changed(({ withdrawalId }: Data) => withdrawalId, change);

/** How a payment stands that nothing is going on about. */
const refundStatus = ({ amountCents, returnedCents }: Pick<PaymentRow, 'amountCents' | 'returnedCents'>): string => {
  if (returnedCents === 0n) return 'received';
  return returnedCents < amountCents ? 'partly_refunded' : 'refunded';
};

const BANK = ['disputed', 'charged_back'];

/** What a bank says of a payment is more than what refunds make of it. */
const refunded = (row: PaymentRow, returnedCents: bigint): Partial<PaymentRow> => ({
  returnedCents,
  status: BANK.includes(row.status) ? row.status : refundStatus({ ...row, returnedCents }),
});

/** Refunds and disputes may want more than was paid; what each took of it is what counts. */
const withTaken = ({ returnedCents }: PaymentRow, { taken }: { taken: readonly { amountCents: string }[] }): bigint =>
  taken.reduce((sum, part) => sum + BigInt(part.amountCents), returnedCents);

const moneyOf = (cents: string, { currency }: PaymentRow) => `${formatMoney(BigInt(cents))} ${currency}`;

const payer = <Data extends { accountId: string }>(change: Change<Data, PayerRow>) =>
  changing(
    payers,
    ({ accountId }: Data) => accountId,
    change,
    ({ accountId }) => noPayer(accountId),
  );

const requested = (
  event: RecordedEvent,
  rows: Rows,
  row: Omit<PaymentRow, 'requestedAt' | 'updatedAt' | 'position' | 'url' | 'returnedCents'>,
) =>
  rows.put(payments, {
    ...row,
    url: null,
    returnedCents: 0n,
    requestedAt: event.time,
    updatedAt: event.time,
    position: BigInt(event.position),
  });

/** What people see of their payments, withdrawals and plans. Nobody's money depends on it. */
export const paymentsView = defineView<PaymentEvent>({
  name: 'payments',
  version: 2,
  tables: [payments, payers],
  on: {
    CheckoutRequested: {
      apply: (event, rows) => {
        const { accountId, paymentId, order } = event.data;
        const { kind, currency } = order;
        const amountCents = BigInt(order.amountCents);
        requested(event, rows, { paymentId, accountId, kind, amountCents, currency, status: 'requested', detail: '' });
      },
    },
    CheckoutOpened: payment((data) => ({ status: 'open', url: data.url, detail: data.sessionId })),
    CheckoutFailed: payment((data) => ({ status: 'failed', url: null, detail: data.reason })),
    PaymentReceived: payment((data) => ({ status: 'received', url: null, detail: data.chargeId })),
    PaymentRefunded: payment((data, row) => ({
      ...refunded(row, withTaken(row, data)),
      detail: `${data.refundId}: ${moneyOf(data.amountCents, row)}`,
    })),
    RefundRequested: payment((data, row) => ({
      status: BANK.includes(row.status) ? row.status : 'refund_requested',
      detail: `${moneyOf(data.amountCents, row)}: ${data.reason}`,
    })),
    RefundRefused: payment((data) => ({ status: 'refund_refused', detail: data.reason })),
    RefundFailed: payment((data, row) => ({
      ...refunded(row, row.returnedCents - BigInt(data.returnedCents)),
      detail: `${data.refundId} failed`,
    })),
    DisputeOpened: payment((data, row) => ({
      status: 'disputed',
      returnedCents: withTaken(row, data),
      detail: `${data.disputeId}: ${moneyOf(data.amountCents, row)}`,
    })),
    DisputeWon: payment((data, row) => {
      const returnedCents = row.returnedCents - BigInt(data.returnedCents);
      return { returnedCents, status: refundStatus({ ...row, returnedCents }), detail: `${data.disputeId} won` };
    }),
    DisputeLost: payment((data, row) => ({
      status: 'charged_back',
      detail: `${data.disputeId}: ${moneyOf(data.amountCents, row)}`,
    })),
    WithdrawalAsked: {
      apply: (event, rows) => {
        const { accountId, withdrawalId: paymentId, currency } = event.data;
        const amountCents = BigInt(event.data.amountCents);
        const row = { paymentId, accountId, kind: 'withdrawal', amountCents, currency, status: 'asked', detail: '' };
        requested(event, rows, row);
      },
    },
    WithdrawalRequested: withdrawal((data) => ({ status: 'requested', detail: data.payoutAccountId })),
    WithdrawalStopped: withdrawal((data) => ({ status: 'stopped', detail: data.reason })),
    WithdrawalRefused: withdrawal((data) => ({ status: 'refused', detail: data.reason })),
    WithdrawalPaid: withdrawal((data) => ({ status: 'paid', detail: data.transferId })),
    WithdrawalReversed: withdrawal((data, row) => ({
      status: BigInt(data.totalCents) < row.amountCents ? 'partly_reversed' : 'reversed',
      returnedCents: BigInt(data.totalCents),
      detail: `${data.transferId}: ${moneyOf(data.totalCents, row)}`,
    })),
    WithdrawalFailed: withdrawal((data) => ({ status: 'failed', detail: data.reason })),
    PlanChanged: payer((data) => ({ planId: data.planId, planStatus: data.status })),
    PayoutAccountRequested: payer(() => ({ payoutDetail: 'requested' })),
    PayoutAccountOpened: payer((data) => ({ payoutAccountId: data.payoutAccountId, payoutDetail: 'opened' })),
    PayoutAccountRefused: payer((data) => ({ payoutDetail: data.reason })),
    PayoutAccountChanged: payer((data) => ({
      payoutAccountId: data.payoutAccountId,
      payoutsEnabled: data.enabled,
      payoutDetail: data.enabled ? 'enabled' : 'not ready',
    })),
  },
});
