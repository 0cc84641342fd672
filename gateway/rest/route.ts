import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import { AgonError } from '../../services/kernel/index.js';
import type { Answers } from '../answers.js';
import type { RequestContext } from '../auth/actor.js';
import type { Listeners } from '../live/listener.js';
import type { GatewayPorts } from '../ports.js';

/** What every route of REST may use. */
export interface RestContext {
  readonly ports: GatewayPorts;
  readonly answers: Answers;
  /** Origins of pages that may open sockets from a browser, beside the gateway's own. */
  readonly origins: readonly string[];
  readonly listeners: Listeners;
}

export type Shape = Readonly<Record<string, z.ZodType>>;
type Read<S extends Shape> = { readonly [Key in keyof S]: z.output<S[Key]> };

/** A request that was understood. */
export interface Asked<P extends Shape = Shape, Q extends Shape = Shape, B extends z.ZodType = z.ZodType> {
  readonly params: Read<P>;
  readonly query: Read<Q>;
  readonly body: z.output<B>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Who asks; whoever may ask anonymously is told so by the route's `access`. */
  context(): Promise<RequestContext>;
}

/** The same of a request whose answer is not one reply. */
export type Heard<P extends Shape = Shape, Q extends Shape = Shape> = Omit<Asked<P, Q>, 'reply' | 'body'>;

/** What a route answers with when all is well. */
export interface Answer {
  /** 200 when left out. */
  readonly status?: number;
  readonly description: string;
  /** JSON when left out. */
  readonly type?: string;
  /** What the answer holds; text or a file without one. */
  readonly schema?: z.ZodType;
}

/**
 * One route: what it takes, what it gives, who may ask, and what is done. The same definition checks requests and is
 * the OpenAPI document, so the two cannot differ.
 */
export interface Route<P extends Shape = Shape, Q extends Shape = Shape, B extends z.ZodType = z.ZodType> {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With parameters as in OpenAPI: /v1/matches/{matchId}. */
  readonly path: `/v1/${string}` | `/.well-known/${string}`;
  readonly tag: string;
  readonly summary: string;
  readonly params?: P;
  readonly query?: Q;
  /** Headers that are understood, beside those of every route. */
  readonly headers?: Shape;
  /** JSON by this schema; nothing at all, where that may be undefined. */
  readonly body?: B;
  /** A body that is not JSON: read as it comes, or as a whole of raw bytes. */
  readonly takes?: { readonly as: 'stream' | 'bytes'; readonly type: string; readonly description: string };
  readonly access: 'public' | 'caller';
  /** Whether an Idempotency-Key is understood; by every write of somebody who is known, unless it is said. */
  readonly keyed?: boolean;
  readonly answer: Answer;
  /** Statuses of refusals, beside those that every route may answer with. */
  readonly refuses?: readonly number[];
  /** Refuses before anything is streamed or a socket is opened. */
  admit?(asked: Heard<P, Q>, rest: RestContext): Promise<void>;
  handle(asked: Asked<P, Q, B>, rest: RestContext): unknown;
  /** The same address asked for as a WebSocket. */
  socket?(socket: WebSocket, asked: Heard<P, Q>, rest: RestContext): void | Promise<void>;
}

type Usual = 'method' | 'access';
export type RouteDefinition<P extends Shape = Shape, Q extends Shape = Shape, B extends z.ZodType = z.ZodType> = Omit<
  Route<P, Q, B>,
  Usual | 'tag'
> &
  Partial<Pick<Route, Usual>>;

/** Gives a route the types of its own schemas. */
export const defineRoute = <P extends Shape, Q extends Shape, B extends z.ZodType>(
  route: RouteDefinition<P, Q, B>,
): RouteDefinition => route as unknown as RouteDefinition;

/** Routes that the document shows together. Unless they say otherwise, they are read, and by somebody who is known. */
export const routesOf = (tag: string, routes: readonly RouteDefinition[]): Route[] =>
  routes.map((route) => ({ method: 'GET', access: 'caller', ...route, tag }));

export const isKeyed = ({ method, access, keyed }: Pick<Route, 'method' | 'access' | 'keyed'>): boolean =>
  keyed ?? (method !== 'GET' && access === 'caller');

const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 visible characters')
  .optional()
  .describe('The same key with the same request is carried out once, however often it is sent.');

/** The headers that a route understands. */
export const headersOf = (route: Pick<Route, 'headers' | 'method' | 'access' | 'keyed'>): Shape => ({
  ...route.headers,
  ...(isKeyed(route) ? { 'idempotency-key': idempotencyKey } : {}),
});

/**
 * Reads what came as text, as the schemas want it. A number is digits and nothing else, a list may have one entry, and
 * what has no schema is refused: a typing error shall not become a default.
 */
export function textReader(what: string, shape: Shape): (texts: Readonly<Record<string, unknown>>) => object {
  const schema = z.strictObject(shape);
  const kinds = new Map(Object.entries(shape).map(([name, each]) => [name, kindOf(each)]));
  // Most requests ask nothing in their query: what they get then is always the same.
  const nothing = schema.safeParse({});
  return (texts) => {
    const given: Record<string, unknown> = {};
    let some = false;
    for (const name in texts) {
      some = true;
      given[name] = converted(kinds.get(name), texts[name]);
    }
    return some || !nothing.success ? (checked(what, schema, given) as object) : nothing.data;
  };
}

function converted(kind: string | undefined, value: unknown): unknown {
  if (kind === 'array' && typeof value === 'string') return [value];
  if (kind === 'number' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return Number(value);
  return value;
}

function kindOf(schema: z.ZodType): string {
  const { type, innerType } = schema.def as { type: string; innerType?: z.ZodType };
  return innerType ? kindOf(innerType) : type;
}

export function checked(what: string, schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  const [first] = fields;
  const where = first?.field ? `${first.field}: ` : '';
  throw new AgonError('QUERY.INVALID', `The ${what} was not understood. ${where}${first?.message}`, { fields });
}
