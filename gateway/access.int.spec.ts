import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, Metadata } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../ops/engines/arena.contract.js';
import { ArenaServiceClient, ArenaServiceService } from '../proto/gen/agon/arena/v1/arena.js';
import { errorOf } from '../proto/status.js';
import { derivedId, manualClock } from '../services/kernel/index.js';
import { ADAS, RULES, type Rule } from './access.contract.js';
import type { Route } from './rest/route.js';
import { restRoutes } from './rest/serve.js';

/** Who may ask for what over REST, by the names of routes. Those under /v1/auth make the tokens that the others are judged by. */
const REST: Readonly<Record<string, Rule>> = {
  listGames: 'public',
  listMatches: 'public',
  getMatch: 'public',
  listTurns: 'public',
  getReplay: 'public',
  listAgents: 'public',
  getAgent: 'public',
  getLeaderboard: 'public',
  watchMatch: 'public',
  // Signed by Stripe, and a page that says nothing of anybody.
  takeStripeWebhook: 'public',
  returnFromStripe: 'public',
  getJwks: 'public',
  uploadAgent: 'own',
  getStatement: 'own',
  listWebhooks: 'own',
  addWebhook: 'own',
  removeWebhook: 'own',
  testWebhook: 'own',
  replayWebhook: 'own',
  followLog: 'staff',
};

/** And for gRPC, by the names of methods: what a key needs for each, beside speaking for the agent. */
const GRPC: Readonly<Record<string, 'play' | 'submit' | 'read' | 'any'>> = {
  play: 'play',
  joinQueue: 'play',
  leaveQueue: 'play',
  listMatches: 'read',
  registerAgent: 'submit',
  submitAgent: 'submit',
  whoAmI: 'any',
};

/** Arguments that say whose something is are given where they may be left out, too. */
const WHOSE = /^(accountId|ownerId)$/;

interface Type {
  readonly kind: string;
  readonly name: string | null;
  readonly ofType?: Type;
}
interface Field {
  readonly name: string;
  readonly type: Type;
  readonly args: readonly { name: string; defaultValue: string | null; type: Type }[];
}

const folder = mkdtempSync(join(tmpdir(), 'agon-access-'));
const clock = manualClock('2026-03-01T12:00:00.000Z');
const tokens: Record<string, string> = {};
const schema: Record<string, readonly Field[]> = {};
let arena: Arena;
let url: string;

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what each test says about it.
  readonly [field: string]: any;
}

const post = async (path: string, body: unknown, token = '') => {
  const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await response.json()) as Answer;
};
const ask = (query: string, token = '') => post('/graphql', { query }, token);

beforeAll(async () => {
  const flags = {
    dataDir: folder,
    playPort: 0,
    runner: false,
  };
  arena = await arenaOfSpec(flags, { clock, sandbox: { port: 0 } });
  url = await arena.listen();
  tokens.operator = readFileSync(join(folder, 'operator.token'), 'utf8').trim();
  for (const accountId of ['ada', 'bob', 'cyd']) {
    tokens[accountId] = (await post('/v1/auth/register', { accountId, password: 'correct horse battery' })).accessToken;
  }
  for (const owner of ['ada', 'bob']) {
    const issue = `mutation { issueApiKey(accountId: "${owner}", scopes: ["play", "submit", "read"]) { key } }`;
    tokens[`${owner}'s key`] = (await ask(issue, tokens[owner])).data.issueApiKey.key;
  }
  const submit = `submitAgent(ownerId: "ada", name: "bot", games: ["tic-tac-toe"], source: "${ADAS.source}") { id }`;
  expect((await ask(`mutation { ${submit} }`, tokens.ada)).errors).toBeUndefined();
  const ofType = '{ kind name ofType { kind name ofType { kind name ofType { kind name } } } }';
  for (const root of Object.keys(RULES)) {
    const { data } = await ask(
      `{ __type(name: "${root}") { fields { name type ${ofType} args { name defaultValue type ${ofType} } } } }`,
    );
    schema[root] = data.__type?.fields ?? [];
  }
});

afterAll(async () => {
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const named = (type: Type): Type => (type.ofType ? named(type.ofType) : type);

/** The field, asked for with what is ada's. */
function callOf(root: string, { name, type, args }: Field): string {
  const given = args.filter(
    (arg) => (arg.type.kind === 'NON_NULL' && arg.defaultValue === null) || WHOSE.test(arg.name),
  );
  const values = given.map((arg) => {
    const value = ADAS[arg.name] ?? (named(arg.type).name === 'String' ? 'x' : 1);
    return `${arg.name}: ${JSON.stringify(value)}`;
  });
  const inner = ['OBJECT', 'INTERFACE', 'UNION'].includes(named(type).kind) ? ' { __typename }' : '';
  return `${root === 'Query' ? 'query' : 'mutation'} { ${name}${values.length > 0 ? `(${values.join(', ')})` : ''}${inner} }`;
}

/** Someone's session may have ended by what was tried before, and a plan has its limits. */
async function tokenOf(who: string): Promise<string> {
  clock.advance(60_000);
  if (!['ada', 'bob'].includes(who)) return tokens[who] ?? '';
  const { data } = await ask('{ me { accountId } }', tokens[who]);
  if (!data?.me)
    tokens[who] = (await post('/v1/auth/login', { accountId: who, password: 'correct horse battery' })).accessToken;
  return tokens[who] ?? '';
}

const codeFor = async (call: string, who: string): Promise<string> => {
  const { errors } = await ask(call, await tokenOf(who));
  return errors?.[0]?.extensions?.code ?? 'fine';
};

const ruled = (rule: string) =>
  ['Query', 'Mutation'].flatMap((root) =>
    (schema[root] ?? []).filter(({ name }) => RULES[root]?.[name] === rule).map((field) => ({ root, field })),
  );

const restCode = async ({ method, path, body, takes, query }: Route, who: string): Promise<string> => {
  const address = path.replace(/\{(\w+)\}/g, (_all, name: string) => {
    return name === 'webhookId' ? derivedId('no webhook') : String(ADAS[name] ?? 'x');
  });
  const token = await tokenOf(who);
  const type = body ? 'application/json' : takes ? 'application/octet-stream' : undefined;
  const ending = new AbortController();
  const response = await fetch(`${url}${address}${query?.games ? '?games=tic-tac-toe' : ''}`, {
    method,
    headers: { ...(token ? { authorization: `Bearer ${token}` } : {}), ...(type ? { 'content-type': type } : {}) },
    ...(body ? { body: JSON.stringify({ url: 'https://example.com/' }) } : takes ? { body: 'not code' } : {}),
    redirect: 'manual',
    signal: ending.signal,
  });
  const isProblem = response.headers.get('content-type')?.includes('problem+json');
  const { code } = isProblem ? ((await response.json()) as { code: string }) : { code: 'fine' };
  // What goes on without end is not read to its end.
  ending.abort();
  return code;
};

describe('who may ask for what by REST', () => {
  const routes = restRoutes.filter(({ path }) => !path.startsWith('/v1/auth/'));

  it('is said of every route there is, and of no other', () => {
    expect(routes.map(({ id }) => id).sort()).toEqual(Object.keys(REST).sort());
    for (const { id, access } of routes) expect({ id, access }).toEqual({ id, access: accessOf(REST[id]) });
  });

  it.each(routes.map((route) => [route.id, route] as const))('holds for %s', async (id, route) => {
    const fine = expect.not.stringMatching(/^AUTH/);
    const nobody = REST[id] === 'public' ? fine : 'AUTH.UNAUTHENTICATED';
    const bob = REST[id] === 'public' ? fine : 'AUTH.FORBIDDEN';
    const ada = REST[id] === 'staff' ? 'AUTH.FORBIDDEN' : fine;
    expect(await restCode(route, 'nobody')).toEqual(nobody);
    expect(await restCode(route, 'bob')).toEqual(bob);
    expect(await restCode(route, "bob's key")).toEqual(
      REST[id] === 'public' ? fine : expect.stringMatching(/^AUTH\.(FORBIDDEN|SCOPE)$/),
    );
    expect(await restCode(route, 'ada')).toEqual(ada);
    expect(await restCode(route, 'operator')).toEqual(fine);
  });
});

const accessOf = (rule: string | undefined) => (rule === 'public' ? 'public' : 'caller');

describe('who may ask for what by gRPC', () => {
  const agent = { agent: 'ada.bot', owner: 'ada', name: 'bot', games: ['tic-tac-toe'], game: 'tic-tac-toe', waitMs: 1 };
  const request = { ...agent, runtime: '', source: 'not code', stakeCents: '0', currency: 'PLAY', against: '' };
  let client: ArenaServiceClient;

  beforeAll(() => {
    client = new ArenaServiceClient(arena.addresses.play ?? '', credentials.createInsecure());
  });
  afterAll(() => client?.close());

  const codeOf = (method: string, token: string) =>
    new Promise<string>((resolve) => {
      const metadata = new Metadata();
      if (token !== '') metadata.set('authorization', `Bearer ${token}`);
      if (method === 'play') {
        const stream = client.play(metadata);
        const hello = { agent: 'ada.bot', games: [], capacity: 0, client: 'spec', openMatches: [] };
        stream.on('error', (error) => resolve(errorOf(error).code)).resume();
        stream.write({ notes: [{ what: { $case: 'hello', hello } }] });
        return;
      }
      type Call = (asked: object, metadata: Metadata, done: (error: unknown) => void) => unknown;
      const call = client[method as 'whoAmI'].bind(client) as never as Call;
      const asked = { ...request, houseAfterMs: 0, status: '', limit: 1 };
      call(asked, metadata, (error) => resolve(error ? errorOf(error).code : 'fine'));
    });
  const keyOf = async (accountId: string, rest: string) => {
    const issue = `mutation { issueApiKey(accountId: "${accountId}", ${rest}) { key } }`;
    return (await ask(issue, tokens.operator)).data.issueApiKey.key as string;
  };

  it('is said of every method there is, and of no other', () => {
    expect(Object.keys(ArenaServiceService).sort()).toEqual(Object.keys(GRPC).sort());
  });

  it.each(Object.entries(GRPC))('holds for %s, which takes the scope %s', async (method, scope) => {
    const others = ['play', 'submit', 'read'].filter((each) => each !== scope);
    const full = 'scopes: ["play", "submit", "read"]';
    const narrow = await keyOf('ada', `${full}, agents: ["ada.other"]`);
    const without = await keyOf('ada', `scopes: ${JSON.stringify(others)}`);
    expect(await codeOf(method, '')).toBe('AUTH.UNAUTHENTICATED');
    expect(await codeOf(method, await keyOf('bob', full))).toBe(scope === 'any' ? 'fine' : 'AUTH.FORBIDDEN');
    expect(await codeOf(method, narrow)).toBe(scope === 'any' ? 'fine' : 'AUTH.FORBIDDEN');
    expect(await codeOf(method, without)).toBe(scope === 'any' ? 'fine' : 'AUTH.SCOPE');
    expect(await codeOf(method, await keyOf('ada', full))).not.toMatch(/^AUTH/);
  });
});

describe('who may ask for what', () => {
  it('is said of every field there is, and of no other', () => {
    for (const [root, rules] of Object.entries(RULES)) {
      const fields = schema[root]?.map(({ name }) => name) ?? [];
      expect({ root, fields: fields.sort() }).toEqual({ root, fields: Object.keys(rules).sort() });
    }
  });

  it('holds for what is public', async () => {
    for (const { root, field } of ruled('public')) {
      const call = callOf(root, field);
      expect({ call, code: await codeFor(call, 'nobody') }).toEqual({ call, code: expect.not.stringMatching(/^AUTH/) });
    }
  });

  it("holds for what is one's own", async () => {
    const fields = ruled('own');
    expect(fields.length).toBeGreaterThan(20);
    for (const { root, field } of fields) {
      const call = callOf(root, field);
      expect({ call, nobody: await codeFor(call, 'nobody') }).toEqual({ call, nobody: 'AUTH.UNAUTHENTICATED' });
      expect({ call, bob: await codeFor(call, 'bob') }).toEqual({ call, bob: 'AUTH.FORBIDDEN' });
      const key = await codeFor(call, "bob's key");
      expect({ call, key }).toEqual({ call, key: expect.stringMatching(/^AUTH\.(FORBIDDEN|SCOPE)$/) });
      for (const who of ['ada', 'operator']) {
        expect({ call, who, code: await codeFor(call, who) }).toEqual({
          call,
          who,
          code: expect.not.stringMatching(/^AUTH/),
        });
      }
    }
  });

  it('holds for what is for staff', async () => {
    const fields = ruled('staff');
    expect(fields.length).toBeGreaterThan(8);
    for (const { root, field } of fields) {
      const call = callOf(root, field);
      expect({ call, nobody: await codeFor(call, 'nobody') }).toEqual({ call, nobody: 'AUTH.UNAUTHENTICATED' });
      expect({ call, ada: await codeFor(call, 'ada') }).toEqual({ call, ada: 'AUTH.FORBIDDEN' });
      const key = await codeFor(call, "ada's key");
      expect({ call, key }).toEqual({ call, key: expect.stringMatching(/^AUTH\.(FORBIDDEN|SCOPE)$/) });
      const operator = await codeFor(call, 'operator');
      expect({ call, operator }).toEqual({ call, operator: expect.not.stringMatching(/^AUTH/) });
    }
  });

  it('lets a key change nothing but agents, whatever its scopes', async () => {
    const may = [];
    for (const { root, field } of ruled('own')) {
      const code = root === 'Mutation' ? await codeFor(callOf(root, field), "ada's key") : 'AUTH.SCOPE';
      if (code !== 'AUTH.SCOPE') may.push(field.name);
    }
    expect(may).toEqual(['submitAgent']);
  });

  it('lets nobody but staff see everybody at once', async () => {
    const all = '{ balances { nodes { account } } }';
    expect(await codeFor(all, 'nobody')).toBe('AUTH.UNAUTHENTICATED');
    expect(await codeFor(all, 'ada')).toBe('AUTH.FORBIDDEN');
    expect(await codeFor(all, 'operator')).toBe('fine');
  });

  it('is refused to a token that is not known, where it matters', async () => {
    expect((await ask('{ wallet(accountId: "ada") { accountId } }', 'nonsense')).errors[0].extensions.code).toBe(
      'AUTH.UNAUTHENTICATED',
    );
  });
});
