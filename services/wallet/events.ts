import { z } from 'zod';
import { cents, currency, defineEvents, type EventOf, positiveCents, readable, slug, text } from '../kernel/index.js';

/** What an amount was for. */
export const purpose = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('match'), matchId: z.uuid(), seat: z.int().min(0) }),
  z.object({ kind: z.literal('other'), note: text(200) }),
]);

export const holdId = z.string().min(1).max(120);
const money = { accountId: slug, amountCents: positiveCents, currency };

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const walletEvents = defineEvents('wallet', {
  CreditsGranted: { version: 1, schema: z.object({ ...money, reason: readable(z.string().max(200)) }) },
  FundsHeld: { version: 1, schema: z.object({ ...money, holdId, purpose }) },
  HoldRefused: { version: 1, schema: z.object({ ...money, holdId, purpose, availableCents: cents }) },
  HoldPosted: { version: 1, schema: z.object({ ...money, holdId, purpose }) },
  HoldVoided: { version: 1, schema: z.object({ ...money, holdId, purpose }) },
  FundsCredited: { version: 1, schema: z.object({ ...money, purpose }) },
});

export type WalletEvent = EventOf<typeof walletEvents>;
export type Purpose = z.output<typeof purpose>;
