import { setTimeout as sleep } from 'node:timers/promises';
import websocket from '@fastify/websocket';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  execute,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import { CloseCode, type Context, makeServer, type SubscribePayload } from 'graphql-ws';
import { AgonError } from '../../services/kernel/index.js';
import { contextOf, type RequestContext } from '../auth/actor.js';
import { callerAt, isWelcome, Seats } from '../caller.js';
import type { GatewayPorts } from '../ports.js';
import { problemOf } from '../problem.js';
import { type Documents, textOf } from './documents.js';
import { formatErrors } from './errors.js';
import { queryLimits, rulesFor } from './limits.js';
import type { SubscriptionContext } from './subscriptions.js';

/** What one connection, and all of them, may take. */
export const socketLimits = {
  connectionsMax: 2_000,
  connectionsPerAddressMax: 50,
  subscriptionsMax: 10,
  messageBytesMax: 64 * 1024,
  /** In any minute. */
  messagesMax: 300,
  /** Whoever leaves this much unread is not reading. */
  unreadBytesMax: 256 * 1024,
  initMs: 5_000,
  beatMs: 30_000,
  /** How long those who are connected have to say goodbye when the gateway stops. */
  goodbyeMs: 1_000,
};

export type SocketLimits = typeof socketLimits;

interface SocketOptions {
  readonly ports: GatewayPorts;
  readonly introspection: boolean;
  readonly corsOrigins: readonly string[];
  readonly documents?: Documents | undefined;
  readonly limits?: SocketLimits;
}

/** As much of a WebSocket as is used here. */
interface Socket {
  readonly protocol: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(data: string, done: (error?: Error) => void): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
  ping(): void;
  on(event: string, listener: (...args: unknown[]) => void): void;
}

interface Extra {
  readonly socket: Socket;
  /** What the first message, or the header, said about who this is. */
  authorization: string | undefined;
}

const PATH = '/graphql';
const PROTOCOL = 'graphql-transport-ws';
const OPEN = 1;
const GOING_AWAY = 1001;
const TRY_AGAIN_LATER = 1013;

/**
 * Subscriptions over WebSocket, at the address that queries go to. Call it before any route is made. The protocol is
 * graphql-ws's own server and not the one inside mercurius, which validates nothing that comes by WebSocket.
 */
export async function serveSubscriptions(fastify: FastifyInstance, options: SocketOptions): Promise<void> {
  const { ports, corsOrigins, limits = socketLimits } = options;
  const seats = new Seats(limits.connectionsMax, limits.connectionsPerAddressMax);
  const shown = (errors: readonly GraphQLError[]) =>
    formatErrors({ errors }, ports).response.errors.map((error) => error.toJSON());
  const server = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: limits.initMs,
    onConnect: async ({ connectionParams = {}, extra }) => {
      // Browsers can send no header, so a token comes with the first message; other clients may do either.
      const given = connectionParams.authorization ?? connectionParams.Authorization ?? extra.authorization;
      extra.authorization = given === undefined || typeof given === 'string' ? given : '';
      return !(await speakerOf(ports, extra)).rejected;
    },
    onSubscribe: (context, _id, payload) => admitted(fastify.graphql.schema, context, payload, options),
    subscribe: subscribeAfresh,
    onNext: (_context, _id, _payload, _args, { data = null, errors }) =>
      errors ? { data, errors: shown(errors) } : undefined,
    onError: (_context, _id, _payload, errors) => shown(errors as readonly GraphQLError[]),
  });

  const opened = (socket: Socket, request: FastifyRequest) => {
    const leave = seats.take(callerAt(request.ip));
    // Many may have been let through to here at once.
    if (!leave) return socket.close(TRY_AGAIN_LATER, 'LIVE.FULL');
    const within = countdown(limits.messagesMax);
    const extra: Extra = { socket, authorization: request.headers.authorization };
    const closed = server.opened(
      {
        protocol: socket.protocol,
        send: (data) => send(socket, data, limits.unreadBytesMax),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (take) =>
          socket.on('message', (data) => {
            if (!within()) return socket.close(TRY_AGAIN_LATER, 'LIMITS.EXCEEDED');
            take(String(data)).catch((error: unknown) => {
              ports.onInternalError(error);
              socket.close(CloseCode.InternalServerError, 'INTERNAL');
            });
          }),
      },
      extra,
    );
    // A token may run out or be taken back while somebody listens by it.
    const recheck = async () => {
      if ((await speakerOf(ports, extra)).rejected) socket.close(CloseCode.Forbidden, 'Forbidden');
    };
    const beat = keepAlive(socket, limits.beatMs, () => void recheck().catch(ports.onInternalError));
    socket.on('close', (code, reason) => {
      clearInterval(beat);
      leave();
      closed(Number(code), String(reason)).catch(ports.onInternalError);
    });
  };

  // Mercurius makes the route; what comes to it by WebSocket is for us.
  fastify.addHook('onRoute', (route) => {
    if (route.url === PATH && route.method === 'GET') Object.assign(route, { wsHandler: opened });
  });
  if (!fastify.hasDecorator('websocketServer')) {
    await fastify.register(websocket, {
      options: {
        maxPayload: limits.messageBytesMax,
        handleProtocols: (offered: Set<string>) => (offered.has(PROTOCOL) ? PROTOCOL : ([...offered][0] ?? false)),
      },
      // A frame that is too long or none at all closes its own connection, and is nobody else's business.
      errorHandler: (_error, socket: Socket) => socket.terminate(),
      preClose: (done) => done(),
    });
  }
  fastify.addHook('preValidation', (request, reply, done) => {
    if (!isUpgradeOf(request, PATH)) return done();
    const refusal = refusalOf(request, corsOrigins, seats.hasRoom(callerAt(request.ip)));
    if (!refusal) return done();
    const problem = problemOf(refusal);
    reply.status(problem.status).type('application/problem+json').send(problem);
  });
  fastify.addHook('preClose', () => goodbye(fastify.websocketServer.clients as ReadonlySet<Socket>, limits.goodbyeMs));
}

/** By the route that was found: an address has many spellings. */
const isUpgradeOf = ({ headers, routeOptions }: FastifyRequest, path: string) =>
  headers.upgrade !== undefined && routeOptions.url === path;

function refusalOf(
  { headers }: FastifyRequest,
  corsOrigins: readonly string[],
  hasRoom: boolean,
): AgonError | undefined {
  if (!isWelcome(headers, corsOrigins)) {
    return new AgonError('AUTH.BAD_ORIGIN', `Pages of ${headers.origin?.slice(0, 200)} may not connect here.`);
  }
  if (hasRoom) return undefined;
  return new AgonError('LIVE.FULL', 'There are as many connections as this gateway takes. Try again later.');
}

/** Asked anew each time: what was good a moment ago may not be. */
const speakerOf = async (ports: GatewayPorts, { authorization }: Extra): Promise<RequestContext> =>
  contextOf(ports, { headers: authorization === undefined ? {} : { authorization } });

/** Everything that is judged before anything is carried out: who, how many, how much, and what. */
async function admitted(
  schema: GraphQLSchema,
  context: Context<Record<string, unknown>, Extra>,
  payload: SubscribePayload,
  { ports, introspection, documents, limits = socketLimits }: SocketOptions,
): Promise<ExecutionArgs | readonly GraphQLError[]> {
  try {
    const { socket } = context.extra;
    if (Object.keys(context.subscriptions).length > limits.subscriptionsMax) {
      const text = `A connection has at most ${limits.subscriptionsMax} subscriptions. End one first.`;
      throw new AgonError('LIMITS.EXCEEDED', text);
    }
    const known = await speakerOf(ports, context.extra);
    if (known.rejected) throw new AgonError('AUTH.UNAUTHENTICATED', 'The bearer token is not known here any more.');
    const document = parse(textOf(payload, known.actor, documents), { maxTokens: queryLimits.tokensMax });
    const rules = [...specifiedRules, ...rulesFor(introspection)];
    const faults = validate(schema, document, rules, { maxErrors: queryLimits.errorsMax });
    if (faults.length > 0) return faults;
    assertSubscription(document, payload.operationName);
    const contextValue: SubscriptionContext = { ...known, drop: () => socket.close(TRY_AGAIN_LATER, 'LIVE.TOO_SLOW') };
    const { operationName, variables: variableValues } = payload;
    return { schema, document, contextValue, operationName, variableValues };
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    return [new GraphQLError((error as Error).message, { originalError: error as Error })];
  }
}

function assertSubscription(document: DocumentNode, operationName: string | null | undefined): void {
  const { operation } = getOperationAST(document, operationName) ?? {};
  if (operation === 'subscription') return;
  const what = operation === undefined ? 'no operation that could be meant' : `a ${operation}`;
  throw new AgonError('QUERY.INVALID', `This is ${what}. Subscriptions come by WebSocket; the rest goes by POST.`);
}

/** As GraphQL's own `subscribe`, but each event is answered as a request of its own: nothing fetched before is shown again. */
async function subscribeAfresh(args: ExecutionArgs) {
  const source = await createSourceEventStream(args);
  if (!(Symbol.asyncIterator in source)) return source;
  const events = source[Symbol.asyncIterator]();
  const answer = async (result: IteratorResult<unknown>) => {
    if (result.done) return result;
    const contextValue = { ...(args.contextValue as object) };
    return { done: false as const, value: await execute({ ...args, rootValue: result.value, contextValue }) };
  };
  return {
    next: async () => answer(await events.next()),
    return: async () => ({ done: true as const, value: await events.return?.() }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Resolves when it was written, so that a subscription reads on only as fast as it is read. */
function send(socket: Socket, data: string, unreadBytesMax: number): Promise<void> {
  if (socket.readyState !== OPEN) return Promise.resolve();
  if (socket.bufferedAmount > unreadBytesMax) socket.terminate();
  return new Promise((resolve) => socket.send(data, () => resolve()));
}

/** True so many times in a minute. */
function countdown(perMinute: number): () => boolean {
  let [left, untilMs] = [perMinute, performance.now() + 60_000];
  return () => {
    if (performance.now() > untilMs) [left, untilMs] = [perMinute, performance.now() + 60_000];
    left -= 1;
    return left >= 0;
  };
}

/** Whoever has not answered a ping by the next one is gone. */
function keepAlive(socket: Socket, beatMs: number, onBeat: () => void): NodeJS.Timeout {
  let answered = true;
  socket.on('pong', () => {
    answered = true;
  });
  return setInterval(() => {
    if (!answered) return socket.terminate();
    answered = false;
    socket.ping();
    onBeat();
  }, beatMs);
}

/** Everybody is told; whoever does not leave in time is let go. */
async function goodbye(clients: ReadonlySet<Socket>, withinMs: number): Promise<void> {
  for (const client of clients) client.close(GOING_AWAY, 'The gateway stops.');
  for (let waitedMs = 0; clients.size > 0 && waitedMs < withinMs; waitedMs += 10) await sleep(10);
  for (const client of clients) client.terminate();
}
