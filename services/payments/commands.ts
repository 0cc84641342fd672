import { z } from 'zod';
import { actsFor, cents, defineCommand, isStaff, positiveCents, slug } from '../kernel/index.js';
import { because, notice, order, providerId, realCurrency } from './events.js';

export const streamOf = (accountId: string) => `payments-${accountId}`;
const stream = (data: { accountId: string }) => streamOf(data.accountId);
const byOwner = (actor: Parameters<typeof actsFor>[0], data: { accountId: string }) =>
  actsFor(actor, data.accountId, 'admin');

const payment = { accountId: slug, paymentId: z.uuid() };
const withdrawal = { accountId: slug, withdrawalId: z.uuid() };

/** Asks for a page on which the owner can pay. Nothing is paid by asking. */
export class RequestCheckout extends defineCommand({
  type: 'RequestCheckout',
  data: z.object({ ...payment, order }),
  stream,
  allow: byOwner,
}) {}

export class RecordCheckout extends defineCommand({
  type: 'RecordCheckout',
  data: z.object({ ...payment, sessionId: providerId, url: z.url() }),
  stream,
  allow: isStaff,
}) {}

export class FailCheckout extends defineCommand({
  type: 'FailCheckout',
  data: z.object({ ...payment, reason: because }),
  stream,
  allow: isStaff,
}) {}

/** What came over the verified webhook. Nobody else may say that something was paid, operators neither. */
export class TakeNotice extends defineCommand({
  type: 'TakeNotice',
  data: z.object({ accountId: slug, notice }).refine((data) => data.accountId === data.notice.accountId),
  stream,
  allow: (actor) => actor.role === 'system',
}) {}

const refund = { ...payment, requestId: z.uuid() };

/** Gives a payment back the way it came, or a part of it. */
export class RequestRefund extends defineCommand({
  type: 'RequestRefund',
  data: z.object({ ...refund, amountCents: positiveCents.optional(), reason: because }),
  stream,
  allow: isStaff,
}) {}

export class RecordRefund extends defineCommand({
  type: 'RecordRefund',
  data: z.object({ ...refund, refundId: providerId }),
  stream,
  allow: isStaff,
}) {}

/** The provider has said for certain that it gave nothing back. */
export class RefuseRefund extends defineCommand({
  type: 'RefuseRefund',
  data: z.object({ ...refund, reason: because }),
  stream,
  allow: isStaff,
}) {}

export class EndPlan extends defineCommand({
  type: 'EndPlan',
  data: z.object({ accountId: slug }),
  stream,
  allow: byOwner,
}) {}

export class RequestPayoutAccount extends defineCommand({
  type: 'RequestPayoutAccount',
  data: z.object({ accountId: slug }),
  stream,
  allow: byOwner,
}) {}

export class RecordPayoutAccount extends defineCommand({
  type: 'RecordPayoutAccount',
  data: z.object({ accountId: slug, payoutAccountId: providerId }),
  stream,
  allow: isStaff,
}) {}

export class RefusePayoutAccount extends defineCommand({
  type: 'RefusePayoutAccount',
  data: z.object({ accountId: slug, reason: because }),
  stream,
  allow: isStaff,
}) {}

export class AskWithdrawal extends defineCommand({
  type: 'AskWithdrawal',
  data: z.object({ ...withdrawal, amountCents: positiveCents, currency: realCurrency }),
  stream,
  allow: byOwner,
}) {}

/** The wallet holds the money. */
export class ApproveWithdrawal extends defineCommand({
  type: 'ApproveWithdrawal',
  data: z.object(withdrawal),
  stream,
  allow: isStaff,
}) {}

export class RefuseWithdrawal extends defineCommand({
  type: 'RefuseWithdrawal',
  data: z.object({ ...withdrawal, reason: because, availableCents: cents }),
  stream,
  allow: isStaff,
}) {}

export class RecordTransfer extends defineCommand({
  type: 'RecordTransfer',
  data: z.object({ ...withdrawal, transferId: providerId }),
  stream,
  allow: isStaff,
}) {}

/** Stops a withdrawal that is not paid yet. Whether it was paid all the same is the provider's to say. */
export class CancelWithdrawal extends defineCommand({
  type: 'CancelWithdrawal',
  data: z.object({ ...withdrawal, reason: because }),
  stream,
  allow: isStaff,
}) {}

/** It is certain that the provider paid nothing, and will pay nothing. */
export class FailWithdrawal extends defineCommand({
  type: 'FailWithdrawal',
  data: z.object({ ...withdrawal, reason: because }),
  stream,
  allow: isStaff,
}) {}

export type PaymentCommand =
  | RequestCheckout
  | RecordCheckout
  | FailCheckout
  | TakeNotice
  | RequestRefund
  | RecordRefund
  | RefuseRefund
  | EndPlan
  | RequestPayoutAccount
  | RecordPayoutAccount
  | RefusePayoutAccount
  | AskWithdrawal
  | ApproveWithdrawal
  | RefuseWithdrawal
  | RecordTransfer
  | CancelWithdrawal
  | FailWithdrawal;
