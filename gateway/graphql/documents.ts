import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { type GraphQLSchema, parse, specifiedRules, validate } from 'graphql';
import { z } from 'zod';
import { type Actor, AgonError, isStaff } from '../../services/kernel/index.js';
import { contextOf } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';
import { queryLimits, rulesFor } from './limits.js';

/** Queries that were registered before the gateway was started, by the SHA-256 of their text. */
export type Documents = ReadonlyMap<string, string>;

/** What comes with a request, over HTTP or WebSocket. */
export interface Asked {
  query?: string | null | undefined;
  extensions?: unknown;
}

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** The form that Apollo's and Relay's clients send a hash in. */
const persisted = z.object({ persistedQuery: z.object({ sha256Hash: z.string() }) });

/** Reads a file of `{ "<sha256>": "<query>" }`. A hash that is not that of its query is refused, and so is an empty file. */
export function readDocuments(path: string): Documents {
  const refuse = (why: string) =>
    new AgonError('CONFIG.INVALID', `AGON_PERSISTED_QUERIES names ${path}: ${why}.`, { setting: 'persistedQueries' });
  let entries: [string, string][];
  try {
    entries = Object.entries(z.record(z.string(), z.string()).parse(JSON.parse(readFileSync(path, 'utf8'))));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? 'it is not a JSON object of hashes and queries';
    throw refuse(why);
  }
  if (entries.length === 0) throw refuse('there is no query in it, so none could be asked');
  for (const [hash, text] of entries) {
    if (hash !== hashOf(text)) throw refuse(`${hash.slice(0, 12)} is not the SHA-256 of its query`);
  }
  return new Map(entries);
}

/** A registered query that could not be answered is found when the gateway is started, not when it is asked. */
export function assertAnswerable(documents: Documents, schema: GraphQLSchema): void {
  for (const [hash, text] of documents) {
    const [fault] = faultsIn(schema, text);
    if (fault === undefined) continue;
    throw new AgonError(
      'CONFIG.INVALID',
      `The persisted query ${hash.slice(0, 12)} is not one for this schema: ${fault}`,
    );
  }
}

function faultsIn(schema: GraphQLSchema, text: string): string[] {
  try {
    const document = parse(text, { maxTokens: queryLimits.tokensMax });
    return validate(schema, document, [...specifiedRules, ...rulesFor(true)]).map(({ message }) => message);
  } catch (error) {
    return [(error as Error).message];
  }
}

/**
 * The text of what is asked. Where queries are registered, a hash stands for one, strangers may ask no other, and staff
 * may ask anything.
 */
export function textOf(
  { query, extensions }: Asked,
  actor: Actor | undefined,
  documents: Documents | undefined,
): string {
  const hash = persisted.safeParse(extensions).data?.persistedQuery.sha256Hash;
  if (!query && hash !== undefined) {
    const known = documents?.get(hash);
    if (known !== undefined) return known;
    throw new AgonError(
      'QUERY.NOT_PERSISTED',
      `PersistedQueryNotFound: no query is registered as ${hash.slice(0, 64)}.`,
    );
  }
  // What is not text is refused by its form later on.
  const text = typeof query === 'string' ? query : '';
  if (documents && !(actor && isStaff(actor)) && !documents.has(hashOf(text))) {
    throw new AgonError('QUERY.NOT_PERSISTED', 'Only registered queries are answered here, and this is none of them.');
  }
  return text;
}

/** JSON instead of GraphQL would be taken for a document that was parsed already, and so pass by the limit of tokens. */
const JSON_TEXT = /^\s*(\{\s*["}]|[["\d-]|(null|true|false)\s*$)/;

/** Stands before every request to /graphql: what is asked for is a text, and one that may be asked. */
export async function admit(
  ports: GatewayPorts,
  request: FastifyRequest,
  documents: Documents | undefined,
): Promise<void> {
  const asked = (request.method === 'GET' ? request.query : request.body) as (Asked & { extensions?: unknown }) | null;
  if (typeof asked !== 'object' || asked === null || isUpgrade(request)) return;
  if (documents || asked.extensions) {
    const { actor } = await contextOf(ports, request);
    asked.query = textOf({ query: asked.query, extensions: extensionsOf(asked.extensions) }, actor, documents);
  }
  if (typeof asked.query === 'string' && JSON_TEXT.test(asked.query)) {
    throw new AgonError('QUERY.INVALID', 'Syntax Error: this is JSON, not GraphQL.');
  }
}

const isUpgrade = ({ headers }: FastifyRequest) => headers.upgrade !== undefined;

/** In the address of a GET they are JSON. */
function extensionsOf(given: unknown): unknown {
  if (typeof given !== 'string') return given;
  try {
    return JSON.parse(given) as unknown;
  } catch {
    throw new AgonError('QUERY.INVALID', 'The extensions are not JSON.');
  }
}
