import type { FastifyRequest } from 'fastify';
import type { KeyScope } from '../../services/accounts/index.js';
import {
  type Actor,
  AgonError,
  actsFor,
  type Cause,
  type CommandMeta,
  derivedId,
  mayRead,
  newMeta,
} from '../../services/kernel/index.js';
import { causeOf, sawActor } from '../observe.js';
import type { GatewayPorts } from '../ports.js';
import type { ApiKeyOf } from './identity.js';
import type { Claims } from './tokens.js';

/** What every resolver gets to know about a request. */
export interface RequestContext {
  readonly actor: Actor | undefined;
  /** Of a person who signed in. */
  readonly claims?: Claims | undefined;
  /** Of an API key, which may do less than its owner. */
  readonly key?: ApiKeyOf | undefined;
  /** A token was given, and it is none of ours. */
  readonly rejected: boolean;
  readonly idempotencyKey: string | undefined;
  /** The request itself, as what its commands follow from. */
  readonly cause?: Cause | undefined;
}

type Ports = Pick<GatewayPorts, 'actorOf' | 'identities'>;
const KNOWN = Symbol('context');
type Request = Pick<FastifyRequest, 'headers'> & { [KNOWN]?: Promise<RequestContext> };

/** Who asks. Found out once a request, however many ask for it. */
export function contextOf(ports: Ports, request: Pick<FastifyRequest, 'headers'>): Promise<RequestContext> {
  const carrier = request as Request;
  carrier[KNOWN] ??= look(ports, request);
  return carrier[KNOWN];
}

async function look(ports: Ports, request: Request): Promise<RequestContext> {
  const { authorization, 'idempotency-key': key } = request.headers;
  const idempotencyKey = Array.isArray(key) ? key[0] : key;
  const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1];
  const bearer = token === undefined ? undefined : await bearerOf(ports, token);
  sawActor(request, bearer?.actor);
  const rejected = authorization !== undefined && bearer === undefined;
  return { actor: undefined, rejected, idempotencyKey, cause: causeOf(request), ...bearer };
}

async function bearerOf({ actorOf, identities }: Ports, token: string) {
  const actor = actorOf(token);
  return actor ? { actor } : identities.bearerOf(token);
}

/** What a key needs for what. Whatever is not named takes a person, or staff. */
const SCOPE_OF: Readonly<Partial<Record<string, KeyScope>>> = {
  SubmitAgent: 'submit',
  RegisterExternalAgent: 'submit',
  read: 'read',
};

/** Whoever asks, if they may ask for this at all. */
export function actorIn({ actor, rejected, key }: RequestContext, commandType: string): Actor {
  if (rejected) throw new AgonError('AUTH.UNAUTHENTICATED', 'The bearer token is not known here.');
  if (!actor) throw new AgonError('AUTH.UNAUTHENTICATED', 'This needs a bearer token in the Authorization header.');
  if (!key) return actor;
  const scope = SCOPE_OF[commandType];
  if (scope === undefined) throw new AgonError('AUTH.SCOPE', `An API key may not ${commandType}. Sign in for that.`);
  if (!key.scopes.includes(scope)) {
    throw new AgonError('AUTH.SCOPE', `The key ${key.keyId} has no scope "${scope}", only ${key.scopes.join(', ')}.`);
  }
  return actor;
}

/**
 * The meta of a command that came through the gateway. A caller's Idempotency-Key becomes the command's id, per caller
 * and per command, so that a request sent twice is carried out once.
 */
export function metaOf(
  ports: Pick<GatewayPorts, 'ids' | 'clock'>,
  context: RequestContext,
  commandType: string,
): CommandMeta {
  const actor = actorIn(context, commandType);
  const { idempotencyKey, cause } = context;
  if (idempotencyKey !== undefined && (idempotencyKey.length < 1 || idempotencyKey.length > 200)) {
    throw new AgonError('QUERY.BAD_KEY', 'An Idempotency-Key has 1 to 200 characters.');
  }
  const id = idempotencyKey === undefined ? ports.ids() : derivedId('key', actor.id, commandType, idempotencyKey);
  return newMeta(actor, { id, clock: ports.clock, cause });
}

/** Refuses to show what is somebody else's. */
export function assertMayRead(context: RequestContext, accountId: string): void {
  const actor = actorIn(context, 'read');
  if (mayRead(actor, accountId)) return;
  throw new AgonError('AUTH.FORBIDDEN', `${actor.role} ${actor.id} may not see what belongs to ${accountId}.`);
}

/** Whether `assertMayRead` would let it pass: for what is not there for those who may not see it. */
export function seesWhatIsOf(context: RequestContext, accountId: string): boolean {
  const { actor, rejected, key } = context;
  return !rejected && actor !== undefined && (key?.scopes.includes('read') ?? true) && mayRead(actor, accountId);
}

/** Refuses to act on an agent for which the caller, or the caller's key, does not speak. */
export function assertActsOn(context: RequestContext, agentId: string, commandType: string): void {
  const actor = actorIn(context, commandType);
  const [ownerId = ''] = agentId.split('.');
  if (actsFor(actor, ownerId) && (context.key?.agents?.includes(agentId) ?? true)) return;
  throw new AgonError('AUTH.FORBIDDEN', `${actor.role} ${actor.id} does not speak for ${agentId}.`);
}

/** Staff, and auditors where looking is all. */
export function assertStaffReads(context: RequestContext): void {
  const actor = actorIn(context, 'read');
  if (mayRead(actor, '')) return;
  throw new AgonError('AUTH.FORBIDDEN', `This is for those who run the arena, not for ${actor.role} ${actor.id}.`);
}
