import { z } from 'zod';
import { chosen, defineEvents, type EventOf, memberRoles, notChosen, slug, version1 } from '../kernel/index.js';

/** What a key may do for its owner: play and queue, register and submit agents, or look at matches. */
export const ownerScopes = ['play', 'submit', 'read'] as const;
/** And in the hands of those who run the arena: read the log itself, with everybody's events. */
export const keyScopes = [...ownerScopes, 'log'] as const;
export const apiKeyId = z.string().regex(/^[0-9a-f]{12}$/, 'must be 12 hex digits');
export const secretHash = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex');
export const memberRole = z.enum(memberRoles);
export const factor = z.enum(['password', 'totp']);
const person = { accountId: slug, personId: z.uuid() };
const issuer = notChosen('is the address of an identity provider', z.string().max(500));
const joined = { accountId: slug, organisationId: slug };

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
    version: 2,
    schema: z.object({
      accountId: slug,
      keyId: apiKeyId,
      name: z.string().max(80),
      scopes,
      /** Only for these agents; for all of the owner's when left out. */
      agents: z.array(z.string()).min(1).optional(),
      secretHash,
    }),
    /** Version 2 knows one scope more. */
    upcast: { 1: (data) => data },
  },
  ApiKeyRevoked: version1({ accountId: slug, keyId: apiKeyId, reason: z.string().max(200) }),
  /** Somebody can sign in. Who that is stands in the vault, under an id that means nothing once it is emptied. */
  PersonEnrolled: version1({ ...person, accountId: chosen('name', slug) }),
  PasswordChanged: version1(person),
  TotpEnabled: version1(person),
  TotpDisabled: version1(person),
  /** Who vouches for the person from now on; as whom is in the vault. */
  IdentityLinked: version1({ ...person, issuer }),
  IdentityUnlinked: version1({ ...person, issuer }),
  /** The first of a minute: whoever guesses shall not be able to fill the log. */
  SignInRefused: version1({ accountId: slug, factor, at: z.iso.datetime() }),
  SessionsEnded: version1({
    accountId: slug,
    reason: notChosen('is shown to the account and to staff alone', z.string().max(200)),
  }),
  PersonErased: version1(person),
  MemberSet: version1({ accountId: slug, memberId: slug, role: memberRole }),
  MemberRemoved: version1({ accountId: slug, memberId: slug }),
  /** The member's half of a membership. Of an account, not of an organisation. */
  OrganisationJoined: version1(joined),
  OrganisationLeft: version1(joined),
});

export type AccountEvent = EventOf<typeof accountEvents>;
export type ApiKeyIssued = Extract<AccountEvent, { type: 'ApiKeyIssued' }>;
export type KeyScope = (typeof keyScopes)[number];
