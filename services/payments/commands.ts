import { z } from 'zod';
import { actsFor, cents, commandsOn, isStaff, isSystem, positiveCents, slug } from '../kernel/index.js';
import { because, notice, order, providerId, realCurrency } from './events.js';

export const streamOf = (accountId: string) => `payments-${accountId}`;
const stream = (data: { accountId: string }) => streamOf(data.accountId);
const byOwner = commandsOn(stream, (actor, { accountId }) => actsFor(actor, accountId, 'admin'));
const byStaff = commandsOn(stream, isStaff);
const bySystem = commandsOn(stream, isSystem);

const payment = { accountId: slug, paymentId: z.uuid() };
const withdrawal = { accountId: slug, withdrawalId: z.uuid() };

/** Asks for a page on which the owner can pay. Nothing is paid by asking. */
export class RequestCheckout extends byOwner('RequestCheckout', z.object({ ...payment, order })) {}

export class RecordCheckout extends byStaff(
  'RecordCheckout',
  z.object({ ...payment, sessionId: providerId, url: z.url() }),
) {}

export class FailCheckout extends byStaff('FailCheckout', z.object({ ...payment, reason: because })) {}

/** What came over the verified webhook. Nobody else may say that something was paid, operators neither. */
export class TakeNotice extends bySystem(
  'TakeNotice',
  z.object({ accountId: slug, notice }).refine((data) => data.accountId === data.notice.accountId),
) {}

const refund = { ...payment, requestId: z.uuid() };

/** Gives a payment back the way it came, or a part of it. */
export class RequestRefund extends byStaff(
  'RequestRefund',
  z.object({ ...refund, amountCents: positiveCents.optional(), reason: because }),
) {}

export class RecordRefund extends byStaff('RecordRefund', z.object({ ...refund, refundId: providerId })) {}

/** The provider has said for certain that it gave nothing back. */
export class RefuseRefund extends byStaff('RefuseRefund', z.object({ ...refund, reason: because })) {}
export class EndPlan extends byOwner('EndPlan', z.object({ accountId: slug })) {}
export class RequestPayoutAccount extends byOwner('RequestPayoutAccount', z.object({ accountId: slug })) {}

export class RecordPayoutAccount extends byStaff(
  'RecordPayoutAccount',
  z.object({ accountId: slug, payoutAccountId: providerId }),
) {}

export class RefusePayoutAccount extends byStaff(
  'RefusePayoutAccount',
  z.object({ accountId: slug, reason: because }),
) {}

export class AskWithdrawal extends byOwner(
  'AskWithdrawal',
  z.object({ ...withdrawal, amountCents: positiveCents, currency: realCurrency }),
) {}

/** The wallet holds the money. */
export class ApproveWithdrawal extends byStaff('ApproveWithdrawal', z.object(withdrawal)) {}

export class RefuseWithdrawal extends byStaff(
  'RefuseWithdrawal',
  z.object({ ...withdrawal, reason: because, availableCents: cents }),
) {}

export class RecordTransfer extends byStaff('RecordTransfer', z.object({ ...withdrawal, transferId: providerId })) {}

/** Stops a withdrawal that is not paid yet. Whether it was paid all the same is the provider's to say. */
export class CancelWithdrawal extends byStaff('CancelWithdrawal', z.object({ ...withdrawal, reason: because })) {}

/** It is certain that the provider paid nothing, and will pay nothing. */
export class FailWithdrawal extends byStaff('FailWithdrawal', z.object({ ...withdrawal, reason: because })) {}
