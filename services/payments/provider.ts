import type { Notice, PaymentEvent } from './events.js';

type Of<Type extends PaymentEvent['type']> = Extract<PaymentEvent, { type: Type }>['data'];
export type CheckoutOrder = Of<'CheckoutRequested'>;
export type TransferOrder = Of<'WithdrawalRequested'>;
type RefundOrder = Omit<Of<'RefundRequested'>, 'currency' | 'reason'>;

/**
 * Who takes and pays real money for us. A call that may not have been carried out fails with PAYMENTS.NO_ANSWER and is
 * tried again; one that was refused for certain fails with PAYMENTS.PROVIDER_REFUSED and is not.
 */
export interface PaymentProvider {
  /** What to tell people, e.g. "Stripe, test mode". */
  readonly title: string;
  /** So long after it was begun, no call of ours is under way any more: what the provider does not know was not done. */
  readonly callMsMax: number;
  /** A page on which the order can be paid. The same payment gives the same page, as long as the provider remembers. */
  openCheckout(order: CheckoutOrder): Promise<{ sessionId: string; url: string }>;
  openPayoutAccount(accountId: string, idempotencyKey: string): Promise<{ payoutAccountId: string }>;
  /** A page, good for one visit, on which the owner of a payout account identifies themselves. */
  onboardingUrl(payoutAccountId: string): Promise<string>;
  /** The transfer of this withdrawal, if the provider has one. */
  findTransfer(withdrawalId: string): Promise<{ transferId: string } | undefined>;
  createTransfer(order: TransferOrder): Promise<{ transferId: string }>;
  /** The refund of this request, if the provider has one. */
  findRefund(order: RefundOrder): Promise<{ refundId: string } | undefined>;
  createRefund(order: RefundOrder): Promise<{ refundId: string }>;
  endPlan(subscriptionId: string): Promise<void>;
  /**
   * What a webhook says. Undefined when it is authentic and none of our business; refused with PAYMENTS.BAD_SIGNATURE or
   * PAYMENTS.BAD_TIMESTAMP when it is not authentic.
   */
  readWebhook(body: Buffer, signature: string): Promise<{ eventId: string; notice: Notice | undefined }>;
}
