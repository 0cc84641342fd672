import { ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type DocumentNode, Kind, type OperationDefinitionNode } from 'graphql';
import { type Actor, type Cause, callerOf, correlationOf, derivedId, type Ids } from '../services/kernel/index.js';
import type { GatewayPorts } from './ports.js';
import { problemOf } from './problem.js';

/** One request, once it was answered. Every text here is one of few: names of routes, fields and methods. */
export interface Seen extends Origin {
  readonly door: 'http' | 'graphql' | 'grpc';
  readonly operation: string;
  /** Refused is the caller's to mend, failed is ours. */
  readonly outcome: 'ok' | 'refused' | 'failed';
  /** Open as long as somebody listens: how long it took says nothing. */
  readonly stream: boolean;
  readonly ms: number;
}

/** Where a request comes from. */
interface Origin {
  readonly requestId: string;
  readonly correlationId: string;
  /** The span of the caller, if it told of one. */
  readonly callerSpanId: string | undefined;
  readonly startedMs: number;
  actorId?: string;
}

const KEY_CHARACTERS = 200;

const ORIGIN = Symbol('origin');
const ROUTE = Symbol('route');
const BEGUN = Symbol('begun');

/** The request of HTTP or the metadata of gRPC: what belongs to a request goes with it. */
interface Carrier {
  [ORIGIN]?: Origin;
  /** The route as it was written, once it is known. */
  [ROUTE]?: string;
}

function originOf(carrier: Carrier, traceparent: unknown, requestId: string): Origin {
  const caller = traceparent === undefined ? undefined : callerOf(traceparent);
  const correlationId = caller ? correlationOf(caller.traceId) : requestId;
  const origin = { requestId, correlationId, callerSpanId: caller?.spanId, startedMs: performance.now() };
  carrier[ORIGIN] = origin;
  return origin;
}

/**
 * A request that is sent again with its key is the same request, also to whoever looks for what followed from it. Two
 * callers may choose the same key, and whoever has no token is known by the address.
 */
function nameOf({ headers, ip }: Pick<FastifyRequest, 'headers' | 'ip'>, ids: Ids): string {
  const { 'idempotency-key': key, authorization = ip } = headers;
  return typeof key === 'string' && key !== ''
    ? derivedId('request', authorization, key.slice(0, KEY_CHARACTERS))
    : ids();
}

/** What the commands of a request follow from. */
export function causeOf(request: object): Cause | undefined {
  const origin = (request as Carrier)[ORIGIN];
  return origin && { correlationId: origin.correlationId, causationId: origin.requestId };
}

/** Says who asks, for the log. */
export function sawActor(request: object, actor: Actor | undefined): void {
  const origin = (request as Carrier)[ORIGIN];
  if (origin && actor) origin.actorId = actor.id;
}

type Watching = Pick<GatewayPorts, 'ids' | 'observe'>;

/** Open for as long as somebody watches. */
const STREAMS = /\/(live|stream|ws)$/;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Looks at every request over HTTP. It goes before everything else, so that what is refused at once is seen as well. */
export function watchHttp(fastify: FastifyInstance, { ids, observe }: Watching): void {
  fastify.addHook('onRequest', (request, reply, done) => {
    const { requestId } = originOf(request as Carrier, request.headers.traceparent, nameOf(request, ids));
    reply.header('x-request-id', requestId);
    done();
  });
  if (!observe) return;
  // What a request is counted as is put together once a route, not once a request.
  const operations = new Map<string, Map<string, { operation: string; stream: boolean }>>();
  const operationOf = (method: string, route: string | undefined) => {
    const known = operations.get(method)?.get(route ?? '');
    if (known) return known;
    const name = METHODS.includes(method) ? method : 'OTHER';
    // Where nothing is served, the method says nothing either.
    const made = { operation: route === undefined ? 'unknown' : `${name} ${route}`, stream: STREAMS.test(route ?? '') };
    if (name === method) operations.set(method, (operations.get(method) ?? new Map()).set(route ?? '', made));
    return made;
  };
  fastify.addHook('onRoute', (route) => {
    const mark: onRequestHookHandler = (request, _reply, done) => {
      (request as Carrier)[ROUTE] = route.url;
      done();
    };
    route.onRequest = [mark, ...[route.onRequest ?? []].flat()];
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    const { [ORIGIN]: origin, [ROUTE]: route = request.routeOptions.url } = request as Carrier;
    if (origin) {
      const outcome = outcomeOf(reply.statusCode);
      const ms = performance.now() - origin.startedMs;
      observe(Object.assign({ door: 'http' as const, outcome, ms }, operationOf(request.method, route), origin));
    }
    done();
  });
}

const outcomeOf = (code: number): Seen['outcome'] => (code >= 500 ? 'failed' : code >= 400 ? 'refused' : 'ok');

interface Execution {
  readonly errors?: readonly { readonly originalError?: unknown }[];
}
interface Begun {
  [BEGUN]?: { readonly operation: string; readonly startedMs: number };
}
type Looks = (name: string, look: (...args: never[]) => Promise<void>) => void;

/** Looks at every GraphQL operation that is carried out; by its field, which the schema has, and not by a caller's name. */
export function watchGraphql(fastify: FastifyInstance, { observe }: Watching): void {
  const { graphql } = fastify as unknown as { graphql: { addHook: Looks } };
  if (!observe) return;
  const names = new WeakMap<DocumentNode, string>();
  graphql.addHook('preExecution', async (_schema: unknown, document: DocumentNode, context: Begun) => {
    const operation = names.get(document) ?? operationIn(document);
    names.set(document, operation);
    context[BEGUN] = { operation, startedMs: performance.now() };
  });
  graphql.addHook('onResolution', async (execution: Execution, context: Begun & { reply?: FastifyReply }) => {
    const seen = context[BEGUN];
    const origin = (context.reply?.request as Carrier | undefined)?.[ORIGIN];
    if (!seen || !origin) return;
    const worst = (execution.errors ?? []).reduce(
      (most, { originalError }) => Math.max(most, statusOf(originalError)),
      0,
    );
    const ms = performance.now() - seen.startedMs;
    const about = { door: 'graphql' as const, outcome: outcomeOf(worst), stream: false, ms };
    observe(Object.assign(about, origin, { operation: seen.operation }));
  });
}

/** The same for what was answered without carrying it out once more. */
export function sawGraphql({ observe }: Pick<Watching, 'observe'>, request: object, operation: string): void {
  const origin = (request as Carrier)[ORIGIN];
  if (!origin || !observe) return;
  const ms = performance.now() - origin.startedMs;
  observe(Object.assign({ door: 'graphql' as const, operation, outcome: 'ok' as const, stream: false, ms }, origin));
}

const statusOf = (error: unknown) => (error === undefined ? 400 : problemOf(error).status);

/** @example operationIn(parse('mutation Mine { a: proposeMatch(...) { id } }')) // 'mutation proposeMatch' */
export function operationIn({ definitions }: DocumentNode): string {
  const operations = definitions.filter((each): each is OperationDefinitionNode => {
    return each.kind === Kind.OPERATION_DEFINITION;
  });
  const [operation, ...others] = operations;
  if (!operation || others.length > 0) return 'several';
  const fields = operation.selectionSet.selections.map((each) => (each.kind === Kind.FIELD ? each.name.value : ''));
  const [field, ...more] = new Set(fields);
  return `${operation.operation} ${field && more.length === 0 ? field : 'several'}`;
}

/** Ours to mend; all else is the caller's, or to live with. */
const FAILURES: readonly number[] = [status.UNKNOWN, status.INTERNAL, status.UNAVAILABLE, status.DATA_LOSS];

/** Looks at every call over gRPC that one of our methods answers. */
export function watchGrpc({ ids, observe }: Watching): ServerInterceptor {
  return (method, call) => {
    let origin: Origin | undefined;
    const done = (code: number) => {
      const from = origin;
      origin = undefined;
      if (!from || !observe) return;
      const outcome = code === status.OK ? 'ok' : FAILURES.includes(code) ? 'failed' : 'refused';
      const stream = method.requestStream || method.responseStream;
      const operation = method.path.slice(1);
      observe({ ...from, door: 'grpc', operation, outcome, stream, ms: performance.now() - from.startedMs });
    };
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, pass) => {
            origin = originOf(metadata as Carrier, metadata.get('traceparent')[0], ids());
            pass(metadata);
          },
          onCancel: () => done(status.CANCELLED),
        }),
      sendStatus: (sent, next) => {
        done(sent.code ?? status.UNKNOWN);
        next(sent);
      },
    });
  };
}
