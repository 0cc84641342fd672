import type { RecordedEvent } from '../../services/kernel/index.js';
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

const change = (rows: Rows, paymentId: string, at: string, fields: Partial<PaymentRow>) => {
  const row = rows.get(payments, paymentId);
  if (row) rows.put(payments, { ...row, updatedAt: at, ...fields });
};

/** An event that changes a payment that is there. */
const payment = <Data extends { paymentId: string }>(fields: (data: Data) => Partial<PaymentRow>) => ({
  reads: ({ data }: Seen<Data>) => [rowRef(payments, data.paymentId)],
  apply: ({ data, time }: Seen<Data>, rows: Rows) => change(rows, data.paymentId, time, fields(data)),
});

const withdrawal = <Data extends { withdrawalId: string }>(fields: (data: Data) => Partial<PaymentRow>) => ({
  reads: ({ data }: Seen<Data>) => [rowRef(payments, data.withdrawalId)],
  apply: ({ data, time }: Seen<Data>, rows: Rows) => change(rows, data.withdrawalId, time, fields(data)),
});

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
  row: Omit<PaymentRow, 'requestedAt' | 'updatedAt' | 'position' | 'url'>,
) =>
  rows.put(payments, {
    ...row,
    url: null,
    requestedAt: event.time,
    updatedAt: event.time,
    position: BigInt(event.position),
  });

/** What people see of their payments, withdrawals and plans. Nobody's money depends on it. */
export const paymentsView = defineView<PaymentEvent>({
  name: 'payments',
  version: 1,
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
    PaymentRefunded: payment((data: DataOf<'PaymentRefunded'>) => ({
      status: 'refunded',
      detail: `${data.refundId}: ${data.amountCents}`,
    })),
    RefundRequested: payment((data: DataOf<'RefundRequested'>) => ({
      status: 'refund_requested',
      detail: data.reason,
    })),
    RefundRefused: payment((data: DataOf<'RefundRefused'>) => ({ status: 'received', detail: data.reason })),
    RefundFailed: payment((data: DataOf<'RefundFailed'>) => ({
      status: 'received',
      detail: `${data.refundId} failed`,
    })),
    DisputeOpened: payment((data: DataOf<'DisputeOpened'>) => ({ status: 'disputed', detail: data.disputeId })),
    DisputeWon: payment((data: DataOf<'DisputeWon'>) => ({ status: 'received', detail: `${data.disputeId} won` })),
    DisputeLost: payment((data: DataOf<'DisputeLost'>) => ({ status: 'charged_back', detail: data.disputeId })),
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
    WithdrawalRefused: withdrawal((data: DataOf<'WithdrawalRefused'>) => ({ status: 'refused', detail: data.reason })),
    WithdrawalPaid: withdrawal((data: DataOf<'WithdrawalPaid'>) => ({ status: 'paid', detail: data.transferId })),
    WithdrawalReversed: withdrawal((data: DataOf<'WithdrawalReversed'>) => ({
      status: 'reversed',
      detail: `${data.transferId}: ${data.totalCents}`,
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
