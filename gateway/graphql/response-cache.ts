import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify';
import { type DocumentNode, Kind } from 'graphql';
import { operationIn, sawGraphql } from '../observe.js';
import type { GatewayPorts } from '../ports.js';

const KEPT_MAX = 1_024;
const KEY_CHARACTERS = 8_192;

/** Fields that say the same to everybody, and the view whose rows they are made of. */
const VIEW_OF: Readonly<Partial<Record<string, string>>> = { leaderboard: 'leaderboards' };

interface Answer {
  readonly view: string;
  readonly at: number;
  readonly day: string;
  readonly operation: string;
  readonly text: string;
}

const WANTED = Symbol('wanted');

/** A question that nobody in particular asks, and what was so before it was answered. */
interface Wanted {
  readonly key: string;
  readonly day: string;
  at(view: string): number | undefined;
  /** Set once it was carried out without an error, and turned out to be one whose answer holds. */
  found?: Pick<Answer, 'view' | 'at' | 'operation'>;
}
type Carrier = { [WANTED]?: Wanted };

/**
 * Whole answers to public questions that are asked over and over: who leads a board. One holds until a row of its view
 * changes or a day passes, for ratings of those who do not play become less certain by the day. Whoever signs in is
 * answered afresh.
 */
export class ResponseCache {
  private readonly kept = new Map<string, Answer>();

  constructor(private readonly ports: Pick<GatewayPorts, 'changes' | 'clock' | 'observe'>) {}

  /**
   * What goes before and after the route of GraphQL; `admit` refuses what may not be asked. Where anything may be, what was
   * answered once need not be admitted again.
   */
  around(
    admit: (request: FastifyRequest) => Promise<void>,
    isOpen: boolean,
  ): Pick<RouteShorthandOptions, 'preHandler' | 'onSend'> {
    return {
      preHandler: (request, reply, done) => {
        if (isOpen && this.tell(request, reply, keyOf(request), this.ports.clock().slice(0, 10))) return;
        admit(request).then(() => this.answer(request, reply) || done(), done);
      },
      onSend: (request, reply, payload, done) => {
        this.keep(request, reply, payload);
        done(null, payload);
      },
    };
  }

  /** Answers at once, if the answer is known and holds. */
  private tell(request: FastifyRequest, reply: FastifyReply, key: string | undefined, day: string): boolean {
    const known = key === undefined ? undefined : this.kept.get(key);
    if (!known || known.day !== day || known.at !== this.ports.changes.of(known.view)) return false;
    reply.header('content-type', 'application/json; charset=utf-8').send(known.text);
    sawGraphql(this.ports, request, known.operation);
    return true;
  }

  /** The same, or else remembers what was asked, so that the answer can be kept. */
  private answer(request: FastifyRequest, reply: FastifyReply): boolean {
    const key = keyOf(request);
    if (key === undefined) return false;
    const { changes, clock } = this.ports;
    const day = clock().slice(0, 10);
    if (this.tell(request, reply, key, day)) return true;
    // Looked at before the rows are read: a change in between makes the answer one that does not hold, never a stale one.
    const before = new Map(Object.values(VIEW_OF).map((view) => [view, changes.of(view as string)]));
    (request as Carrier)[WANTED] = { key, day, at: (view) => before.get(view) };
    return false;
  }

  /** Watches what is carried out, and keeps what holds. */
  watch(fastify: FastifyInstance): void {
    const { graphql } = fastify as unknown as {
      graphql: { addHook(name: string, look: (...args: never[]) => Promise<void>): void };
    };
    const views = new WeakMap<DocumentNode, string | null>();
    graphql.addHook('preExecution', async (_schema: unknown, document: DocumentNode, context: Context) => {
      const wanted = context.reply && (context.reply.request as Carrier)[WANTED];
      if (!wanted) return;
      const view = views.get(document) ?? viewOf(document);
      views.set(document, view);
      const at = view === null ? undefined : wanted.at(view);
      if (view !== null && at !== undefined) wanted.found = { view, at, operation: operationIn(document) };
    });
    graphql.addHook('onResolution', async ({ errors }: { errors?: unknown }, context: Context) => {
      const request = context.reply?.request as Carrier | undefined;
      if (errors && request) delete request[WANTED];
    });
  }

  private keep(request: FastifyRequest, { statusCode }: FastifyReply, text: unknown): void {
    const wanted = (request as Carrier)[WANTED];
    if (!wanted?.found || statusCode !== 200 || typeof text !== 'string') return;
    this.kept.delete(wanted.key);
    this.kept.set(wanted.key, { ...wanted.found, day: wanted.day, text });
    if (this.kept.size > KEPT_MAX) this.kept.delete(this.kept.keys().next().value as string);
  }
}

type Context = { reply?: FastifyReply };

function keyOf({ method, headers, body }: FastifyRequest): string | undefined {
  if (method !== 'POST' || headers.authorization !== undefined) return undefined;
  const { query, variables, operationName } = (body ?? {}) as Record<string, unknown>;
  if (typeof query !== 'string') return undefined;
  const key = variables || operationName ? JSON.stringify([query, variables, operationName]) : query;
  return key.length <= KEY_CHARACTERS ? key : undefined;
}

/** The view that all of a query is made of; null if it takes more than rows that everybody may see. */
function viewOf({ definitions }: DocumentNode): string | null {
  const [operation, ...others] = definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION || operation.operation !== 'query' || others.length > 0)
    return null;
  const views = operation.selectionSet.selections.map((field) => {
    if (field.kind !== Kind.FIELD || field.directives?.length) return undefined;
    // A field with fields of its own may be somebody else's rows.
    const plain = (field.selectionSet?.selections ?? []).every(
      (each) => each.kind === Kind.FIELD && !each.selectionSet,
    );
    return plain ? VIEW_OF[field.name.value] : undefined;
  });
  const [view] = views;
  return view !== undefined && views.every((each) => each === view) ? view : null;
}
