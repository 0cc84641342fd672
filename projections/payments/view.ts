import { formatMoney, type RecordedEvent } from '../../services/kernel/index.js';
import type { PaymentEvent } from '../../services/payments/index.js';
import { rowRef } from '../engine/table.js';
import { defineView, type Rows } from '../engine/view.js';
import { noPayer, type PayerRow, type PaymentRow, payers, payments } from './table.js';

type DataOf<Type extends PaymentEvent['type']> = Extract<PaymentEvent, { type: Type }>['data'];

/** What a reaction gets to see of an event. */
interface Seen<Data> {
  readonly data: Data;
  readonly time: string;
}

type Fields<Data> = (data: Data, row: PaymentRow) => Partial<PaymentRow>;

/** An event that changes a row that is there. */
const changed = <Data>(idOf: (data: Data) => string, fields: Fields<Data>) => ({
  reads: ({ data }: Seen<Data>) => [rowRef(payments, idOf(data))],
  apply: ({ data, time }: Seen<Data>, rows: Rows) => {
    const row = rows.get(payments, idOf(data));
    if (row) rows.put(payments, { ...row, updatedAt: time, ...fields(data, row) });
  },
});

const payment = <Data extends { paymentId: string }>(fields: Fields<Data>) =>
  changed(({ paymentId }: Data) => paymentId, fields);

const withdrawal = <Data extends { withdrawalId: string }>(fields: Fields<Data>) =>
  changed(({ withdrawalId }: Data) => withdrawalId, fields);

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
const withTaken = ({ returnedCents }: PaymentRow, { taken }: Pick<DataOf<'PaymentRefunded'>, 'taken'>): bigint =>
  taken.reduce((sum, part) => sum + BigInt(part.amountCents), returnedCents);

const moneyOf = (cents: string, { currency }: PaymentRow) => `${formatMoney(BigInt(cents))} ${currency}`;

const payer = <Data extends { accountId: string }>(fields: (data: Data) => Partial<PayerRow>) => ({
  reads: ({ data }: Seen<Data>) => [rowRef(payers, data.accountId)],
  apply: ({ data }: Seen<Data>, rows: Rows) => {
    const before = rows.get(payers, data.accountId) ?? noPayer(data.accountId);
    rows.put(payers, { ...before, ...fields(data) });
  },
});

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
    CheckoutOpened: payment((data: DataOf<'CheckoutOpened'>) => ({
      status: 'open',
      url: data.url,
      detail: data.sessionId,
    })),
    CheckoutFailed: payment((data: DataOf<'CheckoutFailed'>) => ({ status: 'failed', url: null, detail: data.reason })),
    PaymentReceived: payment((data: DataOf<'PaymentReceived'>) => ({
      status: 'received',
      url: null,
      detail: data.chargeId,
    })),
    PaymentRefunded: payment((data: DataOf<'PaymentRefunded'>, row) => ({
      ...refunded(row, withTaken(row, data)),
      detail: `${data.refundId}: ${moneyOf(data.amountCents, row)}`,
    })),
    RefundRequested: payment((data: DataOf<'RefundRequested'>, row) => ({
      status: BANK.includes(row.status) ? row.status : 'refund_requested',
      detail: `${moneyOf(data.amountCents, row)}: ${data.reason}`,
    })),
    RefundRefused: payment((data: DataOf<'RefundRefused'>) => ({ status: 'refund_refused', detail: data.reason })),
    RefundFailed: payment((data: DataOf<'RefundFailed'>, row) => ({
      ...refunded(row, row.returnedCents - BigInt(data.returnedCents)),
      detail: `${data.refundId} failed`,
    })),
    DisputeOpened: payment((data: DataOf<'DisputeOpened'>, row) => ({
      status: 'disputed',
      returnedCents: withTaken(row, data),
      detail: `${data.disputeId}: ${moneyOf(data.amountCents, row)}`,
    })),
    DisputeWon: payment((data: DataOf<'DisputeWon'>, row) => {
      const returnedCents = row.returnedCents - BigInt(data.returnedCents);
      return { returnedCents, status: refundStatus({ ...row, returnedCents }), detail: `${data.disputeId} won` };
    }),
    DisputeLost: payment((data: DataOf<'DisputeLost'>, row) => ({
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
    WithdrawalRequested: withdrawal((data: DataOf<'WithdrawalRequested'>) => ({
      status: 'requested',
      detail: data.payoutAccountId,
    })),
    WithdrawalStopped: withdrawal((data: DataOf<'WithdrawalStopped'>) => ({ status: 'stopped', detail: data.reason })),
    WithdrawalRefused: withdrawal((data: DataOf<'WithdrawalRefused'>) => ({ status: 'refused', detail: data.reason })),
    WithdrawalPaid: withdrawal((data: DataOf<'WithdrawalPaid'>) => ({ status: 'paid', detail: data.transferId })),
    WithdrawalReversed: withdrawal((data: DataOf<'WithdrawalReversed'>, row) => ({
      status: BigInt(data.totalCents) < row.amountCents ? 'partly_reversed' : 'reversed',
      returnedCents: BigInt(data.totalCents),
      detail: `${data.transferId}: ${moneyOf(data.totalCents, row)}`,
    })),
    WithdrawalFailed: withdrawal((data: DataOf<'WithdrawalFailed'>) => ({ status: 'failed', detail: data.reason })),
    PlanChanged: payer((data: DataOf<'PlanChanged'>) => ({ planId: data.planId, planStatus: data.status })),
    PayoutAccountRequested: payer(() => ({ payoutDetail: 'requested' })),
    PayoutAccountOpened: payer((data: DataOf<'PayoutAccountOpened'>) => ({
      payoutAccountId: data.payoutAccountId,
      payoutDetail: 'opened',
    })),
    PayoutAccountRefused: payer((data: DataOf<'PayoutAccountRefused'>) => ({ payoutDetail: data.reason })),
    PayoutAccountChanged: payer((data: DataOf<'PayoutAccountChanged'>) => ({
      payoutAccountId: data.payoutAccountId,
      payoutsEnabled: data.enabled,
      payoutDetail: data.enabled ? 'enabled' : 'not ready',
    })),
  },
});
