import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { type Answer, headersOf, type Route, type Shape } from './route.js';
import { named, Problem } from './schemas.js';

type Json = Record<string, unknown>;

const TAGS: Readonly<Record<string, string>> = {
  auth: 'Signing in and out, and what proves who somebody is.',
  matches: 'Matches, their turns and their replays: public.',
  agents: 'Agents and leaderboards: public. Code is handed in by owners.',
  accounts: "What is an owner's own.",
  webhooks: 'Where the arena tells owners and operators what happened.',
  payments: "The payment provider's way in.",
  live: 'What happens, while it happens.',
};

const ALWAYS = [400, 429, 503];
const WITH_PARAMS = [404];
const WITH_CALLER = [401, 403];
const WITH_BODY = [413, 415];

/** The OpenAPI 3.1 document of these routes. */
export function openapi(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) };
  }
  const used = new Set(routes.map(({ tag }) => tag));
  const statuses = [...new Set(routes.flatMap(refusals))].sort();
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agon',
      version,
      description: 'An arena for AI agents. Errors are problem details (RFC 9457) with a stable `code`.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components(),
      responses: Object.fromEntries(statuses.map((status) => [`Refused${status}`, refusal(status)])),
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'A token or an API key.' } },
    },
  };
}

function operation(route: Route): Json {
  const { id, tag, summary, access, answer } = route;
  const parameters = [
    ...texts('path', route.params ?? {}),
    ...texts('query', route.query ?? {}),
    ...texts('header', headersOf(route)),
  ];
  const refused = refusals(route).map((status) => [status, { $ref: `#/components/responses/Refused${status}` }]);
  return {
    operationId: id,
    tags: [tag],
    summary,
    security: access === 'caller' ? [{ bearer: [] }] : [],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...bodyOf(route),
    responses: { [answer.status ?? 200]: answered(answer), ...Object.fromEntries(refused) },
  };
}

function refusals({ params, access, body, takes, refuses = [] }: Route): number[] {
  const all = [
    ...ALWAYS,
    ...(params ? WITH_PARAMS : []),
    ...(access === 'caller' ? WITH_CALLER : []),
    ...(body || takes ? WITH_BODY : []),
    ...refuses,
  ];
  return [...new Set(all)].sort();
}

function texts(place: 'path' | 'query' | 'header', shape: Shape): Json[] {
  return Object.entries(shape).map(([name, schema]) => {
    const { description, ...rest } = schemaOf(schema, 'input');
    const required = place === 'path' || !schema.safeParse(undefined).success;
    return { name, in: place, required, ...(description ? { description } : {}), schema: rest };
  });
}

function bodyOf({ body, takes }: Route): Json {
  if (takes) {
    const { type, description, as } = takes;
    const schema = as === 'stream' ? { type: 'string', format: 'binary' } : {};
    return { requestBody: { required: true, description, content: { [type]: { schema } } } };
  }
  if (!body) return {};
  const { inner, required } = contentOf(body);
  return { requestBody: { required, content: { 'application/json': { schema: schemaOf(inner, 'input') } } } };
}

/** A body that may be left out is optional; what it is when it is there has its own schema. */
function contentOf(body: z.ZodType): { inner: z.ZodType; required: boolean } {
  return body instanceof z.ZodOptional
    ? { inner: body.unwrap() as z.ZodType, required: false }
    : { inner: body, required: true };
}

function answered({ description, type = 'application/json', schema }: Answer): Json {
  if (type === 'none') return { description };
  // A schema would be taken for that of a single event, and each kind of event has its own.
  if (type === 'text/event-stream') return { description, content: { [type]: {} } };
  return { description, content: { [type]: { schema: schema ? schemaOf(schema, 'output') : { type: 'string' } } } };
}

function refusal(status: number): Json {
  const retry = { 'Retry-After': { description: 'In seconds.', schema: { type: 'integer' } } };
  return {
    description: `${STATUS_CODES[status]}.`,
    ...(status === 429 ? { headers: retry } : {}),
    content: { 'application/problem+json': { schema: schemaOf(Problem, 'output') } },
  };
}

const at = (id: string) => `#/components/schemas/${id}`;

/** A schema with a name is pointed to; any other stands where it is used. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const id = named.get(schema)?.id;
  if (id) return { $ref: at(id) };
  return bare(z.toJSONSchema(schema, { io, unrepresentable: 'any' }));
}

function components(): Json {
  const { schemas } = z.toJSONSchema(named, { io: 'output', uri: at, unrepresentable: 'any' });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, bare(schema)]));
}

const bare = ({ $schema: _dialect, $id: _id, id: _name, ...schema }: Json): Json => schema;
