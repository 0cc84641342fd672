import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Fastify, { type FastifyInstance } from 'fastify';
import { buildSchema, type GraphQLSchema } from 'graphql';
import mercurius from 'mercurius';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { contextOf } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';
import { Channel, newest, shared } from './channel.js';
import { admit, assertAnswerable, type Documents, readDocuments } from './documents.js';
import { formatErrors } from './errors.js';
import { queryLimits, rulesFor } from './limits.js';
import { clientOf, rawSocket, take } from './socket.contract.js';
import { type SocketLimits, serveSubscriptions, socketLimits } from './socket.js';
import type { SubscriptionContext } from './subscriptions.js';

const schema: GraphQLSchema = buildSchema(`
  type Query { hello: String! }
  type Subscription { ticks(upTo: Int!): Int! chunks: String! who: String! }
`);
const fieldsOf = schema.getSubscriptionType()!.getFields();
const channels = new Set<Channel<object>>();
let flood: Channel<object> | undefined;

/** Counts, then ends. */
fieldsOf.ticks!.subscribe = (_root, { upTo }: { upTo: number }) => {
  const channel = new Channel<object>(1_000, () => {});
  channels.add(channel.onStop(() => channels.delete(channel)));
  for (let i = 1; i <= upTo; i++) channel.push({ ticks: i });
  if (upTo > 0) channel.end();
  return channel;
};
/** More than anybody reads. */
fieldsOf.chunks!.subscribe = (_root, _args, { drop }: SubscriptionContext) => {
  flood = new Channel<object>(16, drop);
  return flood;
};
fieldsOf.who!.subscribe = (_root, _args, { actor }: SubscriptionContext) => {
  const channel = new Channel<object>(1, () => {});
  channel.push({ who: actor?.id ?? 'nobody' });
  channel.end();
  return channel;
};
schema.getQueryType()!.getFields().hello!.resolve = () => 'world';

const faults: unknown[] = [];
const tokens = new Map([['good', { id: 'operator', role: 'operator' as const }]]);
const ports = {
  actorOf: (token: string) => tokens.get(token),
  identities: { bearerOf: async () => undefined },
  onInternalError: (error: unknown) => faults.push(error),
} as unknown as GatewayPorts;

const servers: FastifyInstance[] = [];
async function serve(
  options: { limits?: Partial<SocketLimits>; documents?: Documents; corsOrigins?: string[] } = {},
): Promise<string> {
  const fastify = Fastify({ forceCloseConnections: true });
  const { documents, corsOrigins = [] } = options;
  const limits = { ...socketLimits, ...options.limits };
  await serveSubscriptions(fastify, { ports, introspection: true, corsOrigins, documents, limits });
  await fastify.register(mercurius, {
    schema,
    graphql: { parseOptions: { maxTokens: queryLimits.tokensMax } },
    validationRules: rulesFor(true),
    additionalRouteOptions: { preHandler: (request) => admit(ports, request, documents) },
    context: (request) => contextOf(ports, request) as never,
    errorFormatter: (execution) => formatErrors(execution as never, ports) as never,
  });
  servers.push(fastify);
  return fastify.listen({ port: 0, host: '127.0.0.1' });
}

const ask = async (url: string, body: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return (await response.json()) as { data: unknown; errors?: { extensions: { code: string } }[] };
};

beforeEach(() => {
  faults.length = 0;
  tokens.set('good', { id: 'operator', role: 'operator' });
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
  expect(faults).toEqual([]);
});

describe('subscriptions over WebSocket', () => {
  it('come in order and end, by the reference client', async () => {
    const client = clientOf(await serve());
    const results = await take(client, 'subscription { ticks(upTo: 5) }');
    expect(results.map(({ data }) => data.ticks)).toEqual([1, 2, 3, 4, 5]);
    await client.dispose();
  });

  it('know who asks by the token of the first message, or by the header', async () => {
    const url = await serve();
    const who = async (params: Record<string, unknown>) => {
      const client = clientOf(url, params);
      const [result] = await take(client, 'subscription { who }');
      await client.dispose();
      return result?.data.who;
    };
    expect(await who({})).toBe('nobody');
    expect(await who({ authorization: 'Bearer good' })).toBe('operator');
    expect(await who({ Authorization: 'Bearer good' })).toBe('operator');
    const headed = rawSocket(url, { headers: { authorization: 'Bearer good' } });
    await headed.open;
    await expect.poll(() => headed.heard[0]?.type).toBe('connection_ack');
    headed.subscribe('1', 'subscription { who }');
    await expect.poll(() => headed.heard[1]?.payload).toEqual({ data: { who: 'operator' } });
    headed.socket.close();
  });

  it('are refused with a token that is none of ours, and with one that no longer is', async () => {
    const url = await serve();
    expect(await rawSocket(url, { init: { authorization: 'Bearer bad' } }).closed).toBe(4403);
    expect(await rawSocket(url, { init: { authorization: { toString: 1 } } }).closed).toBe(4403);
    const raw = rawSocket(url, { init: { authorization: 'Bearer good' } });
    await expect.poll(() => raw.heard[0]?.type).toBe('connection_ack');
    tokens.clear();
    raw.subscribe('1', 'subscription { who }');
    await expect
      .poll(() => raw.heard[1])
      .toMatchObject({
        id: '1',
        type: 'error',
        payload: [{ extensions: { code: 'AUTH.UNAUTHENTICATED' } }],
      });
    raw.socket.close();
  });

  it('end when the token that they were asked for by no longer is one', async () => {
    const url = await serve({ limits: { beatMs: 50 } });
    const [mine, nobodys] = [rawSocket(url, { init: { authorization: 'Bearer good' } }), rawSocket(url)];
    for (const raw of [mine, nobodys]) {
      await expect.poll(() => raw.heard.length).toBe(1);
      raw.say(tick('1'));
    }
    await expect.poll(() => channels.size).toBe(2);
    tokens.clear();
    expect(await mine.closed).toBe(4403);
    await expect.poll(() => channels.size).toBe(1);
    expect(nobodys.socket.readyState).toBe(1);
    nobodys.socket.close();
  });

  it('stop at once when the reader leaves', async () => {
    const raw = rawSocket(await serve());
    await expect.poll(() => raw.heard.length).toBe(1);
    raw.subscribe('1', 'subscription { ticks(upTo: 0) }');
    await expect.poll(() => channels.size).toBe(1);
    raw.say({ id: '1', type: 'complete' });
    await expect.poll(() => channels.size).toBe(0);
    raw.subscribe('2', 'subscription { ticks(upTo: 0) }');
    await expect.poll(() => channels.size).toBe(1);
    raw.socket.terminate();
    await expect.poll(() => channels.size).toBe(0);
  });

  it('drop whoever does not read, and nobody else', async () => {
    const url = await serve();
    const [slow, other] = [rawSocket(url), rawSocket(url)];
    for (const { heard } of [slow, other]) await expect.poll(() => heard.length).toBe(1);
    other.subscribe('1', 'subscription { ticks(upTo: 0) }');
    slow.subscribe('1', 'subscription { chunks }');
    await expect.poll(() => flood !== undefined).toBe(true);
    slow.socket._socket.pause();
    const chunk = 'x'.repeat(1_000_000);
    // What the machine keeps for a connection is not known, so it gets more than that.
    const source = flood as Channel<object>;
    for (let i = 0; i < 200; i++) {
      source.push({ chunks: chunk });
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await source.next()).toEqual({ value: undefined, done: true });
    slow.socket._socket.resume();
    expect(await slow.closed).toBe(1013);
    expect(slow.heard.length).toBeLessThan(100);
    expect(other.socket.readyState).toBe(1);
    other.socket.close();
  });

  it.each<[string, (url: string) => Promise<number>, number]>([
    ['nothing is said', (url) => rawSocket(url, { init: null }).closed, 4408],
    ['another protocol is spoken', (url) => rawSocket(url, { protocol: 'graphql-ws' }).closed, 4406],
    ['a message is no JSON', (url) => says(url, '{'), 4400],
    ['a message is a batch', (url) => says(url, [{ type: 'ping' }, { type: 'ping' }]), 4400],
    ['a message is too long', (url) => says(url, { type: 'ping', payload: { x: 'x'.repeat(70_000) } }), 1009],
    ['it is begun twice', (url) => says(url, { type: 'connection_init' }), 4429],
    ['an id is used twice', (url) => says(url, tick('1'), tick('1')), 4409],
    [
      'somebody asks before it is begun',
      async (url) => {
        const raw = rawSocket(url, { init: null });
        await raw.open;
        raw.say(tick('1'));
        return raw.closed;
      },
      4401,
    ],
    ['messages flood it', (url) => says(url, ...Array.from({ length: 50 }, () => ({ type: 'ping' }))), 1013],
  ])('are cut off when %s', async (_what, closed, code) => {
    expect(await closed(await serve({ limits: { initMs: 200, messagesMax: 20 } }))).toBe(code);
  });

  it('are so many of a connection', async () => {
    const raw = rawSocket(await serve({ limits: { subscriptionsMax: 3 } }));
    await expect.poll(() => raw.heard.length).toBe(1);
    for (let i = 0; i < 4; i++) raw.say(tick(`${i}`));
    const refusal = { id: '3', type: 'error', payload: [{ extensions: { code: 'LIMITS.EXCEEDED', status: 429 } }] };
    await expect.poll(() => raw.heard[1]).toMatchObject(refusal);
    raw.say({ id: '0', type: 'complete' });
    raw.say(tick('4'));
    await expect.poll(() => channels.size).toBe(3);
    expect(raw.heard).toHaveLength(2);
    raw.socket.close();
  });

  it('have so many connections, of an address and of all', async () => {
    for (const limits of [{ connectionsPerAddressMax: 2 }, { connectionsMax: 2 }]) {
      const url = await serve({ limits });
      const raws = [rawSocket(url), rawSocket(url)];
      for (const { open } of raws) await open;
      expect(await rawSocket(url).refused).toBe(503);
      raws[0]!.socket.close();
      await raws[0]!.closed;
      const next = rawSocket(url);
      await expect.poll(() => next.heard[0]?.type).toBe('connection_ack');
    }
  });

  it('let in pages of our own origin and of those that were named', async () => {
    const url = await serve({ corsOrigins: ['https://dash.example'] });
    const from = (origin: string) => rawSocket(url, { headers: { origin } });
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1', 'https://dash.example.evil']) {
      expect(await from(origin).refused, origin).toBe(403);
    }
    for (const origin of [url, 'https://dash.example']) await from(origin).open;
  });

  it('are judged the same however their address is written', async () => {
    const url = await serve({ limits: { connectionsPerAddressMax: 1 } });
    const path = '/%67raphql';
    expect(await rawSocket(url, { path, headers: { origin: 'https://evil.example' } }).refused).toBe(403);
    await rawSocket(url, { path }).open;
    expect(await rawSocket(url, { path }).refused).toBe(503);
  });

  it('say goodbye when the gateway stops', async () => {
    const raw = rawSocket(await serve());
    await expect.poll(() => raw.heard.length).toBe(1);
    raw.say(tick('1'));
    await expect.poll(() => channels.size).toBe(1);
    await servers.splice(0)[0]!.close();
    expect(await raw.closed).toBe(1001);
    expect(channels.size).toBe(0);
  });

  it('let go of one who is told to leave and does not', async () => {
    const raw = rawSocket(await serve({ limits: { goodbyeMs: 100 } }));
    await raw.open;
    await expect.poll(() => raw.heard).toEqual([{ type: 'connection_ack' }]);
    raw.socket._socket.pause();
    const [fastify] = servers.splice(0);
    await fastify!.close();
    const connections = await new Promise((resolve) => fastify!.server.getConnections((_, count) => resolve(count)));
    expect(connections).toBe(0);
    raw.socket.terminate();
    await raw.closed;
    expect(raw.heard).toHaveLength(1);
  });

  it('and nothing else: queries go by POST', async () => {
    const client = clientOf(await serve());
    for (const query of ['{ hello }', 'subscription A { ticks(upTo: 1) } subscription B { ticks(upTo: 1) }']) {
      const [result] = await take(client, query);
      expect(result?.errors?.[0]?.extensions?.code, query).toBe('QUERY.INVALID');
    }
    await client.dispose();
  });
});

const tick = (id: string) => ({ id, type: 'subscribe', payload: { query: 'subscription { ticks(upTo: 0) }' } });
const says = async (url: string, ...messages: unknown[]) => {
  const raw = rawSocket(url);
  await raw.open;
  await expect.poll(() => raw.heard[0]?.type).toBe('connection_ack');
  for (const message of messages) raw.say(message);
  return raw.closed;
};

describe('persisted queries', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agon-queries-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
  const listOf = (...texts: string[]) => new Map(texts.map((text) => [hashOf(text), text]));
  const byHash = (hash: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash: hash } } });
  const documents = listOf('{ hello }', 'subscription { ticks(upTo: 1) }');
  const code = (answer: { errors?: { extensions: { code: string } }[] }) => answer.errors?.[0]?.extensions.code;

  it('are answered by hash or by their text, and nothing else is', async () => {
    const url = await serve({ documents });
    expect(await ask(url, byHash(hashOf('{ hello }')))).toMatchObject({ data: { hello: 'world' } });
    expect(await ask(url, { query: '{ hello }' })).toMatchObject({ data: { hello: 'world' } });
    const address = `${url}/graphql?extensions=${encodeURIComponent(JSON.stringify(byHash(hashOf('{ hello }')).extensions))}`;
    expect(await (await fetch(address)).json()).toMatchObject({ data: { hello: 'world' } });
    expect(code(await ask(url, { query: '{ hello  }' }))).toBe('QUERY.NOT_PERSISTED');
    expect(code(await ask(url, byHash('0'.repeat(64))))).toBe('QUERY.NOT_PERSISTED');
    expect(code(await ask(url, { query: '{ a: hello }', ...byHash(hashOf('{ hello }')) }))).toBe('QUERY.NOT_PERSISTED');
    for (const body of [{}, { query: 1 }, { query: null }, { query: {} }]) {
      expect(code(await ask(url, body)), JSON.stringify(body)).toBe('QUERY.NOT_PERSISTED');
    }
  });

  it('bind strangers, and not staff', async () => {
    const url = await serve({ documents });
    const staff = { authorization: 'Bearer good' };
    expect(await ask(url, { query: '{ a: hello }' }, staff)).toMatchObject({ data: { a: 'world' } });
    expect(code(await ask(url, { query: '{ a: hello }' }, { authorization: 'Bearer bad' }))).toBe(
      'QUERY.NOT_PERSISTED',
    );
    // What staff has asked is not for others now.
    expect(code(await ask(url, { query: '{ a: hello }' }))).toBe('QUERY.NOT_PERSISTED');
  });

  it('hold for WebSockets as well', async () => {
    const raw = rawSocket(await serve({ documents }));
    await expect.poll(() => raw.heard.length).toBe(1);
    raw.subscribe('1', 'subscription { ticks(upTo: 2) }');
    const refusal = { id: '1', type: 'error', payload: [{ extensions: { code: 'QUERY.NOT_PERSISTED' } }] };
    await expect.poll(() => raw.heard[1]).toMatchObject(refusal);
    raw.subscribe('2', '', byHash(hashOf('subscription { ticks(upTo: 1) }')));
    await expect.poll(() => raw.heard[2]).toMatchObject({ id: '2', type: 'next', payload: { data: { ticks: 1 } } });
    raw.socket.close();
  });

  it('are not there without a list: a hash is not known, and any query is', async () => {
    const url = await serve();
    expect(code(await ask(url, byHash(hashOf('{ hello }'))))).toBe('QUERY.NOT_PERSISTED');
    expect(await ask(url, { query: '{ a: hello }', ...byHash('0'.repeat(64)) })).toMatchObject({
      data: { a: 'world' },
    });
  });

  it('come from a file of hashes and queries, which has to be right', () => {
    const file = (content: string) => {
      const path = join(folder, `${hashOf(content)}.json`);
      writeFileSync(path, content);
      return path;
    };
    const good = JSON.stringify(Object.fromEntries(documents));
    expect(readDocuments(file(good))).toEqual(documents);
    for (const bad of ['', '[]', '{}', '{"a":1}', JSON.stringify({ [hashOf('x')]: 'y' })]) {
      expect(() => readDocuments(file(bad)), bad).toThrow(expect.objectContaining({ code: 'CONFIG.INVALID' }));
    }
    expect(() => readDocuments(join(folder, 'none'))).toThrow(expect.objectContaining({ code: 'CONFIG.INVALID' }));
  });

  it('can all be answered, or the gateway does not start', () => {
    assertAnswerable(documents, schema);
    for (const text of ['{ gone }', '{', `{ ${Array.from({ length: 40 }, (_, i) => `a${i}: hello`).join(' ')} }`]) {
      const refuse = () => assertAnswerable(listOf(text), schema);
      expect(refuse, text).toThrow(expect.objectContaining({ code: 'CONFIG.INVALID' }));
    }
  });
});

describe('a query that is no GraphQL', () => {
  it.each(['{"kind":"Document","definitions":[]}', '{}', ' { } ', '[]', 'null', '1', '"x"', '-1', 'true'])(
    'is refused as such: %s',
    async (query) => {
      const { data, errors } = await ask(await serve(), { query });
      expect(data).toBeNull();
      expect(errors?.[0]?.extensions).toEqual({ code: 'QUERY.INVALID', status: 400 });
    },
  );
});

describe('a channel', () => {
  it('keeps so much, then nothing, and says so once', async () => {
    let full = 0;
    let stopped = 0;
    const channel = new Channel<number>(2, () => full++).onStop(() => stopped++);
    for (const value of [1, 2, 3, 4]) channel.push(value);
    expect([full, stopped]).toEqual([1, 1]);
    expect(await channel.next()).toEqual({ value: undefined, done: true });
  });

  it('ends for one who waits, and stops what feeds it once', async () => {
    let stopped = 0;
    const channel = new Channel<number>(2, () => {}).onStop(() => stopped++);
    const waiting = channel.next();
    await channel.return();
    expect(await waiting).toEqual({ value: undefined, done: true });
    channel.end();
    channel.onStop(() => stopped++);
    expect(stopped).toBe(2);
  });

  it('gives out what was pushed before it ended', async () => {
    const channel = new Channel<number>(2, () => {});
    channel.push(1);
    channel.end();
    channel.push(2);
    expect([await channel.next(), await channel.next()]).toEqual([
      { value: 1, done: false },
      { value: undefined, done: true },
    ]);
  });
});

describe('what changes all the time', () => {
  it('is told when it has changed, and the last of it always', async () => {
    let [value, looks] = [0, 0];
    let changed = () => {};
    const heard: number[] = [];
    const errors: unknown[] = [];
    const look = async () => {
      looks += 1;
      return value;
    };
    const on = (tell: () => void) => {
      changed = tell;
      return () => {
        changed = () => {};
      };
    };
    const stop = newest(look, (told) => heard.push(told), { restMs: 1, onError: (e) => errors.push(e), on });
    await expect.poll(() => heard).toEqual([0]);
    for (value = 1; value < 100; value++) changed();
    await expect.poll(() => heard.at(-1)).toBe(100);
    expect(looks).toBeLessThan(50);
    changed();
    stop();
    expect(heard.filter((each) => each === 100)).toHaveLength(1);
    expect(heard).toEqual([...heard].sort((a, b) => a - b));
    expect(errors).toEqual([]);
  });

  it('is looked at once for all who listen, and not when nobody does', () => {
    let running = 0;
    let tell = (_value: number) => {};
    const listen = shared<number>((say) => {
      running += 1;
      tell = say;
      return () => {
        running -= 1;
      };
    });
    const heard: string[] = [];
    const a = listen((value) => heard.push(`a${value}`));
    tell(1);
    const b = listen((value) => heard.push(`b${value}`));
    tell(2);
    a();
    a();
    tell(3);
    expect([running, heard]).toEqual([1, ['a1', 'b1', 'a2', 'b2', 'b3']]);
    b();
    expect(running).toBe(0);
  });
});
