import { buildSchema, getIntrospectionQuery, parse, specifiedRules, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { batched, grouped } from './batch.js';
import { queryLimits, queryLimitsRule } from './limits.js';

const schema = buildSchema(`
  interface Node { id: ID! }
  type Query { node(id: ID!): Node nodes(ids: [ID!]!): [Node]! everybody(first: Int, last: Int): AgentConnection! agents(first: Int): AgentPage! board(first: Int): [Agent!]! agent(id: String!): Agent strengths: [Agent!]! }
  type AgentPage { nodes: [Agent!]! }
  type AgentConnection { edges: [AgentEdge!]! nodes: [Agent!]! }
  type AgentEdge { cursor: String! node: Agent! }
  type Agent implements Node { id: ID! name: String! rival: Agent matches(first: Int): [Match!]! versions: [String!]! }
  type Match { id: String! players: [Agent!]! }
`);
schema.getQueryType()?.getFields().strengths &&
  Object.assign(schema.getQueryType()!.getFields().strengths!.extensions, { cost: 9_999 });

const codesOf = (query: string): string[] =>
  validate(schema, parse(query), [...specifiedRules, queryLimitsRule]).map(({ message, extensions }) =>
    String(extensions.code ?? message),
  );

const rivals = (depth: number): string => (depth === 0 ? 'id' : `rival { ${rivals(depth - 1)} }`);
const many = (count: number, make: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => make(i)).join(' ');
/** Each fragment spreads the one before it twice: the text is short, and what it unfolds to is not. */
const doubling = (levels: number): string =>
  `{ agent(id: "a") { ...F${levels} } } fragment F0 on Agent { id } ` +
  many(levels, (i) => `fragment F${i + 1} on Agent { ...F${i} ...F${i} }`);

describe('the limits of a query', () => {
  it.each<[string, string]>([
    ['a page', '{ agents(first: 200) { nodes { id name } } }'],
    ['a page with lists in it', '{ agents(first: 50) { nodes { id versions matches(first: 20) { id } } } }'],
    ['a page of a size to be named', 'query ($n: Int) { agents(first: $n) { nodes { id name versions } } }'],
    ['thirty aliases', `{ ${many(30, (i) => `a${i}: agent(id: "a") { id }`)} }`],
    ['the depth that is allowed', `{ agent(id: "a") { ${rivals(queryLimits.depthMax - 2)} } }`],
    ['a connection by its edges', '{ everybody(first: 200) { edges { cursor node { id name versions } } } }'],
    ['a connection from its end', '{ everybody(last: 200) { edges { cursor node { id name versions } } } }'],
    ['a hundred things by their ids', `{ nodes(ids: [${many(100, (i) => `"${i}",`)}]) { id ... on Agent { name } } }`],
    ['one dear field', '{ strengths { id } }'],
    ['what GraphiQL asks for', getIntrospectionQuery()],
  ])('let %s pass', (_name, query) => {
    expect(codesOf(query)).toEqual([]);
  });

  it.each<[string, string, string]>([
    ['a depth of fifty', `{ agent(id: "a") { ${rivals(50)} } }`, 'QUERY.TOO_DEEP'],
    [
      'a depth made of fragments',
      `{ agent(id: "a") { ...F0 } } ${many(16, (i) => `fragment F${i} on Agent { rival { ${i < 15 ? `...F${i + 1}` : 'id'} } }`)}`,
      'QUERY.TOO_DEEP',
    ],
    ['a thousand aliases', `{ ${many(1_000, (i) => `a${i}: agent(id: "a") { id }`)} }`, 'QUERY.TOO_MANY_ALIASES'],
    [
      'aliases hidden in a fragment',
      `{ ${many(16, () => '...F ')} } fragment F on Query { a: agent(id: "a") { id } b: agent(id: "b") { id } }`,
      'QUERY.TOO_MANY_ALIASES',
    ],
    ['a field repeated a thousand times', `{ agent(id: "a") { ${many(1_000, () => 'id')} } }`, 'QUERY.TOO_WIDE'],
    ['what doubles thirty times', doubling(30), 'QUERY.TOO_WIDE'],
    [
      'a thousand million rows of rows',
      '{ board(first: 1000000000) { matches { id players { id } } } }',
      'QUERY.TOO_COSTLY',
    ],
    ['pages within pages', '{ board(first: 200) { matches(first: 200) { id } } }', 'QUERY.TOO_COSTLY'],
    [
      'pages of unknown size within each other',
      'query ($n: Int) { board(first: $n) { matches(first: $n) { id } } }',
      'QUERY.TOO_COSTLY',
    ],
    [
      'connections within connections',
      '{ everybody(first: 200) { edges { node { matches(first: 200) { id } } } } }',
      'QUERY.TOO_COSTLY',
    ],
    [
      'pages from the end within each other',
      '{ everybody(last: 200) { nodes { matches(first: 200) { id } } } }',
      'QUERY.TOO_COSTLY',
    ],
    [
      'many things by their ids, with pages in each',
      `{ nodes(ids: [${many(100, (i) => `"${i}",`)}]) { ... on Agent { matches(first: 200) { id } } } }`,
      'QUERY.TOO_COSTLY',
    ],
    [
      'ids in a variable, with pages in each',
      'query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Agent { matches(first: 200) { id } } } }',
      'QUERY.TOO_COSTLY',
    ],
    [
      'a page behind an interface',
      '{ node(id: "a") { ... on Agent { matches(first: 200) { players { matches(first: 200) { id } } } } } }',
      'QUERY.TOO_COSTLY',
    ],
    ['lists within lists', '{ board { matches { players { matches { id } } } } }', 'QUERY.TOO_COSTLY'],
    ['dear fields side by side', '{ strengths { id } b: strengths { id } c: strengths { id } }', 'QUERY.TOO_COSTLY'],
  ])('refuse %s', (_name, query, code) => {
    expect(codesOf(query)).toContain(code);
  });

  it('leave a fragment that spreads itself to GraphQL, and come to an end', () => {
    const cycle = '{ agent(id: "a") { ...A } } fragment A on Agent { ...B } fragment B on Agent { ...A }';
    expect(codesOf(cycle)).toEqual([expect.stringContaining('Cannot spread fragment')]);
  });
});

describe('a batch', () => {
  it('fetches together what is asked for in one breath, and nothing twice', async () => {
    const fetches: (readonly string[])[] = [];
    const load = batched(async (keys) => {
      fetches.push([...keys]);
      return grouped(
        ['a1', 'b1', 'a2'].filter((row) => keys.includes(row.charAt(0))),
        (row) => row.charAt(0),
      );
    });
    expect(await Promise.all([load('a'), load('b'), load('a'), load('c')])).toEqual([
      ['a1', 'a2'],
      ['b1'],
      ['a1', 'a2'],
      undefined,
    ]);
    expect(await load('a')).toEqual(['a1', 'a2']);
    expect(fetches).toEqual([['a', 'b', 'c']]);
  });

  it('fails each of those who asked, and only them', async () => {
    let fail = true;
    const load = batched(async (keys) => {
      if (fail) throw new Error('gone');
      return new Map(keys.map((key) => [key, key]));
    });
    const failed = await Promise.allSettled([load('a'), load('b')]);
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    fail = false;
    expect(await load('c')).toBe('c');
  });
});
