import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { type AccountEvent, type KeyScope, keyScopes, keysFrom } from '../../services/accounts/index.js';
import { type Actor, AgonError, type EventStore } from '../../services/kernel/index.js';

/** Whom a token speaks for, and in what. */
export interface Speaker {
  readonly actor: Actor;
  /** Undefined for an operator, who speaks for everybody. */
  readonly accountId: string | undefined;
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

/**
 * Who speaks by this token: an API key, or an operator's token. Read from the account's own events, so that a key that
 * was revoked a moment ago opens nothing any more.
 */
export async function speakerOf(
  { store, actorOf }: { store: Pick<EventStore, 'readStream'>; actorOf(token: string): Actor | undefined },
  token: string,
): Promise<Speaker> {
  const [, accountId = '', keyId = '', secret = ''] = FORM.exec(token) ?? [];
  if (accountId !== '') {
    const events = (await store.readStream(`account-${accountId}`)) as unknown as readonly AccountEvent[];
    const key = keysFrom(events)[keyId];
    if (key && !key.revoked && timingSafeEqual(hashOf(secret), Buffer.from(key.secretHash, 'hex'))) {
      const { scopes, agents } = key;
      return { actor: { id: accountId, role: 'owner' }, accountId, keyId, scopes, agents };
    }
  }
  const actor = actorOf(token);
  if (actor?.role === 'operator') {
    return { actor, accountId: undefined, keyId: '', scopes: keyScopes, agents: undefined };
  }
  throw new AgonError('AUTH.UNAUTHENTICATED', 'This needs an API key that is known here and not revoked.');
}

export function assertScope({ scopes, keyId }: Speaker, scope: KeyScope): void {
  if (scopes.includes(scope)) return;
  throw new AgonError('AUTH.SCOPE', `The key ${keyId} has no scope "${scope}", only ${scopes.join(', ')}.`);
}

/** A key speaks for the agents of its own account, or for those of them that it names. */
export function assertSpeaksFor({ accountId, agents, keyId }: Speaker, agentId: string): void {
  const mine = accountId === undefined || agentId.startsWith(`${accountId}.`);
  if (mine && (agents === undefined || agents.includes(agentId))) return;
  throw new AgonError('AUTH.FORBIDDEN', `The key ${keyId} does not speak for ${agentId}.`);
}
