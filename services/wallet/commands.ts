import { z } from 'zod';
import { cents, defineCommand, isStaff, slug } from '../kernel/index.js';
import { holdId, walletEvents } from './events.js';

const stream = (data: { accountId: string }) => `wallet-${data.accountId}`;

export class GrantCredits extends defineCommand({
  type: 'GrantCredits',
  data: walletEvents.specs.CreditsGranted.schema,
  stream,
  allow: isStaff,
}) {}

export class HoldFunds extends defineCommand({
  type: 'HoldFunds',
  data: walletEvents.specs.FundsHeld.schema,
  stream,
  allow: isStaff,
}) {}

/** Ends a hold by taking the money, and credits what comes back, if anything, in the same breath. */
export class PostHold extends defineCommand({
  type: 'PostHold',
  data: z.object({ accountId: slug, holdId, payoutCents: cents }),
  stream,
  allow: isStaff,
}) {}

/** Ends a hold by giving the money back. */
export class VoidHold extends defineCommand({
  type: 'VoidHold',
  data: z.object({ accountId: slug, holdId }),
  stream,
  allow: isStaff,
}) {}

export type WalletCommand = GrantCredits | HoldFunds | PostHold | VoidHold;
