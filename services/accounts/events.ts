import { z } from 'zod';
import { defineEvents, type EventOf, slug } from '../kernel/index.js';

/** What a key may do: play and queue, register and submit agents, or look at matches. */
export const keyScopes = ['play', 'submit', 'read'] as const;
export const apiKeyId = z.string().regex(/^[0-9a-f]{12}$/, 'must be 12 hex digits');
export const secretHash = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex');
export const scopes = z.array(z.enum(keyScopes)).min(1).max(keyScopes.length);

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const accountEvents = defineEvents('accounts', {
  OwnerRegistered: {
    version: 1,
    // A public handle and a public name only: what is personal must be erasable, and the log is not.
    schema: z.object({ accountId: slug, displayName: z.string().min(1).max(80) }),
  },
  /** The secret itself is shown once and kept nowhere: 256 random bits need no slow hash. */
  ApiKeyIssued: {
    version: 1,
    schema: z.object({
      accountId: slug,
      keyId: apiKeyId,
      name: z.string().max(80),
      scopes,
      /** Only for these agents; for all of the owner's when left out. */
      agents: z.array(z.string()).min(1).optional(),
      secretHash,
    }),
  },
  ApiKeyRevoked: {
    version: 1,
    schema: z.object({ accountId: slug, keyId: apiKeyId, reason: z.string().max(200) }),
  },
});

export type AccountEvent = EventOf<typeof accountEvents>;
export type ApiKeyIssued = Extract<AccountEvent, { type: 'ApiKeyIssued' }>;
export type KeyScope = (typeof keyScopes)[number];
