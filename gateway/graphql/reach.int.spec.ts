import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  buildClientSchema,
  extendSchema,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  parse,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { manualClock } from '../../services/kernel/index.js';
import { ADAS, RULES, type Rule } from '../access.contract.js';
import { troubleFor } from './projections.js';
import { globalId } from './relay.js';
import { clientOf, type Result, take } from './socket.contract.js';

/**
 * How far one comes from what is public. Every type has a rule here, and so has every field of a type that everybody may
 * see: a field that is added anywhere in the schema without a rule fails, and what is there is walked by a stranger.
 */
const PUBLIC: Readonly<Record<string, string>> = {
  PageInfo: 'hasNextPage hasPreviousPage startCursor endCursor',
  Account: 'id accountId displayName registeredAt agents',
  Agent:
    'id agentId ownerId name games runtime version codeDigest submittedAt updatedAt owner versions versionsConnection matches ratingHistory',
  AgentVersion: 'id agentId version codeDigest codeBytes publishedAt',
  Seat: 'agentId accountId version codeDigest score payoutCents agent',
  Turn: 'turn seat action fuel',
  Lease: 'matchId runnerId attempt leaseUntil',
  Runner: 'id runnerId publicKey status reason registeredAt seenAt claimed played leases',
  Match:
    'id matchId game seed status reason detail seats winner stakeCents potCents rakeCents currency turns attempts proposedAt endedAt transcript transcriptConnection lease',
  WaitingAgent: 'agentId accountId game stakeCents currency reason',
  Queue: 'proposed ready playing matches agents',
  Confidence: 'rating deviation low high volatility provisional',
  Standing: 'rank season agentId rating confidence streak bestStreak games wins draws losses provisional agent',
  RatingChange: 'season position games matchId before after glicko deviation volatility at match',
  PastRating: 'season position games matchId before after glicko deviation volatility at match confidence',
  HeadToHead: 'agentId opponentId wins draws losses',
  Strength: 'agentId rating low high',
  Build: 'phase position total eventsPerSecond secondsLeft trouble',
  Projection: 'id view version servingVersion position lagEvents deadLetters build lagSeconds',
  TrialBalance: 'currency accounts sumCents',
  MatchesOfDay: 'day game settled voided reversed',
  AgentPerformance: 'agentId game played won drawn lost meanScore netCents',
  TurnPercentiles: 'day turns fuelP50 fuelP90 fuelP99 wallMsP50 wallMsP99',
  MatchLatency: 'game matches waitMsP50 waitMsP90 waitMsP99 playMsP50 playMsP90 playMsP99',
  ResourceUse: 'day driver seats fuel cpuMs wallMs peakMemoryBytes',
  Revenue: 'day currency matches potCents rakeCents paidCents',
  PromptProofs: 'day proofs agents',
  SubmissionFunnel: 'submitted matched played won',
  Analytics:
    'from to matchesPerDay agentPerformance turnPercentiles matchLatency resourceUse revenue promptProofs submissionFunnel',
  PlanOffer: 'planId title priceCents agentsMax matchesPerDayMax requestsPerMinuteMax priority',
  CreditPackOffer: 'packId creditCents priceCents',
  LiveTurn: 'attempt turn seat action',
  LiveMoment: 'cursor turn ended',
};

/** What is somebody's own, or for those who run the arena: whoever leads to one of these has asked who wants to know. */
const PRIVATE: Readonly<Record<Exclude<Rule, 'public'>, string>> = {
  own: 'ApiKey AuditEntry Balance Budget IssuedApiKey Me Membership OnboardingLink Payer Payment Posting Purse Receipt SeatCost Wallet',
  staff: 'BusLetter DeadLetter Replayed',
};

/** The fields that lead to one of those all the same, and why they may. */
const LEADS: Readonly<Record<string, string>> = {
  'Query.node': 'null for whoever may not see it',
  'Query.nodes': 'null for whoever may not see it',
  'Query.me': 'whoever asks',
  'Me.memberOf': 'a part of it',
  'Wallet.purses': 'a part of it',
  'Wallet.budgets': 'a part of it',
  'Replayed.done': 'a part of it',
  'Replayed.left': 'a part of it',
  'TrialBalance.accounts': 'the chart of accounts, with all players in one line',
};

/** Whatever implements Node, as ada has it: looked for by id. */
const IDS: Readonly<Record<string, readonly string[]>> = {
  Account: ['ada'],
  Agent: ['ada.bot'],
  AgentVersion: ['ada.bot', '1'],
  Match: ['MATCH'],
  Runner: ['r-0'],
  Payment: ['p-of-ada'],
  Projection: ['agents'],
};

const ROOTS = Object.keys(RULES);
const words = (text: string) => text.split(' ');
const rankOf = (rule: string) => ['public', 'own', 'staff'].indexOf(rule);

/** A page, or a row of one, is what its rows are. */
const rowOf = (type: GraphQLNamedType): GraphQLNamedType => {
  const row = isObjectType(type) && /(Connection|Edge)$/.test(type.name) ? type.getFields() : {};
  const { nodes = row.node } = row;
  return nodes ? getNamedType(nodes.type) : type;
};
const ruleOf = ({ name }: GraphQLNamedType): Rule | undefined =>
  name in PUBLIC ? 'public' : (['own', 'staff'] as const).find((rule) => words(PRIVATE[rule]).includes(name));

/** What nobody has said anything about, or what was said of nothing that is there. */
function faultsOf(schema: GraphQLSchema): string[] {
  const faults: string[] = [];
  const types = Object.values(schema.getTypeMap()).filter((type) => isObjectType(type) && !type.name.startsWith('__'));
  const leading = new Set<string>();
  for (const type of types.filter(isObjectType)) {
    const fields = Object.values(type.getFields());
    const isRoot = ROOTS.includes(type.name);
    const isPage = rowOf(type) !== type;
    if (!isRoot && !isPage && ruleOf(type) === undefined) faults.push(`${type.name} has no rule`);
    const said = isPage ? 'edges nodes pageInfo cursor node' : PUBLIC[type.name];
    for (const { name, type: to } of fields) {
      const field = `${type.name}.${name}`;
      const rule = RULES[type.name]?.[name];
      if (isRoot ? rule === undefined : said !== undefined && !words(said).includes(name)) {
        faults.push(`${field} has no rule`);
      }
      const target = rowOf(getNamedType(to));
      const found = isInterfaceType(target) ? schema.getPossibleTypes(target) : [target];
      const rank = Math.max(...found.map((each) => rankOf(ruleOf(each) ?? 'public')));
      if (isPage || rank <= rankOf(rule ?? 'public')) continue;
      leading.add(field);
      if (!(field in LEADS)) faults.push(`${field} leads to what is not for everybody`);
    }
    if (isPage || isRoot || said === undefined) continue;
    const names = fields.map(({ name }) => name);
    faults.push(...words(said).flatMap((name) => (names.includes(name) ? [] : [`there is no ${type.name}.${name}`])));
  }
  const named = [...Object.keys(PUBLIC), ...words(PRIVATE.own), ...words(PRIVATE.staff)];
  faults.push(...named.filter((name) => !schema.getType(name)).map((name) => `there is no ${name}`));
  faults.push(...Object.keys(LEADS).flatMap((field) => (leading.has(field) ? [] : [`${field} leads nowhere`])));
  return faults;
}

/** Everything that can be asked for by these fields of a root: each field that leads on is followed once. */
function walk(
  schema: GraphQLSchema,
  root: string,
  starts: readonly string[],
  given: Readonly<Record<string, unknown>>,
) {
  const calls: string[] = [];
  const followed = new Set<string>();
  const ways: { type: GraphQLNamedType; wrap: (inner: string) => string; depth: number }[] = [];
  const callOf = ({ name, args }: GraphQLField<unknown, unknown>) => {
    const wanted = args.filter((arg) => isRequiredArgument(arg) || /^(accountId|ownerId|first|at)$/.test(arg.name));
    const values = wanted.map((arg) => {
      const value = arg.name === 'first' ? 10 : (given[arg.name] ?? (getNamedType(arg.type).name === 'Int' ? 1 : 'x'));
      return `${arg.name}: ${JSON.stringify(value)}`;
    });
    return values.length > 0 ? `${name}(${values.join(', ')})` : name;
  };
  const follow = (
    on: string,
    field: GraphQLField<unknown, unknown>,
    wrap: (inner: string) => string,
    depth: number,
  ) => {
    const type = getNamedType(field.type);
    const ask = (inner: string) => wrap(`${callOf(field)}${inner}`);
    if (followed.has(`${on}.${field.name}`) || depth > 12) return;
    followed.add(`${on}.${field.name}`);
    if (isLeafType(type)) calls.push(ask(''));
    else ways.push({ type, wrap: (inner) => ask(` { ${inner} }`), depth: depth + 1 });
  };
  const rootFields = schema.getType(root);
  for (const field of isObjectType(rootFields) ? Object.values(rootFields.getFields()) : []) {
    if (starts.includes(field.name)) follow(root, field, (inner) => `${root.toLowerCase()} { ${inner} }`, 1);
  }
  for (let way = ways.shift(); way; way = ways.shift()) {
    const { type, wrap, depth } = way;
    if (isInterfaceType(type)) {
      for (const each of schema.getPossibleTypes(type)) {
        const id = globalId(
          each.name,
          ...(IDS[each.name] ?? []).map((key) => (key === 'MATCH' ? `${given.matchId}` : key)),
        );
        const found = (inner: string) => wrap(`... on ${each.name} { ${inner} }`).replace(/"ID"/g, JSON.stringify(id));
        ways.push({ type: each, wrap: found, depth });
      }
    }
    if (!isObjectType(type)) continue;
    const fields = Object.values(type.getFields());
    const leaves = fields.filter((field) => isLeafType(getNamedType(field.type)));
    if (leaves.length > 0) calls.push(wrap(leaves.map(callOf).join(' ')));
    for (const field of fields.filter((each) => !leaves.includes(each))) follow(type.name, field, wrap, depth);
  }
  return { calls, followed };
}

const folder = mkdtempSync(join(tmpdir(), 'agon-reach-'));
const clock = manualClock('2026-03-01T12:00:00.000Z');
const tokens: Record<string, string> = {};
let arena: Arena;
let url: string;
let schema: GraphQLSchema;
let given: Record<string, unknown>;
/** What is ada's alone, by what it is, as it would be written. */
let secrets: Record<string, string>;

const post = async (path: string, body: unknown, token = '') => {
  // A second for each, so that no limit is met and no token runs out.
  clock.advance(1_000);
  const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return response.json();
};
const ask = async (query: string, token = '') => (await post('/graphql', { query }, token)) as Result;
const done = async (mutation: string, token = tokens.operator) => {
  const { data, errors } = await ask(`mutation { ${mutation} }`, token);
  expect(errors).toBeUndefined();
  // biome-ignore lint/suspicious/noExplicitAny: what it is depends on what was asked for.
  return Object.values<any>(data)[0];
};

beforeAll(async () => {
  const flags = { dataDir: folder, runner: false };
  arena = await arenaOfSpec(flags, { clock, sandbox: { port: 0 } });
  url = await arena.listen();
  tokens.operator = readFileSync(join(folder, 'operator.token'), 'utf8').trim();
  for (const accountId of ['ada', 'bob']) {
    const about = { name: `${accountId} in private`, email: `${accountId}@private.example` };
    const said = await post('/v1/auth/register', { accountId, password: 'correct horse battery', ...about });
    tokens[accountId] = (said as { accessToken: string }).accessToken;
    const source = 'function act(o) { return o.legal[0] }';
    await done(
      `submitAgent(ownerId: "${accountId}", name: "bot", games: ["tic-tac-toe"], source: "${source}") { id }`,
      tokens[accountId],
    );
  }
  const { keyId } = await done('issueApiKey(accountId: "ada", scopes: ["read"], name: "hers") { keyId }', tokens.ada);
  const key = await done('issueApiKey(accountId: "bob", scopes: ["read"]) { key }', tokens.bob);
  tokens["bob's key"] = key.key;
  await done('grantCredits(accountId: "ada", amountCents: "7654321") { id }');
  await done('grantCredits(accountId: "bob", amountCents: "99999999") { id }');
  await done('setBudget(accountId: "ada", currency: "PLAY", totalCents: "8765432") { id }', tokens.ada);
  const propose = async (stakeCents: string) =>
    (await done(
      `proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], stakeCents: "${stakeCents}") { id }`,
    )) as { id: string };
  // She has less than the first, and her budget allows less than the second.
  const { id: matchId } = await propose('7700000');
  await done('grantCredits(accountId: "ada", amountCents: "2222222") { id }');
  await propose('9800000');
  await arena.settled();
  await arena.database.query(
    `INSERT INTO payments VALUES ('p-of-ada', 'ada', 'deposit', 5, 'USD', 'open', NULL, 'paid by card', now(), now(), 1, 0)`,
  );
  given = { ...ADAS, matchId, at: clock(), id: 'ID', ids: ['ID'] };
  secrets = {
    name: 'ada in private',
    email: 'ada@private.example',
    keyId,
    nameOfKey: '"hers"',
    payment: 'paid by card',
    hadCents: '7654321',
    had: '76543.21',
    hasCents: '9876543',
    has: '98765.43',
    budgetCents: '8765432',
    budget: '87654.32',
  };
  schema = buildClientSchema((await ask(getIntrospectionQuery())).data);
});

afterAll(async () => {
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const ruled = (root: string, rule: Rule) =>
  Object.keys(RULES[root] ?? {}).filter((name) => RULES[root]?.[name] === rule);
const secretsIn = (text: string) => Object.keys(secrets).filter((what) => text.includes(secrets[what] ?? ''));
const codesIn = ({ errors = [] }: Result) => errors.map(({ message, extensions }) => extensions?.code ?? message);

describe('how far one comes', () => {
  it('is said of every type and every field there is, and of no other', () => {
    expect(faultsOf(schema)).toEqual([]);
    const nodes = schema.getPossibleTypes(schema.getType('Node') as never).map(({ name }) => name);
    expect(nodes.sort()).toEqual(Object.keys(IDS).sort());
  });

  it.each<[string, string, string[]]>([
    [
      'a field to somebody’s wallet',
      'extend type Account { wallet: Wallet }',
      ['Account.wallet has no rule', 'Account.wallet leads to what is not for everybody'],
    ],
    ['a word about somebody', 'extend type Account { email: String }', ['Account.email has no rule']],
    [
      'a page of payments',
      'extend type Wallet { paid: PaymentConnection }',
      ['Wallet.paid leads to what is not for everybody'],
    ],
    [
      'a sum of a page',
      'extend type PaymentConnection { sumCents: String }',
      ['PaymentConnection.sumCents has no rule'],
    ],
    ['a type', 'type Diary { text: String }', ['Diary has no rule']],
    [
      'a subscription',
      'extend type Subscription { spent(accountId: String!): Posting }',
      ['Subscription.spent has no rule', 'Subscription.spent leads to what is not for everybody'],
    ],
    ['a type with an id', 'type Diary implements Node { id: ID! }', ['Diary has no rule']],
  ])('is asked again for %s that is added', (_what, addition, faults) => {
    expect(faultsOf(extendSchema(schema, parse(addition)))).toEqual(faults);
  });

  it.each(['nobody', 'bob', "bob's key"])('is nowhere near what is ada’s, for %s', async (who) => {
    const { calls, followed } = walk(schema, 'Query', ruled('Query', 'public'), given);
    expect(followed).toContain('Seat.agent');
    for (const call of calls) {
      const answer = await ask(call, tokens[who]);
      const told = { call, codes: codesIn(answer), secrets: secretsIn(JSON.stringify(answer)) };
      // What is not there, as a game without matches or analytics that are off, is no matter here.
      expect(told).toEqual({
        call,
        codes: told.codes.filter((code) => !/^(AUTH|QUERY|INTERNAL)/.test(code)),
        secrets: [],
      });
    }
  });

  it('is as far as all of it for ada', async () => {
    const { calls } = walk(schema, 'Query', [...ruled('Query', 'own'), 'node'], given);
    const found = new Set<string>();
    for (const call of calls) {
      const answer = await ask(call, tokens.ada);
      expect({ call, codes: codesIn(answer) }).toEqual({ call, codes: [] });
      for (const secret of secretsIn(JSON.stringify(answer))) found.add(secret);
    }
    // Who she is, is in the vault; how much she had, was a moment ago.
    const all = ['keyId', 'nameOfKey', 'payment', 'hasCents', 'budgetCents'];
    expect([...found].filter((secret) => all.includes(secret)).sort()).toEqual(all.sort());
  });

  it('is as far as everybody for what is heard', async () => {
    const calls = walk(schema, 'Subscription', ruled('Subscription', 'public'), given).calls;
    expect(calls.length).toBeGreaterThan(10);
    for (const who of ['nobody', 'bob']) {
      const token = tokens[who];
      const client = clientOf(url, token === undefined ? {} : { authorization: `Bearer ${token}` });
      for (const call of calls) {
        const [answer = {}] = await take(client, call, 1);
        const told = { call, codes: codesIn(answer), secrets: secretsIn(JSON.stringify(answer)) };
        expect(told).toEqual({ call, codes: [], secrets: [] });
      }
      await client.dispose();
    }
  });

  it.each(['own', 'staff'] as const)(
    'is nowhere without a token that may, for what is heard and is %s',
    async (rule) => {
      for (const call of walk(schema, 'Subscription', ruled('Subscription', rule), given).calls) {
        const codeFor = async (who: string) => {
          const token = tokens[who];
          const client = clientOf(url, token === undefined ? {} : { authorization: `Bearer ${token}` });
          const [answer = {}] = await take(client, call, 1);
          await client.dispose();
          return codesIn(answer)[0] ?? 'fine';
        };
        const codes = [await codeFor('nobody'), await codeFor('bob'), await codeFor('operator')];
        expect({ call, codes }).toEqual({ call, codes: ['AUTH.UNAUTHENTICATED', 'AUTH.FORBIDDEN', 'fine'] });
      }
    },
  );

  it('ends before the words of what went wrong inside, but for those who run the arena', () => {
    const trouble = 'INTERNAL: cannot take in {"accountId":"ada"}';
    const told = (actor?: object) =>
      troubleFor({ actor, rejected: false, idempotencyKey: undefined } as never, trouble);
    expect([told(), told({ id: 'bob', role: 'owner' })]).toEqual([null, null]);
    for (const role of ['operator', 'auditor']) expect(told({ id: 'oskar', role })).toContain('cannot take in');
  });
});
