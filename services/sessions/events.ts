import { z } from 'zod';
import { defineEvents, type EventOf, slug, version1 } from '../kernel/index.js';

export const sessionId = z.string().regex(/^[0-9a-f]{32}$/, 'must be 32 hex digits');
export const tokenHash = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex');
/** How somebody proved who they are, in the words of RFC 8176; oidc when another vouched. */
const method = z.enum(['pwd', 'otp', 'oidc']);
const session = { sessionId, accountId: slug };

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const sessionEvents = defineEvents('sessions', {
  SessionOpened: version1({
    ...session,
    /** The account's epoch: the session is over when that moves on. */
    epoch: z.int().min(0),
    methods: z.array(method).min(1).max(3),
    /** SHA-256 of the refresh token: 256 random bits need no slow hash. */
    tokenHash,
    expiresAt: z.iso.datetime(),
  }),
  SessionRefreshed: version1({ ...session, tokenHash }),
  SessionEnded: version1({ ...session, reason: z.enum(['signed-out', 'token-reused']) }),
});

export type SessionEvent = EventOf<typeof sessionEvents>;
export type Method = z.output<typeof method>;
