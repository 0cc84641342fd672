import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, Metadata, makeGenericClientConstructor, type ServiceError } from '@grpc/grpc-js';
import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../ops/engines/arena.contract.js';
import { ArenaServiceClient } from '../proto/gen/agon/arena/v1/arena.js';
import { correlationOf } from '../services/kernel/index.js';
import { operationIn } from './observe.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-observe-'));
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
let arena: Arena;
let url: string;
let token: string;
let client: ArenaServiceClient;

beforeAll(async () => {
  const flags = {
    dataDir: folder,
    playPort: 0,
    runner: false,
  };
  arena = await arenaOfSpec(flags);
  url = await arena.listen();
  token = readFileSync(join(folder, 'operator.token'), 'utf8');
  client = new ArenaServiceClient(arena.addresses.play ?? '', credentials.createInsecure());
});

afterAll(async () => {
  client?.close();
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const ask = async (query: string, more: Record<string, string> = {}) => {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...more };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  const answer = (await response.json()) as {
    data: { issueApiKey?: { key: string } } | null;
    errors?: { extensions: { code: string } }[];
  };
  return { ...answer, codes: answer.errors?.map(({ extensions }) => extensions.code) ?? [], response };
};

const register = (name: string, key: string, more: Record<string, string> = {}) => {
  const metadata = new Metadata();
  for (const [header, value] of Object.entries({ authorization: `Bearer ${key}`, ...more }))
    metadata.set(header, value);
  return new Promise<string>((resolve) => {
    client.registerAgent({ owner: 'ada', name, games: ['tic-tac-toe'] }, metadata, (error, response) => {
      resolve(error ? `${error.code} ${error.details}` : response.agent);
    });
  });
};
const lastOf = async (stream: string) => (await arena.store.readStream(stream)).at(-1);
const metrics = async () => (await fetch(`${url}/metrics`)).text();

describe('a request over HTTP', () => {
  it('is what its commands follow from, and says its id', async () => {
    const { response } = await ask('mutation { registerOwner(accountId: "ada", displayName: "Ada") { id } }');
    const requestId = response.headers.get('x-request-id');
    expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect((await lastOf('account-ada'))?.meta).toMatchObject({ correlationId: requestId, causationId: requestId });
  });

  it("belongs to its caller's trace, if the caller tells of one in due form", async () => {
    const of = (more: Record<string, string>) =>
      ask('mutation { grantCredits(accountId: "ada", amountCents: "1") { id } }', more);
    const { response } = await of({ traceparent });
    const causationId = response.headers.get('x-request-id');
    expect((await lastOf('wallet-ada'))?.meta).toMatchObject({ correlationId: correlationOf(TRACE), causationId });
    const { response: odd } = await of({ traceparent: `${traceparent}; DROP` });
    const requestId = odd.headers.get('x-request-id');
    expect((await lastOf('wallet-ada'))?.meta).toMatchObject({ correlationId: requestId, causationId: requestId });
  });
});

describe('a call over gRPC', () => {
  it('is seen by its method and outcome, and belongs to its caller’s trace', async () => {
    expect(await register('outside', token, { traceparent })).toBe('ada.outside');
    expect((await lastOf('agent-ada.outside'))?.meta.correlationId).toBe(correlationOf(TRACE));
    expect(await register('outside', 'nobody')).toMatch(/^16 /);
    const text = await metrics();
    const seen = (outcome: string) =>
      `agon_request_seconds_count{door="grpc",operation="agon.arena.v1.ArenaService/RegisterAgent",outcome="${outcome}"} 1`;
    expect(text).toContain(seen('ok'));
    expect(text).toContain(seen('refused'));
  });

  it('keeps apart callers who chose the same key', async () => {
    const idOf = async (authorization: string) => {
      const headers = { 'idempotency-key': '1', ...(authorization ? { authorization } : {}) };
      return (await fetch(`${url}/v1/games`, { headers })).headers.get('x-request-id');
    };
    const ids = await Promise.all(['Bearer one', 'Bearer two', '', 'Bearer one'].map(idOf));
    expect(new Set(ids).size).toBe(3);
    expect(ids[3]).toBe(ids[0]);
  });

  it('of a method that nobody serves makes no name for itself', async () => {
    const Client = makeGenericClientConstructor({}, '');
    const raw = new Client(arena.addresses.play ?? '', credentials.createInsecure());
    const calls = Array.from({ length: 50 }, (_, i) => {
      return new Promise<ServiceError | null>((resolve) => {
        raw.makeUnaryRequest(
          `/made.Up/Method${i}`,
          () => Buffer.alloc(0),
          (b) => b,
          {},
          resolve,
        );
      });
    });
    for (const error of await Promise.all(calls)) expect(error?.code).toBe(12);
    raw.close();
    expect(await metrics()).not.toMatch(/made\.Up/);
  });
});

describe('rules for names', () => {
  it('hold at the doors where names are chosen', async () => {
    const key = (await ask('mutation { issueApiKey(accountId: "ada", scopes: ["submit"]) { key } }')).data?.issueApiKey
      ?.key;
    expect(await register('admin', key ?? '')).toMatch(/^3 .*kept for/);
    expect(await register('honest', key ?? '')).toBe('ada.honest');
    const evil = '"\\u202eadA"';
    expect((await ask(`mutation { registerOwner(accountId: "eve", displayName: ${evil}) { id } }`)).codes).toEqual([
      'CONTENT.UNREADABLE',
    ]);
    expect(
      (await ask('mutation { registerOwner(accountId: "eve", displayName: "www.eve.test") { id } }')).codes,
    ).toEqual(['CONTENT.LINK']);
    const named = 'mutation { issueApiKey(accountId: "ada", scopes: ["play"], name: "eve@example.com") { key } }';
    expect((await ask(named)).codes).toEqual(['CONTENT.EMAIL']);
    expect(await metrics()).toContain('agon_problems_total{door="graphql",code="CONTENT.EMAIL"} 1');
    const found = (name: string, displayName: string) =>
      `mutation { registerOrganisation(accountId: "${name}", displayName: "${displayName}", founderId: "ada") { id } }`;
    expect((await ask(found('eve', 'Write to eve@example.com'))).codes).toEqual(['CONTENT.EMAIL']);
    const enrol = await fetch(`${url}/v1/auth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ accountId: 'support', password: 'correct horse battery' }),
    });
    expect({ status: enrol.status, ...((await enrol.json()) as object) }).toMatchObject({
      status: 422,
      code: 'CONTENT.RESERVED',
    });
    for (const name of ['eve', 'support']) expect(await lastOf(`account-${name}`)).toBeUndefined();
  });
});

describe('an operation of GraphQL', () => {
  it.each([
    ['{ games }', 'query games'],
    ['query Mine { mine: games }', 'query games'],
    ['mutation { a: voidMatch b: voidMatch }', 'mutation voidMatch'],
    ['{ games agents { nodes { agentId } } }', 'query several'],
    ['{ ...f } fragment f on Query { games }', 'query several'],
    ['query A { games } query B { games }', 'several'],
  ])('%s is called %s', (query, name) => expect(operationIn(parse(query))).toBe(name));
});
