import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { LiveMatches } from '../live/matches.js';
import type { GatewayPorts } from '../ports.js';
import { globalId } from './relay.js';
import { clientOf, type Result, take } from './socket.contract.js';
import { type SubscriptionContext, Subscriptions } from './subscriptions.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-graphql-'));
let arena: Arena;
let url: string;
let operator: Record<string, string>;
let client: Client;
let matchId: string;

const ask = async (query: string, variables: object = {}, headers: Record<string, string> = {}): Promise<Result> => {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as Result;
};
const read = async (query: string, variables: object = {}) => {
  const { data, errors = [] } = await ask(query, variables, operator);
  expect(errors).toEqual([]);
  return data;
};
const command = async (mutation: string) => {
  const { data, errors = [] } = await ask(`mutation { ${mutation} }`, {}, operator);
  expect(errors).toEqual([]);
  return Object.values<{ id: string }>(data)[0]!;
};
const register = (accountId: string) => command(`registerOwner(accountId: "${accountId}", displayName: "x") { id }`);
const propose = (seed: string) =>
  command(`proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], seed: "${seed}") { id }`);
const settled = async (id: string) => {
  const look = async () => (await read(`{ match(matchId: "${id}") { status } }`)).match?.status;
  await vi.waitFor(async () => expect(await look()).toBe('settled'), { timeout: 60_000 });
};

beforeAll(async () => {
  arena = await arenaOfSpec({ dataDir: folder });
  url = await arena.listen();
  const token = readFileSync(join(folder, 'operator.token'), 'utf8');
  operator = { authorization: `Bearer ${token}` };
  client = clientOf(url, operator);
  for (const owner of ['ada', 'bob']) {
    await register(owner);
    const source = 'function act(o) { return o.legal[0] }';
    for (const name of ['bot', 'cat', 'dog']) {
      await command(
        `submitAgent(ownerId: "${owner}", name: "${name}", games: ["tic-tac-toe"], source: "${source}") { id }`,
      );
    }
  }
  matchId = (await propose('1')).id;
  const more = [await propose('2'), await propose('3')];
  for (const id of [matchId, ...more.map((each) => each.id)]) await settled(id);
  await arena.settled();
}, 120_000);

afterAll(async () => {
  await client?.dispose();
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface PageShape {
  readonly edges: { cursor: string; node: Record<string, string> }[];
  readonly pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string; endCursor: string };
}
const PAGE = 'edges { cursor node { ITEM } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';

/** Every connection of the schema's root, with what it needs besides a page, and what tells its rows apart. */
const connections: readonly [field: string, args: string, item: string][] = [
  ['accounts', '', 'accountId'],
  ['agents', '', 'agentId'],
  ['matches', '', 'matchId'],
  ['runners', '', 'runnerId'],
  ['balances', '', 'account'],
  ['leaderboardConnection', 'game: "tic-tac-toe"', 'agentId'],
  ['headToHeadConnection', 'game: "tic-tac-toe"', 'agentId'],
  ['ratingHistoryConnection', 'game: "tic-tac-toe", agentId: "ada.bot"', 'matchId'],
  ['statement', 'accountId: "ada"', 'position'],
  ['payments', 'accountId: "ada"', 'paymentId'],
  ['deadLettersConnection', '', 'eventId'],
  ['auditTrail', 'accountId: "ada"', 'position'],
];
const pageOf = async (field: string, args: string, item: string, page: string): Promise<PageShape> => {
  const query = `{ ${field}(${[args, page].filter(Boolean).join(', ')}) { ${PAGE.replace('ITEM', item)} } }`;
  const { data, errors = [] } = await ask(query, {}, operator);
  expect(errors).toEqual([]);
  return data[field];
};

describe('connections', () => {
  it('has room for every position of every log: byte offsets pass 32 bits', async () => {
    const { __schema } = await read('{ __schema { types { name fields { name type { name ofType { name } } } } } }');
    type Named = { name: string; type: { name: string | null; ofType: { name: string } | null } };
    const types = __schema.types as { name: string; fields: Named[] | null }[];
    const positions = types.flatMap(({ name, fields }) =>
      (fields ?? [])
        .filter((field) => /^(position|total|lagEvents)$/.test(field.name))
        .map(({ name: field, type }) => [`${name}.${field}`, type.name ?? type.ofType?.name]),
    );
    expect(positions.length).toBeGreaterThan(4);
    expect(positions.filter(([, type]) => type === 'Int')).toEqual([]);
  });

  it('are all known to this specification', async () => {
    const { __schema } = await read('{ __schema { queryType { fields { name type { name ofType { name } } } } } }');
    type Typed = { name: string; type: { name: string | null; ofType: { name: string } | null } };
    const named = (__schema.queryType.fields as Typed[]).filter(({ type }) =>
      /Connection$/.test(type.ofType?.name ?? type.name ?? ''),
    );
    expect(named.map(({ name }) => name).sort()).toEqual(connections.map(([field]) => field).sort());
  });

  it.each(connections)(
    '%s: one by one forwards and backwards is the same as all at once',
    async (field, args, item) => {
      const whole = await pageOf(field, args, item, 'first: 200');
      const items = whole.edges.map(({ node }) => node[item]);
      expect(whole.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: false });
      const forwards: unknown[] = [];
      for (let after = ''; ; ) {
        const page = await pageOf(field, args, item, `first: 1${after}`);
        forwards.push(...page.edges.map(({ node }) => node[item]));
        if (!page.pageInfo.hasNextPage) break;
        after = `, after: "${page.pageInfo.endCursor}"`;
      }
      expect(forwards).toEqual(items);
      const backwards: unknown[] = [];
      for (let before = ''; ; ) {
        const page = await pageOf(field, args, item, `last: 1${before}`);
        backwards.unshift(...page.edges.map(({ node }) => node[item]));
        if (!page.pageInfo.hasPreviousPage) break;
        before = `, before: "${page.pageInfo.startCursor}"`;
      }
      expect(backwards).toEqual(items);
    },
  );

  const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const cursors = ['', '?', 'aGVsbG8', json(['x']), json(['accounts', 'accountId']), json(null), 'A'.repeat(5_000)];
  it.each(connections)('%s: refuses pages and cursors that make no sense', async (field, args) => {
    const codeOf = async (page: string) => {
      const query = `{ ${field}(${[args, page].filter(Boolean).join(', ')}) { pageInfo { hasNextPage } } }`;
      return (await ask(query, {}, operator)).errors?.[0]?.extensions?.code;
    };
    for (const page of ['first: 1000000000', 'first: 0', 'first: -1', 'last: 201', 'first: 1, last: 1']) {
      expect(await codeOf(page), page).toBe('QUERY.BAD_PAGE');
    }
    for (const cursor of cursors) {
      expect(await codeOf(`after: "${cursor}"`), cursor).toBe('QUERY.BAD_CURSOR');
      expect(await codeOf(`last: 1, before: "${cursor}"`), cursor).toBe('QUERY.BAD_CURSOR');
    }
  });

  it('take no cursor of another connection, and none that somebody has altered', async () => {
    const { pageInfo } = await pageOf('matches', '', 'matchId', 'first: 1');
    const code = async (cursor: string, field = 'matches') => {
      const { errors } = await ask(`{ ${field}(after: ${JSON.stringify(cursor)}) { pageInfo { endCursor } } }`);
      return errors?.[0]?.extensions?.code;
    };
    expect(await code(pageInfo.endCursor)).toBeUndefined();
    expect(await code(pageInfo.endCursor, 'agents')).toBe('QUERY.BAD_CURSOR');
    for (const value of ["1' OR 1=1", '1e9', '9'.repeat(19), '-1', 1, null, '\0']) {
      expect(await code(json(['matches', 'position', value])), `${value}`).toBe('QUERY.BAD_CURSOR');
    }
    expect(await code(json(['agents', 'agentId', 'a\0b']), 'agents')).toBe('QUERY.BAD_CURSOR');
  });

  it('lose and repeat nothing while rows come in before and behind the page', async () => {
    for (const name of ['m1', 'm3', 'm5', 'm7']) await register(name);
    const seen: string[] = [];
    let after = `, after: "${json(['accounts', 'accountId', 'm'])}"`;
    for (const added of ['m2', 'm6', 'm0', 'm8']) {
      const page = await pageOf('accounts', '', 'accountId', `first: 1${after}`);
      seen.push(...page.edges.map(({ node }) => node.accountId!));
      after = `, after: "${page.pageInfo.endCursor}"`;
      await register(added);
    }
    const rest = await pageOf('accounts', '', 'accountId', `first: 200${after}`);
    seen.push(...rest.edges.map(({ node }) => node.accountId!));
    expect(seen).toEqual(['m1', 'm2', 'm3', 'm5', 'm6', 'm7', 'm8']);
  });

  it('count ranks on from page to page, by either rating', async () => {
    for (const by of ['elo', 'glicko']) {
      const board = (page: string) =>
        read(
          `{ leaderboardConnection(game: "tic-tac-toe", by: "${by}", ${page}) { edges { cursor node { rank agentId } } } }`,
        );
      const all = (await board('first: 10')).leaderboardConnection.edges;
      expect(all.map(({ node }: { node: { rank: number } }) => node.rank)).toEqual([1, 2]);
      const second = (await board(`first: 1, after: "${all[0].cursor}"`)).leaderboardConnection.edges;
      expect(second).toEqual([all[1]]);
      expect((await board('last: 1')).leaderboardConnection.edges).toEqual([all[1]]);
    }
  });

  it('reach from one thing to the next', async () => {
    const { agent, match } = await read(`{
      agent(agentId: "ada.bot") {
        owner { accountId agents(first: 2) { nodes { agentId } pageInfo { hasNextPage } } }
        versionsConnection(last: 1) { nodes { version agentId } }
        matches(first: 2, status: "settled") { nodes { game } pageInfo { hasNextPage } }
        ratingHistory(game: "tic-tac-toe", first: 1) { nodes { match { status } } pageInfo { hasNextPage } }
      }
      match(matchId: "${matchId}") {
        lease { runnerId }
        seats { agent { agentId } }
        transcriptConnection(first: 2) { edges { cursor node { turn } } pageInfo { endCursor } }
      }
    }`);
    expect(agent.owner).toEqual({
      accountId: 'ada',
      agents: { nodes: [{ agentId: 'ada.bot' }, { agentId: 'ada.cat' }], pageInfo: { hasNextPage: true } },
    });
    expect(agent.versionsConnection.nodes).toEqual([{ version: 1, agentId: 'ada.bot' }]);
    expect(agent.matches).toEqual({ nodes: Array(2).fill({ game: 'tic-tac-toe' }), pageInfo: { hasNextPage: true } });
    expect(agent.ratingHistory).toMatchObject({
      nodes: [{ match: { status: 'settled' } }],
      pageInfo: { hasNextPage: true },
    });
    expect(match.lease).toBeNull();
    expect(match.seats.map(({ agent: { agentId } }: { agent: { agentId: string } }) => agentId)).toEqual([
      'ada.bot',
      'bob.bot',
    ]);
    const { edges, pageInfo } = match.transcriptConnection;
    expect(edges.map(({ node }: { node: { turn: number } }) => node.turn)).toEqual([1, 2]);
    const next = `{ match(matchId: "${matchId}") { transcriptConnection(first: 1, after: "${pageInfo.endCursor}") { nodes { turn } } } }`;
    expect((await read(next)).match.transcriptConnection.nodes).toEqual([{ turn: 3 }]);
  });
});

describe('node(id)', () => {
  it('finds again whatever has an id', async () => {
    const found = await read(`{
      accounts(first: 1) { nodes { id } } agents(first: 1) { nodes { id versions { id } } }
      matches(first: 1) { nodes { id } } runners(first: 1) { nodes { id } } projections { id }
    }`);
    const ids: string[] = [
      ...[found.accounts, found.agents, found.matches, found.runners].map(({ nodes }) => nodes[0].id),
      found.agents.nodes[0].versions[0].id,
      found.projections[0].id,
    ];
    const kinds = ['Account', 'Agent', 'Match', 'Runner', 'AgentVersion', 'Projection'];
    const { nodes } = await read('query ($ids: [ID!]!) { nodes(ids: $ids) { id __typename } }', { ids });
    expect(nodes).toEqual(ids.map((id, i) => ({ id, __typename: kinds[i] })));
    const one = await read('query ($id: ID!) { node(id: $id) { ... on Agent { agentId } } }', { id: ids[1] });
    expect(one.node).toEqual({ agentId: 'ada.bot' });
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('is null for what is not there, and refuses what is no id', async () => {
    const look = (id: string) => ask('query ($id: ID!) { node(id: $id) { id } }', { id });
    for (const id of [globalId('Agent', 'none'), globalId('AgentVersion', 'ada.bot', 7), globalId('Projection', 'x')]) {
      expect(await look(id)).toEqual({ data: { node: null } });
    }
    const strange = [globalId('Wallet', 'ada'), globalId('__proto__', 'x'), 'ada.bot', '', 'x'.repeat(10_000)];
    for (const id of strange) expect((await look(id)).errors?.[0]?.extensions?.code, id).toBe('QUERY.BAD_ID');
    expect((await look(globalId('Agent', 'a\0b'))).errors?.[0]?.extensions?.code).toBe('QUERY.BAD_TEXT');
    const ids = Array(101).fill(globalId('Agent', 'ada.bot'));
    const many = await ask('query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids });
    expect(many.errors?.[0]?.extensions?.code).toBe('QUERY.BAD_PAGE');
  });

  it('opens nothing that is not open by name: a payment is for its owner and for staff', async () => {
    await arena.database.query(
      `INSERT INTO payments VALUES ('p1', 'ada', 'deposit', 5, 'USD', 'open', NULL, '', now(), now(), 1, 0)`,
    );
    const id = globalId('Payment', 'p1');
    const look = (headers: Record<string, string>) =>
      ask('query ($id: ID!) { node(id: $id) { ... on Payment { amountCents } } }', { id }, headers);
    expect((await look({})).data.node).toBeNull();
    expect((await look({ authorization: 'Bearer nope' })).data.node).toBeNull();
    expect((await look(operator)).data.node).toEqual({ amountCents: '5' });
    await arena.database.query(`DELETE FROM payments`);
  });
});

describe('reading many rows', () => {
  const rounds = async (query: string): Promise<number> => {
    const { reads: database } = arena;
    const { query: plain } = database;
    let statements = 0;
    database.query = ((...args: Parameters<typeof plain>) => {
      if (!/checkpoints|dead_letters|INSERT|UPDATE/.test(args[0])) statements += 1;
      return plain.apply(database, args);
    }) as typeof plain;
    try {
      await read(query);
    } finally {
      database.query = plain;
    }
    expect(statements).toBeGreaterThan(0);
    return statements;
  };

  it.each<[string, (first: number) => string, number]>([
    ['versions of agents', (n) => `{ agents(first: ${n}) { nodes { versions { version } } } }`, 2],
    ['pages of versions', (n) => `{ agents(first: ${n}) { nodes { versionsConnection { nodes { version } } } } }`, 2],
    ['owners of agents', (n) => `{ agents(first: ${n}) { nodes { owner { displayName } } } }`, 2],
    ['matches of agents', (n) => `{ agents(first: ${n}) { nodes { matches { nodes { status } } } } }`, 2],
    ['agents of owners', (n) => `{ accounts(first: ${n}) { nodes { agents { nodes { name } } } } }`, 2],
    [
      'ratings of agents',
      (n) => `{ agents(first: ${n}) { nodes { ratingHistory(game: "tic-tac-toe") { nodes { after } } } } }`,
      2,
    ],
    ['transcripts', (n) => `{ matches(first: ${n}) { nodes { transcript { turn } } } }`, 2],
    [
      'pages of transcripts',
      (n) => `{ matches(first: ${n}) { nodes { transcriptConnection { nodes { turn } } } } }`,
      2,
    ],
    ['leases', (n) => `{ matches(first: ${n}) { nodes { lease { runnerId } } } }`, 2],
    ['agents in seats', (n) => `{ matches(first: ${n}) { nodes { seats { agent { name } } } } }`, 2],
    ['agents on a board', (n) => `{ leaderboard(game: "tic-tac-toe", first: ${n}) { agent { name } } }`, 2],
    [
      'matches of a history',
      (n) => `{ ratingHistory(game: "tic-tac-toe", agentId: "ada.bot", first: ${n}) { match { status } } }`,
      2,
    ],
    ['what runners have in hand', (n) => `{ runners(first: ${n}) { nodes { leases { nodes { attempt } } } } }`, 2],
    [
      'all of it',
      (n) =>
        `{ matches(first: ${n}) { nodes { transcript { turn } lease { attempt } seats { agent { versions { version } owner { displayName } } } } } }`,
      6,
    ],
  ])('takes as many statements for many as for one: %s', async (_what, query, statements) => {
    await arena.settled();
    expect(await rounds(query(1))).toBeLessThanOrEqual(statements);
    expect(await rounds(query(20))).toBeLessThanOrEqual(statements);
  });

  it('fetches things by their ids in one statement a kind', async () => {
    const ids = ['ada.bot', 'ada.cat', 'ada.dog', 'bob.bot'].map((each) => `"${globalId('Agent', each)}"`);
    expect(await rounds(`{ nodes(ids: [${ids.join(', ')}, "${globalId('Account', 'ada')}"]) { id } }`)).toBe(2);
  });
});

describe('the queue and the runners', () => {
  it('are shown, with reasons and with what each has in hand', async () => {
    const { queue, runners } = await read(`{
      queue { proposed ready playing matches { nodes { matchId } } agents { agentId reason } }
      runners { nodes { runnerId status claimed played leases { nodes { matchId } } } }
    }`);
    expect(queue).toEqual({ proposed: 0, ready: 0, playing: 0, matches: { nodes: [] }, agents: [] });
    expect(runners.nodes).toMatchObject([{ status: 'registered', claimed: 3, played: 3, leases: { nodes: [] } }]);
    const { errors } = await ask('{ queue { matches(status: "settled") { nodes { matchId } } } }');
    expect(errors?.[0]?.extensions?.code).toBe('QUERY.BAD_FILTER');
  });

  it('name a match that waits for its stakes, and say so', async () => {
    await arena.database.query(
      `INSERT INTO matches SELECT 'waits', game, seed, 'proposed', 'escrow', 'Waiting for the stakes.', seats, winner, stake_cents,
       pot_cents, rake_cents, currency, 0, 0, proposed_at, NULL, 1 FROM matches LIMIT 1`,
    );
    const { queue } = await read('{ queue { proposed matches { nodes { matchId status reason detail } } } }');
    const waits = { matchId: 'waits', status: 'proposed', reason: 'escrow', detail: 'Waiting for the stakes.' };
    expect(queue).toEqual({ proposed: 1, matches: { nodes: [waits] } });
    await arena.database.query(`DELETE FROM matches WHERE match_id = 'waits'`);
  });
});

describe('what happens, over WebSocket', () => {
  it('is heard of a match: each turn once, in order, and the end', async () => {
    const { id } = await propose('live');
    const moments = `subscription { liveMatch(matchId: "${id}") { cursor turn { turn seat action } ended { status seed } } }`;
    const heard = (await take(client, moments)).map(({ data, errors = [] }) => {
      expect(errors).toEqual([]);
      return data.liveMatch;
    });
    const { transcript } = (await read(`{ match(matchId: "${id}") { transcript { turn seat action } } }`)).match;
    expect(heard.slice(0, -1).map(({ turn }) => turn)).toEqual(transcript);
    expect(heard.at(-1)).toEqual({ cursor: null, turn: null, ended: { status: 'settled', seed: 'live' } });
    const rest = await take(
      client,
      `subscription { liveMatch(matchId: "${id}", after: "${heard[2].cursor}") { turn { turn } ended { status } } }`,
    );
    expect(rest.slice(0, -1).map(({ data }) => data.liveMatch.turn.turn)).toEqual(
      transcript.slice(3).map(({ turn }: { turn: number }) => turn),
    );
  }, 60_000);

  it.each([
    ['liveMatch(matchId: "none") { cursor }', 'ARENA.UNKNOWN_MATCH'],
    ['liveMatch(matchId: "none", after: "x") { cursor }', 'QUERY.BAD_CURSOR'],
    ['liveMatch(matchId: "a\\u0000") { cursor }', 'QUERY.BAD_TEXT'],
  ])('is refused with a code: %s', async (field, code) => {
    const [result] = await take(client, `subscription { ${field} }`);
    expect(result?.errors?.[0]?.extensions?.code).toBe(code);
  });

  it('is heard of a match as late as spectators may hear of it', async () => {
    const order: string[] = [];
    const hear = async (name: string, spectatorDelayMs: number) => {
      const { database } = arena;
      const ports = { database, live: new LiveMatches(), visible: async () => {}, spectatorDelayMs };
      const context = { drop: () => {} } as SubscriptionContext;
      const moments = await new Subscriptions(ports as unknown as GatewayPorts).liveMatch(matchId, undefined, context);
      for await (const { liveMatch } of moments) order.push(`${name} ${liveMatch.cursor}`);
    };
    const late = hear('late', 1_000);
    await Promise.all([late, hear('at once', 0)]);
    const firstLate = order.findIndex((each) => each.startsWith('late'));
    expect(firstLate).toBe(order.length / 2);
    expect(order.slice(firstLate).map((each) => each.replace('late', 'at once'))).toEqual(order.slice(0, firstLate));
  });

  it('is heard of the queue when it changes, and of what waits in it', async () => {
    const heard: { ready: number; playing: number; proposed: number }[] = [];
    const stop = client.subscribe<{ queue: (typeof heard)[number] }>(
      { query: 'subscription { queue { proposed ready playing matches { nodes { status } } } }' },
      { next: ({ data }) => data && heard.push(data.queue), error: () => {}, complete: () => {} },
    );
    await expect.poll(() => heard.length).toBe(1);
    expect(heard[0]).toMatchObject({ proposed: 0, ready: 0, playing: 0, matches: { nodes: [] } });
    const busy = () => heard.some(({ proposed: p, ready, playing }) => p + ready + playing > 0);
    // Matches may be over before anybody has looked, since the queue is told of now and then: so there are more until one is seen.
    const proposed: { id: string }[] = [];
    for (const until = Date.now() + 60_000; !busy() && Date.now() < until; ) {
      proposed.push(...(await Promise.all(Array.from({ length: 6 }, () => propose(`q${proposed.length}`)))));
    }
    expect(busy()).toBe(true);
    for (const { id } of proposed) await settled(id);
    await expect.poll(() => heard.at(-1), { timeout: 20_000 }).toMatchObject({ proposed: 0, ready: 0, playing: 0 });
    stop();
  }, 120_000);

  it('is heard of how far the views are', async () => {
    const [first] = await take(client, 'subscription { projections { view lagEvents position } }', 1);
    const views = first?.data.projections.map(({ view }: { view: string }) => view);
    expect(views).toEqual(['agents', 'matches', 'leaderboards', 'balances', 'payments', 'runners', 'accounts']);
    const heard: Record<string, number>[] = [];
    const stop = client.subscribe<{ projections: { view: string; position: number }[] }>(
      { query: 'subscription { projections { view position } }' },
      {
        next: ({ data }) => data && heard.push(Object.fromEntries(data.projections.map((p) => [p.view, p.position]))),
        error: () => {},
        complete: () => {},
      },
    );
    await expect.poll(() => heard.length).toBe(1);
    await register('lag');
    await expect.poll(() => heard.at(-1)?.agents, { timeout: 10_000 }).toBe(await arena.store.lastPosition());
    stop();
  });
});

const many = (count: number, make: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => make(i)).join(' ');
const deep = (levels: number): string =>
  levels === 0 ? 'name' : `matches(first: 1) { nodes { seats { agent { ${deep(levels - 1)} } } } }`;
const viaNodes = (levels: number) => `seats { agent { ${deep(levels)} } }`;

/** Each as a query and as a subscription: the same rules hold, whichever way it comes. */
const hostile: readonly [name: string, query: string, subscription: string, code: string][] = [
  [
    'a depth of fifty',
    `{ match(matchId: "x") { ${viaNodes(12)} } }`,
    `subscription { liveMatch(matchId: "x") { ended { ${viaNodes(12)} } } }`,
    'QUERY.TOO_DEEP',
  ],
  [
    'a thousand aliases',
    `{ ${many(1_000, (i) => `a${i}: games`)} }`,
    `subscription { queue { ${many(1_000, (i) => `a${i}: ready`)} } }`,
    'QUERY.TOO_MANY_ALIASES',
  ],
  [
    'a cycle of fragments',
    '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }',
    'subscription { queue { ...A } } fragment A on Queue { ...B } fragment B on Queue { ...A }',
    'QUERY.INVALID',
  ],
  [
    'fragments that double thirty times',
    `{ queue { ...F30 } } fragment F0 on Queue { ready } ${many(30, (i) => `fragment F${i + 1} on Queue { ...F${i} ...F${i} }`)}`,
    `subscription { queue { ...F30 } } fragment F0 on Queue { ready } ${many(30, (i) => `fragment F${i + 1} on Queue { ...F${i} ...F${i} }`)}`,
    'QUERY.TOO_WIDE',
  ],
  [
    'pages within pages',
    '{ queue { matches(first: 200) { nodes { transcriptConnection(first: 200) { nodes { turn } } } } } }',
    'subscription { queue { matches(first: 200) { nodes { transcriptConnection(first: 200) { nodes { turn } } } } } }',
    'QUERY.TOO_COSTLY',
  ],
  [
    'a thousand million rows',
    '{ queue { matches(first: 1000000000) { nodes { matchId } } } }',
    'subscription { queue { matches(first: 1000000000) { nodes { matchId } } } }',
    'QUERY.BAD_PAGE',
  ],
  [
    'ten thousand tokens',
    `{ ${'games '.repeat(10_000)} }`,
    `subscription { queue { ${'ready '.repeat(10_000)} } }`,
    'QUERY.INVALID',
  ],
  ['a field that is none', '{ nonsense }', 'subscription { nonsense }', 'QUERY.INVALID'],
  ['half of it', '{', 'subscription {', 'QUERY.INVALID'],
  [
    'two subscriptions in one',
    '{ nonsense }',
    'subscription { queue { ready } projections { view } }',
    'QUERY.INVALID',
  ],
];

describe('what asks for too much', () => {
  it.each(hostile)('is refused over HTTP: %s', async (_name, query, _subscription, code) => {
    const { errors = [] } = await ask(query);
    expect(errors.map(({ extensions }) => extensions?.code)).toContain(code);
    expect(errors.length).toBeLessThanOrEqual(21);
  });

  it.each(hostile)('is refused over WebSocket: %s', async (_name, _query, subscription, code) => {
    const [result] = await take(client, subscription, 1);
    expect(result?.errors?.map(({ extensions }) => extensions?.code)).toContain(code);
    expect(result?.errors?.length).toBeLessThanOrEqual(21);
  });

  it('is refused in batches', async () => {
    const { errors } = (await (
      await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(Array.from({ length: 1_000 }, () => ({ query: '{ games }' }))),
      })
    ).json()) as Result;
    expect(errors?.[0]?.extensions?.code).toBe('QUERY.INVALID');
  });

  it('with a NUL in it is refused by a code and not by the database', async () => {
    for (const query of [
      '{ agent(agentId: "a\\u0000") { name } }',
      '{ agents(ownerId: "a\\u0000") { nodes { name } } }',
      '{ matches(agentId: "a\\u0000") { nodes { game } } }',
      '{ matches(game: "a\\u0000") { nodes { game } } }',
      '{ statement(accountId: "a\\u0000") { nodes { at } } }',
      '{ agent(agentId: "ada.bot") { matches(game: "\\u0000") { nodes { game } } } }',
    ]) {
      expect((await ask(query, {}, operator)).errors?.[0]?.extensions?.code, query).toBe('QUERY.BAD_TEXT');
    }
  });
});

describe('an arena with a list of queries', () => {
  const own = mkdtempSync(join(tmpdir(), 'agon-listed-'));
  afterAll(() => rmSync(own, { recursive: true, force: true }));
  const start = (queries: string[]) => {
    const persistedQueries = join(own, 'queries.json');
    const listed = queries.map((text) => [createHash('sha256').update(text).digest('hex'), text]);
    writeFileSync(persistedQueries, JSON.stringify(Object.fromEntries(listed)));
    return arenaOfSpec({ dataDir: join(own, 'data'), persistedQueries, runner: false });
  };

  it('does not start with one that it could not answer', async () => {
    const listed = await start(['{ games nonsense }']);
    await expect(listed.listen()).rejects.toMatchObject({ code: 'CONFIG.INVALID' });
    await listed.stop();
  }, 60_000);

  it('answers strangers what is on it, and its operator anything', async () => {
    const listed = await start(['{ games }']);
    const at = await listed.listen();
    const token = readFileSync(join(own, 'data', 'operator.token'), 'utf8');
    const codeOf = async (query: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`${at}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ query }),
      });
      return ((await response.json()) as Result).errors?.[0]?.extensions?.code;
    };
    expect(await codeOf('{ games }')).toBeUndefined();
    expect(await codeOf('{ queue { ready } }')).toBe('QUERY.NOT_PERSISTED');
    expect(await codeOf('{ queue { ready } }', { authorization: `Bearer ${token}` })).toBeUndefined();
    const stranger = clientOf(at);
    const [heard] = await take(stranger, 'subscription { queue { ready } }', 1);
    expect(heard?.errors?.[0]?.extensions?.code).toBe('QUERY.NOT_PERSISTED');
    await stranger.dispose();
    await listed.stop();
  }, 60_000);
});
