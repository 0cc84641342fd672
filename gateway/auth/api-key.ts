import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { type ApiKey, type KeyScope, ownerScopes, STAFF } from '../../services/accounts/index.js';
import { type Actor, AgonError, actsFor, isStaff } from '../../services/kernel/index.js';
import type { Directory } from './directory.js';
import type { Bearer } from './identity.js';

/** Whom a token speaks for, and in what. */
export interface Speaker {
  readonly actor: Actor;
  readonly keyId: string;
  readonly scopes: readonly KeyScope[];
  /** Undefined for all of the account's. */
  readonly agents: readonly string[] | undefined;
}

const FORM = /^agon_([a-z0-9-]{1,39})_([0-9a-f]{12})_([0-9a-f]{64})$/;

const hashOf = (secret: string) => createHash('sha256').update(secret).digest();

/** A new key: the text is shown once, and only the hash of its secret is kept. */
export function newApiKey(accountId: string): { keyId: string; text: string; secretHash: string } {
  const [keyId, secret] = [randomBytes(6).toString('hex'), randomBytes(32).toString('hex')];
  return { keyId, text: `agon_${accountId}_${keyId}_${secret}`, secretHash: hashOf(secret).toString('hex') };
}

/** What a key's text says; undefined when it is none. */
function keyIn(token: string): { accountId: string; keyId: string; secret: string } | undefined {
  const [, accountId = '', keyId = '', secret = ''] = FORM.exec(token) ?? [];
  return accountId === '' ? undefined : { accountId, keyId, secret };
}

const opens = (key: ApiKey | undefined, secret: string): key is ApiKey =>
  key !== undefined && !key.revoked && timingSafeEqual(hashOf(secret), Buffer.from(key.secretHash, 'hex'));

/** Whom an API key speaks for; undefined when it is none, or opens nothing any more. */
export async function bearerOfKey(directory: Pick<Directory, 'account'>, token: string): Promise<Bearer | undefined> {
  const given = keyIn(token);
  if (!given) return undefined;
  const { accountId, keyId, secret } = given;
  const key = (await directory.account(accountId)).keys[keyId];
  if (!opens(key, secret)) return undefined;
  return { actor: { id: accountId, role: 'owner' }, key: { keyId, scopes: key.scopes, agents: key.agents } };
}

/**
 * Who may read the whole log by this API key; undefined when it is none, or opens nothing any more. Its scope alone is not
 * enough: whoever left staff reads the log no longer, though nobody has thought of their keys.
 */
export async function logReaderOf(directory: Pick<Directory, 'account'>, token: string): Promise<Actor | undefined> {
  const { actor, key } = (await bearerOfKey(directory, token)) ?? {};
  if (!actor || !key) return undefined;
  if (!key.scopes.includes('log')) {
    throw new AgonError('AUTH.SCOPE', `The key ${key.keyId} has no scope "log", only ${key.scopes.join(', ')}.`);
  }
  const [holder, staff] = await Promise.all([directory.account(actor.id), directory.account(STAFF)]);
  if (actor.id !== STAFF && !(holder.joined.includes(STAFF) && staff.members[actor.id])) {
    throw new AgonError('AUTH.FORBIDDEN', `The log is for those who run the arena, and ${actor.id} is not of them.`);
  }
  return { id: actor.id, role: 'auditor' };
}

/**
 * Who speaks by this token: an API key, somebody who signed in, or an operator. Looked up as over HTTP, so that a key
 * that was revoked a moment ago opens nothing any more, at no endpoint.
 */
export async function speakerOf(
  {
    actorOf,
    bearerOf,
  }: {
    actorOf(token: string): Actor | undefined;
    bearerOf(token: string): Promise<Bearer | undefined>;
  },
  token: string,
): Promise<Speaker> {
  const machine = actorOf(token);
  const { actor, key } = machine ? { actor: machine } : ((await bearerOf(token)) ?? {});
  if (actor && (isStaff(actor) || actor.role === 'owner')) {
    return { actor, ...(key ?? { keyId: '', scopes: ownerScopes, agents: undefined }) };
  }
  throw new AgonError('AUTH.UNAUTHENTICATED', 'This needs an API key that is known here and not revoked.');
}

export function assertScope({ scopes, keyId }: Speaker, scope: KeyScope): void {
  if (scopes.includes(scope)) return;
  throw new AgonError('AUTH.SCOPE', `The key ${keyId} has no scope "${scope}", only ${scopes.join(', ')}.`);
}

/** Who speaks for an account speaks for its agents; a key may name those of them that it speaks for. */
export function assertSpeaksFor({ actor, agents, keyId }: Speaker, agentId: string): void {
  const [ownerId = ''] = agentId.split('.');
  if (actsFor(actor, ownerId) && (agents === undefined || agents.includes(agentId))) return;
  const who = keyId === '' ? actor.id : `The key ${keyId}`;
  throw new AgonError('AUTH.FORBIDDEN', `${who} does not speak for ${agentId}.`);
}
