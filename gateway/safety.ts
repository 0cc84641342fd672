import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AgonError, isAgonError } from '../services/kernel/index.js';
import { assertStaffReads, contextOf } from './auth/actor.js';
import { assertWithin, bucketOf, callerAt, isLocal, RATES, rateOf } from './caller.js';
import type { GatewayPorts } from './ports.js';
import { problemOf, sendProblem } from './problem.js';

export interface SafetyOptions {
  /** How many proxies stand before the gateway. With none, callers on this machine are not limited by address. */
  readonly proxies: number;
  readonly connectionsMax?: number;
  readonly answerMs?: number;
}

const CONNECTIONS_MAX = 8_192;
/** Longer than any answer takes, an upload that drips included. What has no end, as a feed, is not waited for here. */
const ANSWER_MS = 60_000;

/** What holds for every request over HTTP, whatever it asks for: who may come how often, and what browsers may do. */
export function guard(fastify: FastifyInstance, ports: GatewayPorts, options: SafetyOptions): void {
  const { proxies, connectionsMax = CONNECTIONS_MAX, answerMs = ANSWER_MS } = options;
  fastify.server.maxConnections = connectionsMax;
  fastify.addHook('onRequest', (request, reply, done) => {
    secure(request, reply);
    limitTime(reply, answerMs);
    if (isFree(request, proxies)) return done();
    const judged = takeOne(ports, request, reply, proxies).then(() => assertSeesFigures(ports, request, proxies));
    judged.then(
      () => done(),
      (error: unknown) => (isRefusal(error) ? sendProblem(reply, problemOf(error)) : done(error as Error)),
    );
  });
}

/** Whoever asked is told that it takes too long; what still comes of it is thrown away. */
function limitTime(reply: FastifyReply, withinMs: number): void {
  const timer = setTimeout(() => {
    if (reply.sent || reply.raw.headersSent) return;
    const late = new AgonError('HTTP.TOO_LONG', 'This takes longer than anybody should wait for it.');
    sendProblem(reply, problemOf(late));
  }, withinMs);
  timer.unref();
  reply.raw.once('close', () => clearTimeout(timer));
}

const FIGURES = '/metrics';

const isRefusal = (error: unknown) => isAgonError(error) && /^(AUTH|LIMITS)\./.test(error.code);

/** How the arena is doing is for those who run it, and for whoever is on this machine, as Prometheus is. */
async function assertSeesFigures(ports: GatewayPorts, request: FastifyRequest, proxies: number): Promise<void> {
  if (routeOf(request) !== FIGURES || isLocal(peerOf(request), proxies)) return;
  assertStaffReads(await contextOf(ports, request));
}

/** The address first, so that guessing tokens is slow as well. */
async function takeOne(
  ports: GatewayPorts,
  request: FastifyRequest,
  reply: FastifyReply,
  proxies: number,
): Promise<void> {
  const { limits } = ports;
  if (!isLocal(peerOf(request), proxies)) {
    const caller = callerAt(request.ip);
    await assertWithin(limits, `address:${caller}`, RATES.address, 'one address');
    if (isDoor(request)) await assertWithin(limits, `door:${caller}`, RATES.doors, 'one address');
  }
  const { actor, key } = await contextOf(ports, request);
  if (!actor) return;
  const [agentId, ...others] = key?.agents ?? [];
  const bucket = bucketOf(actor, others.length === 0 ? agentId : undefined);
  reply.header('ratelimit-remaining', await assertWithin(limits, bucket, await rateOf(ports, actor)));
}

// What follows looks at the route that was found and never at the address as it was written: one route has many
// spellings, and a guard that knows one of them guards nothing.
const routeOf = ({ routeOptions }: FastifyRequest) => routeOptions.url ?? '';

const isDoor = (request: FastifyRequest) => routeOf(request).startsWith('/v1/auth/');

const peerOf = ({ socket }: FastifyRequest) => socket.remoteAddress ?? '';

const PROBES = ['/healthz', '/readyz'];

/** Probes are never limited, nor is somebody on this machine whom nobody knows. */
const isFree = (request: FastifyRequest, proxies: number) =>
  PROBES.includes(routeOf(request)) ||
  (request.headers.authorization === undefined && isLocal(peerOf(request), proxies));

/**
 * GraphiQL is a page, and brings scripts of its own from elsewhere. All else is data: whoever opens it in a browser sees
 * a document that may do nothing, may be framed by nobody and has no links, so it needs no headers about those.
 */
function secure(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-content-type-options', 'nosniff');
  reply.header('cross-origin-resource-policy', 'same-origin');
  reply.header('referrer-policy', 'no-referrer');
  if (routeOf(request).startsWith('/graphiql')) reply.header('x-frame-options', 'DENY');
  else reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'");
}
