import { defineTable, type RowOf } from '../engine/table.js';

/** Money on its way in or out: a checkout or a withdrawal. */
export const payments = defineTable({
  name: 'payments',
  key: ['paymentId'],
  nullable: ['url'],
  indexes: { payments_by_account: ['accountId', 'position'] },
  columns: {
    paymentId: 'text',
    accountId: 'text',
    /** deposit, credits, plan or withdrawal. */
    kind: 'text',
    amountCents: 'numeric',
    currency: 'text',
    /**
     * requested, open, received, refund_requested, refund_refused, partly_refunded, refunded, disputed, charged_back, failed;
     * asked, requested, stopped, refused, paid, partly_reversed, reversed, failed.
     */
    status: 'text',
    /** What of it is not its owner's any more, by refunds and disputes that stand; of a withdrawal, what came back of it. */
    returnedCents: 'numeric',
    /** Where an open checkout is paid. */
    url: 'text',
    /** Why it failed, or what the provider calls it. */
    detail: 'text',
    requestedAt: 'timestamptz',
    updatedAt: 'timestamptz',
    position: 'int8',
  },
});
export type PaymentRow = RowOf<typeof payments>;

/** How an owner stands with the payment provider. */
export const payers = defineTable({
  name: 'payers',
  key: ['accountId'],
  nullable: ['payoutAccountId'],
  columns: {
    accountId: 'text',
    planId: 'text',
    /** incomplete, active, late, unpaid or ended. */
    planStatus: 'text',
    payoutAccountId: 'text',
    payoutsEnabled: 'bool',
    payoutDetail: 'text',
  },
});
export type PayerRow = RowOf<typeof payers>;

export const noPayer = (accountId: string): PayerRow => ({
  accountId,
  planId: 'free',
  planStatus: 'active',
  payoutAccountId: null,
  payoutsEnabled: false,
  payoutDetail: '',
});
