import type { Type } from '@nestjs/common';
import { Field, ID, Int, InterfaceType } from '@nestjs/graphql';
import { PAGE_MAX, type Page, type PageRequest } from '../../projections/engine/page.js';
import { AgonError } from '../../services/kernel/index.js';
import { declareType, maybe, objectType, type Shape, type ValuesOf } from './declare.js';

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

/** @example nodeType('Runner', 'Plays matches.', { runnerId: String }) */
export const nodeType = <const S extends Shape>(name: string, description: string, shape: S) =>
  declareType(class extends Node {} as Type<ValuesOf<S> & Node>, name, description, shape, {
    implements: () => [Node],
  });

const PageInfo = objectType('PageInfo', '', {
  hasNextPage: Boolean,
  hasPreviousPage: Boolean,
  startCursor: maybe(String),
  endCursor: maybe(String),
});

const ROWS = maybe(Int, `1 to ${PAGE_MAX}; 20 when nothing is said.`);

/** What every connection takes: the first rows after a cursor, or the last ones before one. */
export const PAGE = { first: ROWS, after: maybe(String), last: ROWS, before: maybe(String) };

/** What of a field's arguments is about the page. */
export const pageIn = ({ first, after, last, before }: PageRequest): PageRequest => ({ first, after, last, before });

const connections = new Map<Type, Type>();

/** A Relay connection of some type. `nodes` is what `edges { node }` is, for those who need no cursor of each row. */
export function connectionOf(Item: Type, name = Item.name): Type {
  const known = connections.get(Item);
  if (known) return known;
  const Edge = objectType(`${Item.name}Edge`, '', { cursor: String, node: Item });
  const made = objectType(`${name}Connection`, '', { edges: [Edge], nodes: [Item], pageInfo: PageInfo });
  connections.set(Item, made);
  return made;
}

/** Where there are no rows. */
const EMPTY: Page<never> = { rows: [], cursors: [], next: undefined, hasPrevious: false };

export function toConnection<Row>(page: Page<Row> = EMPTY, shown: (row: Row) => unknown = (row) => row) {
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

export const shownIf = <Row, T>(row: Row | undefined, shown: (row: Row) => T): T | null =>
  row === undefined ? null : shown(row);

/** What is whole already: a page with everything on it. */
export const wholePage = <Row>(all: readonly Row[]): Page<Row> => ({
  rows: all,
  cursors: all.map((_row, i) => Buffer.from(JSON.stringify(['', `${i}`])).toString('base64url')),
  next: undefined,
  hasPrevious: false,
});
