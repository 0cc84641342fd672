import Fastify, { type FastifyInstance } from 'fastify';
import mercurius from 'mercurius';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ResponseCache } from './response-cache.js';

const schema = `
  type Query { leaderboard(game: String!): [Standing!]! mine: String }
  type Standing { rank: Int! agentId: String! agent: Agent }
  type Agent { name: String! }
`;
const BOARD = '{ leaderboard(game: "go") { rank agentId } }';

describe('answers that are remembered', () => {
  let fastify: FastifyInstance;
  let leader: string;
  let asked: number;
  let changes: number | undefined;
  let day: string;
  let meanwhile: () => void;
  beforeEach(async () => {
    [leader, asked, changes, day, meanwhile] = ['ada.bot', 0, 1, '2026-01-01', () => {}];
    const ports = { changes: { of: () => changes }, clock: () => `${day}T12:00:00.000Z` };
    const remembered = new ResponseCache(ports as never);
    const leaderboard = async (_: unknown, { game }: { game: string }) => {
      asked += 1;
      meanwhile();
      if (game === 'none') throw new Error('There is no such game.');
      return [{ rank: 1, agentId: leader, agent: { name: leader } }];
    };
    fastify = Fastify();
    await fastify.register(mercurius, {
      schema,
      resolvers: { Query: { leaderboard, mine: () => 'mine' } },
      additionalRouteOptions: remembered.around(async () => {}, true),
    });
    remembered.watch(fastify);
    await fastify.ready();
  });
  afterEach(() => fastify.close());

  const ask = async (query: string, more: { headers?: Record<string, string>; variables?: object } = {}) => {
    const payload = { query, ...(more.variables ? { variables: more.variables } : {}) };
    const answer = await fastify.inject({ method: 'POST', url: '/graphql', headers: more.headers ?? {}, payload });
    return answer.json();
  };
  const leads = (agentId: string) => ({ data: { leaderboard: [{ rank: 1, agentId }] } });

  it('are given again without being made again', async () => {
    expect(await ask(BOARD)).toEqual(leads('ada.bot'));
    expect(await ask(BOARD)).toEqual(leads('ada.bot'));
    expect(asked).toBe(1);
  });

  it.each([
    ['a row of their view changes', () => (changes = 2)],
    ['a day passes', () => (day = '2026-01-02')],
  ])('hold until %s', async (_when, change) => {
    await ask(BOARD);
    leader = 'bob.bot';
    change();
    expect(await ask(BOARD)).toEqual(leads('bob.bot'));
    expect(await ask(BOARD)).toEqual(leads('bob.bot'));
    expect(asked).toBe(2);
  });

  it('are not kept when a row changes while they are made', async () => {
    meanwhile = () => {
      changes = 2;
    };
    await ask(BOARD);
    await ask(BOARD);
    expect(asked).toBe(2);
  });

  it('are told apart by their variables', async () => {
    const query = 'query ($game: String!) { leaderboard(game: $game) { rank agentId } }';
    await ask(query, { variables: { game: 'go' } });
    await ask(query, { variables: { game: 'chess' } });
    await ask(query, { variables: { game: 'go' } });
    expect(asked).toBe(2);
  });

  it.each([
    ['by somebody who signs in', BOARD, { authorization: 'Bearer x' }],
    ['for more than the rows of the view', '{ leaderboard(game: "go") { agent { name } } }', {}],
    ['for something else as well', '{ leaderboard(game: "go") { rank } mine }', {}],
    ['by a fragment', '{ leaderboard(game: "go") { ...all } } fragment all on Standing { rank }', {}],
    ['in vain', '{ leaderboard(game: "none") { rank } }', {}],
  ])('are made anew for what is asked %s', async (_what, query, headers) => {
    await ask(query, { headers });
    await ask(query, { headers });
    expect(asked).toBe(2);
  });

  it('are made anew where nobody tells of changes', async () => {
    changes = undefined;
    await ask(BOARD);
    await ask(BOARD);
    expect(asked).toBe(2);
  });
});
