import type { Type } from '@nestjs/common';
import { ArgsType, Field, ID, Int, InterfaceType, ObjectType } from '@nestjs/graphql';
import { PAGE_MAX, type Page, type PageRequest } from '../../projections/engine/page.js';
import { AgonError } from '../../services/kernel/index.js';

const ID_CHARACTERS_MAX = 400;

@InterfaceType({
  description: 'Whatever can be found again by its id.',
  resolveType: ({ id }: Node) => fromGlobalId(id).type,
})
export abstract class Node {
  @Field(() => ID, { description: 'Opaque, and good for node(id) for as long as the thing is there.' }) id!: string;
}

/** @example globalId('Agent', 'ada.minimax') */
export const globalId = (type: string, ...key: readonly (string | number)[]): string =>
  Buffer.from(JSON.stringify([type, ...key.map(String)])).toString('base64url');

export function fromGlobalId(id: string): { readonly type: string; readonly key: readonly string[] } {
  try {
    const parts = JSON.parse(Buffer.from(id.slice(0, ID_CHARACTERS_MAX), 'base64url').toString()) as unknown;
    if (Array.isArray(parts) && parts.length > 1 && parts.every((part) => typeof part === 'string')) {
      const [type = '', ...key] = parts as string[];
      if (globalId(type, ...key) === id) return { type, key };
    }
  } catch {}
  throw new AgonError('QUERY.BAD_ID', `"${id.slice(0, 80)}" is not an id that was given out here.`);
}

@ObjectType()
export class PageInfo {
  @Field(() => Boolean) hasNextPage!: boolean;
  @Field(() => Boolean) hasPreviousPage!: boolean;
  @Field(() => String, { nullable: true }) startCursor!: string | null;
  @Field(() => String, { nullable: true }) endCursor!: string | null;
}

const rows = { nullable: true, description: `1 to ${PAGE_MAX}; 20 when nothing is said.` };

/** What every connection takes: the first rows after a cursor, or the last ones before one. */
@ArgsType()
export class PageArgs implements PageRequest {
  @Field(() => Int, rows) first?: number | null;
  @Field(() => String, { nullable: true }) after?: string | null;
  @Field(() => Int, rows) last?: number | null;
  @Field(() => String, { nullable: true }) before?: string | null;
}

export const PAGE = { type: () => PageArgs } as const;

/** What of a field's arguments is about the page. */
export const pageIn = ({ first, after, last, before }: PageRequest): PageRequest => ({ first, after, last, before });

export interface Connection<T> {
  readonly edges: readonly { readonly cursor: string; readonly node: T }[];
  readonly nodes: readonly T[];
  readonly pageInfo: PageInfo;
}

/**
 * A Relay connection of some type. `nodes` is what `edges { node }` is, for those who need no cursor of each row.
 *
 * @example export class AgentConnection extends connectionOf(Agent, 'Agent') {}
 */
export function connectionOf<T extends object>(Item: Type<T>, name: string): Type<Connection<T>> {
  @ObjectType(`${name}Edge`)
  class Edge {
    @Field(() => String) cursor!: string;
    @Field(() => Item) node!: T;
  }

  @ObjectType({ isAbstract: true })
  class Page implements Connection<T> {
    @Field(() => [Edge]) edges!: readonly Edge[];
    @Field(() => [Item]) nodes!: readonly T[];
    @Field(() => PageInfo) pageInfo!: PageInfo;
  }
  return Page;
}

export function toConnection<Row, T>(page: Page<Row>, shown: (row: Row) => T): Connection<T> {
  const nodes = page.rows.map(shown);
  const { cursors, next, hasPrevious } = page;
  return {
    nodes,
    edges: nodes.map((node, i) => ({ node, cursor: cursors[i] ?? '' })),
    pageInfo: {
      hasNextPage: next !== undefined,
      hasPreviousPage: hasPrevious,
      startCursor: cursors[0] ?? null,
      endCursor: cursors.at(-1) ?? null,
    },
  };
}

/** What is whole already: a page with everything on it. */
export const wholePage = <Row>(all: readonly Row[]): Page<Row> => ({
  rows: all,
  cursors: all.map((_row, i) => Buffer.from(JSON.stringify(['', `${i}`])).toString('base64url')),
  next: undefined,
  hasPrevious: false,
});

/** Where there are no rows. */
export const emptyPage: Page<never> = { rows: [], cursors: [], next: undefined, hasPrevious: false };
