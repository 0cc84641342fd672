import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { AgonError } from '../../services/kernel/index.js';
import { openapi } from './openapi.js';
import { isKeyed } from './route.js';
import { restRoutes } from './serve.js';
import { readUpload, UPLOAD_BYTES_MAX } from './upload.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-rest-'));
let arena: Arena;
let url: string;
let operator: Record<string, string>;
/** Bearers of those who may do less. */
const keys: Record<'bob' | 'narrow' | 'reader', string> = { bob: '', narrow: '', reader: '' };

beforeAll(async () => {
  arena = await arenaOfSpec({ dataDir: folder });
  url = await arena.listen();
  operator = { authorization: `Bearer ${readFileSync(join(folder, 'operator.token'), 'utf8')}` };
  for (const owner of ['ada', 'bob']) {
    await ask(`mutation { registerOwner(accountId: "${owner}", displayName: "${owner}") { id } }`);
  }
  const keyOf = async (rest: string) =>
    `Bearer ${(await ask(`mutation { issueApiKey(${rest}) { key } }`)).issueApiKey.key}`;
  keys.bob = await keyOf('accountId: "bob", scopes: ["submit"]');
  keys.narrow = await keyOf('accountId: "ada", scopes: ["submit"], agents: ["ada.named"]');
  keys.reader = await keyOf('accountId: "ada", scopes: ["read"]');
});

afterAll(async () => {
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

// biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what each test says about it.
type Loose = any;

const ask = async (query: string) => {
  const headers = { 'content-type': 'application/json', ...operator };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what each test says about it.
  return ((await response.json()) as { data: any }).data;
};
const get = async (path: string, init: RequestInit = {}) => {
  const response = await fetch(`${url}${path}`, init);
  return { status: response.status, headers: response.headers, body: (await response.json()) as Loose };
};
const code = 'function act(o) { return o.legal[0] }';
const put = (name: string, body: string | Uint8Array, options: { query?: string; headers?: object } = {}) =>
  get(`/v1/accounts/ada/agents/${name}?games=tic-tac-toe${options.query ?? ''}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream', ...operator, ...options.headers },
    body,
  });
const artifacts = () => readdirSync(join(folder, 'artifacts'), { recursive: true });

describe('the OpenAPI document', () => {
  const document = openapi(restRoutes, '1.0.0');

  it('has no fault that a linter finds', async () => {
    const config = await createConfig({ extends: ['recommended-strict'] });
    const found = await lintFromString({ source: JSON.stringify(document), config });
    expect(found.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)).toEqual([]);
  });

  it('is what the running gateway serves', async () => {
    const { body } = await get('/v1/openapi.json');
    expect(body).toEqual(
      JSON.parse(JSON.stringify({ ...document, info: { ...(document.info as object), version: body.info.version } })),
    );
  });

  it('takes an Idempotency-Key with every write that is not a proof by itself, and says who may ask', () => {
    const paths = document.paths as Record<
      string,
      Record<string, { parameters?: { name: string }[]; security: unknown[] }>
    >;
    for (const route of restRoutes) {
      const { parameters = [], security } = paths[route.path]?.[route.method.toLowerCase()] ?? { security: [] };
      expect(parameters.some(({ name }) => name === 'idempotency-key')).toBe(isKeyed(route));
      expect(security.length > 0).toBe(route.access === 'caller');
    }
  });
});

describe('REST', () => {
  it('takes an agent, once for each key, and shows it', async () => {
    const headers = { 'idempotency-key': 'first' };
    const first = await put('bot', code, { headers });
    expect(first).toMatchObject({ status: 200, body: { id: 'ada.bot', events: ['AgentSubmitted'], repeated: false } });
    expect((await put('bot', code, { headers })).body).toMatchObject({ repeated: true, position: first.body.position });
    expect(await put('bot', `${code} `, { headers })).toMatchObject({
      status: 422,
      body: { code: 'COMMAND.KEY_REUSED' },
    });
    const { body } = await get('/v1/agents/ada.bot');
    expect(body).toMatchObject({ agentId: 'ada.bot', runtime: 'javascript', versions: [{ version: 1 }] });
    expect((await get('/v1/agents?ownerId=ada')).body.items).toHaveLength(1);
  });

  it('shows a match from its proposal to its replay', async () => {
    await put('other', `${code};`);
    const { proposeMatch } = await ask(
      'mutation { proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "ada.other"]) { id } }',
    );
    const path = `/v1/matches/${proposeMatch.id}`;
    await expect.poll(async () => (await get(path)).body.status, { timeout: 60_000 }).toBe('settled');
    await arena.settled();
    const { body: match } = await get(path);
    expect(match).toMatchObject({
      matchId: proposeMatch.id,
      seats: [{ agentId: 'ada.bot' }, { agentId: 'ada.other' }],
    });
    expect((await get(`${path}/turns`)).body.items).toHaveLength(match.turns);
    expect((await get('/v1/matches?game=tic-tac-toe&status=settled&first=1')).body).toMatchObject({
      items: [match],
      next: null,
    });
    const { body: replay, headers } = await get(`${path}/replay`);
    expect(headers.get('content-disposition')).toBe(`attachment; filename="match-${match.matchId}.replay.json"`);
    expect(replay.events.at(0)).toMatchObject({ type: 'MatchProposed', stream: `match-${match.matchId}` });
    const { body: board } = await get('/v1/leaderboards/tic-tac-toe');
    expect(board.items).toMatchObject([
      { rank: 1, games: 1 },
      { rank: 2, games: 1 },
    ]);
    expect((await get('/v1/leaderboards/tic-tac-toe?by=glicko')).body.items).toHaveLength(2);
  });

  it('shows what has changed at once, however often it was asked for before', async () => {
    const { proposeMatch } = await ask(
      'mutation { proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "ada.other"]) { id } }',
    );
    const path = `/v1/matches/${proposeMatch.id}`;
    await expect.poll(async () => (await get(path)).body.status, { timeout: 60_000 }).toBe('settled');
    expect((await get(path)).body.status).toBe('settled');
    const { reverseMatch } = await ask(
      `mutation { reverseMatch(matchId: "${proposeMatch.id}", reason: "a test") { events } }`,
    );
    expect(reverseMatch.events).toEqual(['MatchReversed']);
    expect((await get(path)).body.status).toBe('reversed');
  });

  it.each<[string, string, number, string]>([
    ['an unknown match', '/v1/matches/7b1d4a0e-6a1c-5b51-8a3c-1f6b0e0e1c11', 404, 'ARENA.UNKNOWN_MATCH'],
    ['an unknown agent', '/v1/agents/ada.nobody', 404, 'AGENTS.UNKNOWN'],
    ['an unknown game', '/v1/leaderboards/go', 404, 'ARENA.UNKNOWN_GAME'],
    ['a match that is none', '/v1/matches/latest', 400, 'QUERY.INVALID'],
    ['a page too large', '/v1/matches?first=201', 400, 'QUERY.INVALID'],
    ['a number in disguise', '/v1/matches?first=0x10', 400, 'QUERY.INVALID'],
    ['two of one', '/v1/matches?first=1&first=2', 400, 'QUERY.INVALID'],
    ['an unknown parameter', '/v1/matches?frist=1', 400, 'QUERY.INVALID'],
    ['a cursor of another query', '/v1/matches?after=AA', 400, 'QUERY.BAD_CURSOR'],
    ['a cursor that holds a zero', '/v1/agents?after=AA', 400, 'QUERY.BAD_CURSOR'],
    ['a zero in a name', '/v1/agents/ada.bot%00', 400, 'QUERY.INVALID'],
    ['a line break in a name', '/v1/agents/ada.bot%0d%0ax', 400, 'QUERY.INVALID'],
    ['a broken escape', '/v1/agents/%zz', 400, 'QUERY.INVALID'],
    ['somebody unknown', '/v1/accounts/ada/statement.csv', 401, 'AUTH.UNAUTHENTICATED'],
    ['an unknown address', '/v1/nothing', 404, 'HTTP.NOT_FOUND'],
  ])('refuses %s with problem details', async (_what, path, status, problem) => {
    const answer = await get(path);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(answer).toMatchObject({ status, body: { code: problem, status, title: problem } });
    expect(answer.body.detail).not.toBe('');
  });

  it('says which methods an address takes', async () => {
    const { status, headers, body } = await get('/v1/matches', { method: 'DELETE' });
    expect([status, headers.get('allow'), body.code]).toEqual([405, 'GET, HEAD', 'HTTP.405']);
  });
});

describe('an upload', () => {
  it.each<[string, string, string | Uint8Array, object, number, string]>([
    ['by nobody', 'bot', code, { authorization: 'Bearer x' }, 401, 'AUTH.UNAUTHENTICATED'],
    ['of another kind', 'bot', code, { 'content-type': 'text/html' }, 415, 'HTTP.415'],
    ['to a folder above', '..%2f..%2fevil', code, {}, 400, 'QUERY.INVALID'],
    ['under a name with a zero', 'bot%00', code, {}, 400, 'QUERY.INVALID'],
    ['that cannot play', 'bot', 'let x = 1', {}, 422, 'AGENTS.BROKEN_CODE'],
    ['of bytes that mean nothing', 'bot', Buffer.from([0xff, 0x00, 0xfe]), {}, 422, 'AGENTS.BUNDLE_UNSUPPORTED'],
    ['of an archive that reaches outside', 'bot', tar('../../escape.js', code), {}, 422, 'AGENTS.BUNDLE_UNSAFE_NAME'],
    ['of an archive with an absolute path', 'bot', tar('/etc/cron.d/x', code), {}, 422, 'AGENTS.BUNDLE_UNSAFE_NAME'],
  ])('%s is refused, and leaves nothing behind', async (_what, name, body, headers, status, problem) => {
    const before = artifacts();
    expect(await put(name, body, { headers })).toMatchObject({ status, body: { code: problem } });
    expect(artifacts()).toEqual(before);
  });

  it.each<[string, keyof typeof keys, string]>([
    ['somebody else', 'bob', 'AUTH.FORBIDDEN'],
    ['a key that names other agents', 'narrow', 'AUTH.FORBIDDEN'],
    ['a key without the scope', 'reader', 'AUTH.SCOPE'],
  ])('by %s is refused before it is read, and leaves nothing behind', async (_who, key, problem) => {
    const before = artifacts();
    const headers = { authorization: keys[key] };
    expect(await put('bot', `${code} // ${key}`, { headers })).toMatchObject({ status: 403, body: { code: problem } });
    expect(await oversized(false, headers)).toMatchObject({ status: 403, body: { code: problem } });
    expect(artifacts()).toEqual(before);
  });

  it('by a key that names the agent is taken', async () => {
    const named = await put('named', `${code} // named`, { headers: { authorization: keys.narrow } });
    expect(named).toMatchObject({ status: 200, body: { id: 'ada.named', events: ['AgentSubmitted'] } });
  });

  it('is taken as an archive', async () => {
    const packed = await put('packed', tar('main.js', `export ${code}`));
    expect(packed).toMatchObject({ status: 200, body: { events: ['AgentSubmitted'] } });
  });

  it.each(['declared', 'not declared'])('that is too large is refused before all of it has come (%s)', async (how) => {
    const before = artifacts();
    const answer = await oversized(how === 'declared');
    expect(answer).toMatchObject({ status: 413, body: { code: 'AGENTS.TOO_LARGE', bytesMax: UPLOAD_BYTES_MAX } });
    expect(answer.sentBytes).toBeLessThan(64 * 1024 * 1024);
    expect(artifacts()).toEqual(before);
  });

  it('that stops coming is given up, and so is one that drips without end', async () => {
    const slow = (limits: object) =>
      readUpload(new PassThrough(), undefined, { bytesMax: 10, silentMs: 60_000, totalMs: 60_000, ...limits });
    await expect(slow({ silentMs: 20 })).rejects.toMatchObject({ code: 'HTTP.TOO_SLOW' });
    await expect(slow({ totalMs: 20 })).rejects.toMatchObject({ code: 'HTTP.TOO_SLOW' });
    const dripping = new PassThrough();
    const drip = setInterval(() => dripping.write('x'), 5);
    const read = readUpload(dripping, undefined, { bytesMax: 1_000_000, silentMs: 5_000, totalMs: 60 });
    await expect(read).rejects.toMatchObject({ code: 'HTTP.TOO_SLOW' });
    clearInterval(drip);
    const broken = new PassThrough();
    const reading = readUpload(broken, undefined, { bytesMax: 10, silentMs: 5_000, totalMs: 5_000 });
    broken.destroy();
    await expect(reading).rejects.toBeInstanceOf(AgonError);
  });
});

/** A tar of one file. */
function tar(name: string, content: string): Buffer {
  const head = Buffer.alloc(512);
  head.write(name, 0);
  head.write('0000644\0', 100);
  head.write('0000000\0', 108);
  head.write('0000000\0', 116);
  head.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  head.write('00000000000\0', 136);
  head.write('        ', 148);
  head.write('0', 156);
  head.write('ustar\x0000', 257);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
  body.write(content);
  return Buffer.concat([head, body, Buffer.alloc(1024)]);
}

/** Sends until it is answered, as a client does that does not know the limit. */
function oversized(
  declared: boolean,
  more: object = {},
): Promise<{ status: number | undefined; body: unknown; sentBytes: number }> {
  return new Promise((resolve, reject) => {
    const total = 1024 * 1024 * 1024;
    const headers = {
      ...operator,
      'content-type': 'application/octet-stream',
      ...(declared ? { 'content-length': `${total}` } : {}),
      ...more,
    };
    let sentBytes = 0;
    let answered = false;
    const sending = httpRequest(
      `${url}/v1/accounts/ada/agents/big?games=tic-tac-toe`,
      { method: 'PUT', headers },
      (response) => {
        answered = true;
        let text = '';
        response.setEncoding('utf8').on('data', (piece) => {
          text += piece;
        });
        response.on('end', () => {
          sending.destroy();
          resolve({ status: response.statusCode, body: JSON.parse(text), sentBytes });
        });
      },
    );
    const piece = Buffer.alloc(256 * 1024, 'x');
    const send = () => {
      if (answered || sending.destroyed) return;
      sentBytes += piece.length;
      sending.write(piece, () => setImmediate(send));
    };
    sending.on('error', (error) => answered || reject(error));
    send();
  });
}
