import { defineTable } from '../engine/table.js';

/** Money on its way in or out: a checkout or a withdrawal. */
export interface PaymentRow {
  readonly paymentId: string;
  readonly accountId: string;
  /** deposit, credits, plan or withdrawal. */
  readonly kind: string;
  readonly amountCents: bigint;
  readonly currency: string;
  /**
   * requested, open, received, refund_requested, refund_refused, partly_refunded, refunded, disputed, charged_back, failed;
   * asked, requested, stopped, refused, paid, partly_reversed, reversed, failed.
   */
  readonly status: string;
  /** What of it is not its owner's any more, by refunds and disputes that stand; of a withdrawal, what came back of it. */
  readonly returnedCents: bigint;
  /** Where an open checkout is paid. */
  readonly url: string | null;
  /** Why it failed, or what the provider calls it. */
  readonly detail: string;
  readonly requestedAt: string;
  readonly updatedAt: string;
  readonly position: bigint;
}

export const payments = defineTable<PaymentRow>({
  name: 'payments',
  key: ['paymentId'],
  nullable: ['url'],
  indexes: { payments_by_account: ['accountId', 'position'] },
  columns: {
    paymentId: 'text',
    accountId: 'text',
    kind: 'text',
    amountCents: 'numeric',
    currency: 'text',
    status: 'text',
    returnedCents: 'numeric',
    url: 'text',
    detail: 'text',
    requestedAt: 'timestamptz',
    updatedAt: 'timestamptz',
    position: 'int8',
  },
});

/** How an owner stands with the payment provider. */
export interface PayerRow {
  readonly accountId: string;
  readonly planId: string;
  /** incomplete, active, late, unpaid or ended. */
  readonly planStatus: string;
  readonly payoutAccountId: string | null;
  readonly payoutsEnabled: boolean;
  readonly payoutDetail: string;
}

export const payers = defineTable<PayerRow>({
  name: 'payers',
  key: ['accountId'],
  nullable: ['payoutAccountId'],
  columns: {
    accountId: 'text',
    planId: 'text',
    planStatus: 'text',
    payoutAccountId: 'text',
    payoutsEnabled: 'bool',
    payoutDetail: 'text',
  },
});

export const noPayer = (accountId: string): PayerRow => ({
  accountId,
  planId: 'free',
  planStatus: 'active',
  payoutAccountId: null,
  payoutsEnabled: false,
  payoutDetail: '',
});
