import type { FastifyRequest } from 'fastify';
import { type Actor, AgonError, type CommandMeta, derivedId, newMeta } from '../../services/kernel/index.js';
import type { GatewayPorts } from '../ports.js';

/** What every resolver gets to know about a request. */
export interface RequestContext {
  readonly actor: Actor | undefined;
  /** A token was given, and it is none of ours. */
  readonly rejected: boolean;
  readonly idempotencyKey: string | undefined;
}

export function contextOf(ports: GatewayPorts, request: Pick<FastifyRequest, 'headers'>): RequestContext {
  const { authorization, 'idempotency-key': key } = request.headers;
  const idempotencyKey = Array.isArray(key) ? key[0] : key;
  const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1];
  const actor = token === undefined ? undefined : ports.actorOf(token);
  return { actor, rejected: authorization !== undefined && actor === undefined, idempotencyKey };
}

/**
 * The meta of a command that came through the gateway. A caller's Idempotency-Key becomes the command's id, per caller
 * and per command, so that a request sent twice is carried out once.
 */
export function metaOf(ports: GatewayPorts, context: RequestContext, commandType: string): CommandMeta {
  const { actor, rejected, idempotencyKey } = context;
  if (rejected) throw new AgonError('AUTH.UNAUTHENTICATED', 'The bearer token is not known here.');
  if (!actor) throw new AgonError('AUTH.UNAUTHENTICATED', 'This needs a bearer token in the Authorization header.');
  if (idempotencyKey !== undefined && (idempotencyKey.length < 1 || idempotencyKey.length > 200)) {
    throw new AgonError('QUERY.BAD_KEY', 'An Idempotency-Key has 1 to 200 characters.');
  }
  const id = idempotencyKey === undefined ? ports.ids() : derivedId('key', actor.id, commandType, idempotencyKey);
  return newMeta(actor, { id, clock: ports.clock });
}
