import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { AgonError } from '../../services/kernel/index.js';
import { contextOf, type RequestContext } from '../auth/actor.js';
import { isWelcome } from '../caller.js';
import { plainProblem, problemOf, sendProblem } from '../problem.js';
import { accountRoutes, paymentRoutes } from './accounts.js';
import { agentRoutes } from './agents.js';
import { authRoutes } from './auth.js';
import { liveRoutes } from './live.js';
import { matchRoutes } from './matches.js';
import { openapi } from './openapi.js';
import {
  type Asked,
  checked,
  type Heard,
  headersOf,
  type RestContext,
  type Route,
  routesOf,
  type Shape,
  textReader,
} from './route.js';
import { webhookRoutes } from './webhooks.js';

/** Every route of REST. */
export const restRoutes: readonly Route[] = [
  ...routesOf('auth', authRoutes),
  ...routesOf('matches', matchRoutes),
  ...routesOf('agents', agentRoutes),
  ...routesOf('accounts', accountRoutes),
  ...routesOf('payments', paymentRoutes),
  ...routesOf('webhooks', webhookRoutes),
  ...routesOf('live', liveRoutes),
];

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY'];
/** A sender who was refused gets to read why; then the line is cut. */
const LINGER_MS = 2_000;

/**
 * Puts the routes on the server itself, beside Nest: a request is checked by its route's schemas, and answered by its
 * route's function, with nothing in between.
 */
export function serveRest(fastify: FastifyInstance, rest: RestContext, version: string): void {
  for (const as of ['json', 'bytes', 'stream'] as const) {
    fastify.register(async (scope) => {
      scope.setErrorHandler((error: Error, request, reply) => refuse(rest, error, request, reply));
      readBodiesAs(scope, as);
      for (const route of restRoutes) if ((route.takes?.as ?? 'json') === as) addRoute(scope, route, rest);
    });
  }
  fastify.register(async (scope) => {
    const text = JSON.stringify(openapi(restRoutes, version));
    scope.get('/v1/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(text));
    const paths = new Set(restRoutes.map(({ path }) => path));
    for (const path of paths)
      refuseOtherMethods(
        scope,
        path,
        restRoutes.filter((route) => route.path === path),
      );
  });
}

/** Bodies are bytes until their route says what they are; what is signed is signed as it was sent. */
function readBodiesAs(scope: FastifyInstance, as: 'json' | 'bytes' | 'stream'): void {
  scope.removeAllContentTypeParsers();
  if (as === 'stream') {
    const types = [
      'application/octet-stream',
      'application/gzip',
      'application/zip',
      'application/x-tar',
      'text/plain',
    ];
    scope.addContentTypeParser(types, (_request, payload, done) => done(null, payload));
    return;
  }
  const types = as === 'json' ? 'application/json' : '*';
  scope.addContentTypeParser(types, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}

const ADDRESSES_MAX = 1_024;
const ADDRESS_CHARACTERS = 200;

const urlOf = (path: string) => path.replace(/\{(\w+)\}/g, ':$1');

function addRoute(scope: FastifyInstance, route: Route, rest: RestContext): void {
  const read = reader(route, rest);
  const { admit, socket } = route;
  scope.route({
    method: route.method,
    url: urlOf(route.path),
    // What goes on without end has no size to tell.
    ...(socket ? { exposeHeadRoute: false } : {}),
    ...(admit || socket
      ? {
          preValidation: async (request: FastifyRequest) => {
            if (request.ws) assertOrigin(request, rest.origins);
            await admit?.(read(request), rest);
          },
        }
      : {}),
    handler: (request, reply) => {
      const asked = read(request) as Asked;
      const body = route.body ? bodyOf(route.body, request.body) : request.body;
      reply.status(route.answer.status ?? 200);
      return route.handle(Object.assign(asked, { reply, body }), rest);
    },
    ...(socket
      ? {
          wsHandler: (opened: Parameters<NonNullable<Route['socket']>>[0], request: FastifyRequest) =>
            socket(opened, read(request), rest),
        }
      : {}),
  });
}

/** What is asked for over and over is read once. It holds texts alone, and not many. */
function remembering(read: (texts: Readonly<Record<string, string>>) => object) {
  const known = new Map<string, object>();
  return (texts: Readonly<Record<string, string>>): object => {
    let key = '';
    // With lengths, for a text may hold anything.
    for (const name in texts) key += `${texts[name]?.length} ${texts[name]} `;
    const found = known.get(key);
    if (found) return found;
    const made = read(texts);
    if (known.size >= ADDRESSES_MAX) known.clear();
    if (key.length <= ADDRESS_CHARACTERS) known.set(key, made);
    return made;
  };
}

function reader(route: Route, { ports }: RestContext): (request: FastifyRequest) => Heard {
  const params = route.params && remembering(textReader('address', route.params));
  const query = textReader('query', route.query ?? {});
  const headers = Object.entries(headersOf(route));
  const nothing: Readonly<Record<keyof Shape, never>> = {};
  return (request) => {
    for (const [name, schema] of headers) checked(`header ${name}`, schema, request.headers[name]);
    return {
      params: (params?.(request.params as Record<string, string>) ?? nothing) as never,
      query: query(request.query as Record<string, unknown>) as never,
      request,
      context: async (): Promise<RequestContext> => contextOf(ports, request),
    };
  };
}

/** Nothing at all is no body; whether there may be none is the schema's to say. */
function bodyOf(schema: z.ZodType, body: unknown): unknown {
  const isNone = body === undefined || (Buffer.isBuffer(body) && body.length === 0);
  return checked('body', schema, isNone && schema.safeParse(undefined).success ? undefined : jsonOf(body));
}

function jsonOf(body: unknown): unknown {
  try {
    return JSON.parse(Buffer.isBuffer(body) ? body.toString('utf8') : '');
  } catch {
    throw new AgonError('QUERY.INVALID', 'The body is not JSON.');
  }
}

/** A page of another origin could open a socket with nobody asking; what is not a browser sends no origin. */
function assertOrigin({ headers }: FastifyRequest, origins: readonly string[]): void {
  if (isWelcome(headers, origins)) return;
  throw new AgonError(
    'AUTH.FORBIDDEN',
    'Pages of this origin may not listen here. AGON_CORS_ORIGINS names those that may.',
  );
}

/** Before any body is read: whatever is sent along, the method is what is wrong. */
function refuseOtherMethods(scope: FastifyInstance, path: string, routes: readonly Route[]): void {
  const methods = new Set<string>(routes.map(({ method }) => method));
  if (methods.has('GET') && !routes.some(({ socket }) => socket)) methods.add('HEAD');
  const allow = [...methods].join(', ');
  scope.route({
    method: METHODS.filter((method) => !methods.has(method)),
    url: urlOf(path),
    onRequest: async (_request, reply) => {
      const detail = `This address takes ${allow}.`;
      return sendProblem(reply.header('allow', allow), plainProblem(405, detail));
    },
    handler: () => undefined,
  });
}

function refuse({ ports }: RestContext, error: Error, request: FastifyRequest, reply: FastifyReply) {
  const status = (error as FastifyError).statusCode ?? 500;
  const fromServer = !(error instanceof AgonError) && status < 500;
  const problem = fromServer ? plainProblem(status, error.message) : problemOf(error);
  ports.onProblem?.('http', problem.code);
  if (problem.status >= 500) ports.onInternalError(error);
  if (!request.raw.complete) {
    // What still comes is thrown away: closing at once would cut off the answer as well.
    request.raw.resume();
    const cut = () => request.raw.complete || request.raw.destroy();
    reply.raw.once('finish', () => setTimeout(cut, LINGER_MS).unref());
  }
  return sendProblem(reply, problem);
}
