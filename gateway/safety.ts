import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Actor, AgonError, isStaff, type Rate } from '../services/kernel/index.js';
import { contextOf } from './auth/actor.js';
import type { GatewayPorts } from './ports.js';
import { problemOf } from './problem.js';

/** Before anybody is known: a household or an office may share an address, so this is the widest of all limits. */
const RATE_OF_ADDRESS: Rate = { perMinute: 1_200, burst: 2_400 };
const RATE_OF_STAFF: Rate = { perMinute: 6_000, burst: 12_000 };
/** What everybody has; a plan may raise it. */
const RATE_OF_OTHERS: Rate = { perMinute: 100, burst: 200 };

export interface SafetyOptions {
  /** How many proxies stand before the gateway. With none, callers on this machine are not limited by address. */
  readonly proxies: number;
}

/** What holds for every request over HTTP, whatever it asks for: who may come how often, and what browsers may do. */
export function guard(fastify: FastifyInstance, ports: GatewayPorts, { proxies }: SafetyOptions): void {
  fastify.addHook('onRequest', async (request, reply) => {
    secure(request, reply);
    if (isProbe(request)) return;
    const taken = await takeOne(ports, request, proxies);
    if (taken.ok) {
      if (taken.left !== undefined) reply.header('ratelimit-remaining', taken.left);
      return;
    }
    const seconds = Math.ceil(taken.retryAfterMs / 1000);
    const text = `This is more than ${taken.who} may ask for at once. Try again in ${seconds} s.`;
    const problem = problemOf(new AgonError('LIMITS.EXCEEDED', text, { retryAfterMs: taken.retryAfterMs }));
    reply.header('retry-after', seconds).status(problem.status).type('application/problem+json');
    return reply.send(problem);
  });
}

type Outcome =
  | { readonly ok: true; readonly left?: number }
  | { readonly ok: false; readonly retryAfterMs: number; readonly who: string };

/** The address first, so that guessing tokens is slow as well. */
async function takeOne(ports: GatewayPorts, request: FastifyRequest, proxies: number): Promise<Outcome> {
  if (proxies > 0 || !isLoopback(request.ip)) {
    const taken = await ports.limits.take(`address:${request.ip}`, RATE_OF_ADDRESS);
    if (!taken.ok) return { ...taken, who: 'one address' };
  }
  const { actor } = contextOf(ports, request);
  if (!actor) return { ok: true };
  const taken = await ports.limits.take(`actor:${actor.id}`, rateOf(actor));
  return taken.ok ? taken : { ...taken, who: actor.id };
}

const rateOf = (actor: Actor): Rate => (isStaff(actor) ? RATE_OF_STAFF : RATE_OF_OTHERS);

const isLoopback = (address: string) => /^(::ffff:)?127\.|^::1$/.test(address);

const isProbe = ({ url }: FastifyRequest) => /^\/(healthz|readyz|metrics)(\?|$)/.test(url);

/** GraphiQL brings scripts of its own from elsewhere; nothing else here is a page. */
function secure({ url }: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-content-type-options', 'nosniff');
  reply.header('referrer-policy', 'no-referrer');
  reply.header('x-frame-options', 'DENY');
  reply.header('cross-origin-resource-policy', 'same-origin');
  if (!url.startsWith('/graphiql')) {
    reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'");
  }
}
