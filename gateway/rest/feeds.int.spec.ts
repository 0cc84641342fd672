import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { run } from '../../ops/e2e/agon.contract.js';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { MemoryCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { type Checkpoints, Folds } from '../../services/kernel/index.js';
import { dispatchWebhooks } from '../webhooks/dispatcher.js';
import { courierPorts } from '../webhooks/part.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-feeds-'));
let arena: Arena;
let url: string;
let operator: Record<string, string>;

interface Got {
  readonly headers: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: the shape of a message is what each test says about it.
  readonly message: any;
  readonly body: string;
}
const got: Got[] = [];
const answer = { status: 200 };
let receiver: Server;
let hook: string;

beforeAll(async () => {
  receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => {
      got.push({ headers: request.headers as never, body, message: JSON.parse(body) });
      response.writeHead(answer.status).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  const settings = { dataDir: folder, webhookPrivate: true };
  arena = await arenaOfSpec(settings);
  url = await arena.listen();
  operator = { authorization: `Bearer ${readFileSync(join(folder, 'operator.token'), 'utf8')}` };
  for (const owner of ['ada', 'bob']) {
    await ask(`mutation { registerOwner(accountId: "${owner}", displayName: "${owner}") { id } }`);
    const source = `function act(o) { return o.legal[0] } // ${owner}`;
    const headers = { 'content-type': 'application/octet-stream', ...operator };
    await fetch(`${url}/v1/accounts/${owner}/agents/bot?games=tic-tac-toe`, { method: 'PUT', headers, body: source });
  }
});

afterAll(async () => {
  receiver?.close();
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
const grant = (account: string, cents: number) =>
  ask(`mutation { grantCredits(accountId: "${account}", amountCents: "${cents}") { id } }`);
const call = async (method: string, path: string, body?: object, headers: object = operator) => {
  const json = body ? { 'content-type': 'application/json' } : {};
  const init = { method, headers: { ...json, ...headers }, ...(body ? { body: JSON.stringify(body) } : {}) };
  const response = await fetch(`${url}/v1/accounts/${path}`, init);
  return { status: response.status, body: (await response.json()) as Loose };
};
const playOne = async (): Promise<string> => {
  const { proposeMatch } = await ask(
    'mutation { proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"]) { id } }',
  );
  const look = async () => (await ask(`{ match(matchId: "${proposeMatch.id}") { status } }`)).match?.status;
  await expect.poll(look, { timeout: 60_000 }).toBe('settled');
  return proposeMatch.id;
};

/** What a socket says until it closes, or until it has said enough. */
const listen = (path: string, options: { headers?: object; origin?: string; enough?: number } = {}) =>
  new Promise<{ code: number; said: { id?: string; event: string; data: Record<string, unknown> }[] }>(
    (resolve, reject) => {
      const { origin, headers = {} } = options;
      const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, {
        headers: headers as never,
        ...(origin ? { origin } : {}),
      });
      const said: never[] = [];
      socket.on('message', (text) => {
        said.push(JSON.parse(String(text)) as never);
        if (said.length === options.enough) socket.close();
      });
      socket.on('close', (code) => resolve({ code, said }));
      socket.on('unexpected-response', (_request, response) =>
        reject(Object.assign(new Error(), { status: response.statusCode })),
      );
      socket.on('error', reject);
    },
  );

describe('a match over a WebSocket', () => {
  it('says the same as over server-sent events, and goes on behind the last id', async () => {
    const id = await playOne();
    const text = await (await fetch(`${url}/v1/matches/${id}/live`)).text();
    const { said, code } = await listen(`/v1/matches/${id}/live`);
    expect(code).toBe(1000);
    expect(said.at(-1)).toMatchObject({ event: 'end', data: { status: 'settled' } });
    const ids = said.flatMap((each) => each.id ?? []);
    expect(ids).toEqual([...text.matchAll(/^id: (.*)$/gm)].map(([, each]) => each));
    expect(ids.length).toBeGreaterThan(4);
    const rest = await listen(`/v1/matches/${id}/live?after=${ids[2]}`);
    expect(rest.said).toEqual(said.slice(3));
    expect((await listen(`/v1/matches/${id}/live`, { headers: { 'last-event-id': ids[1] } })).said).toEqual(
      said.slice(2),
    );
  });

  it('is refused before it is opened: an unknown match, and pages of other origins', async () => {
    const id = await playOne();
    const unknown = '7b1d4a0e-6a1c-5b51-8a3c-1f6b0e0e1c11';
    await expect(listen(`/v1/matches/${unknown}/live`)).rejects.toMatchObject({ status: 404 });
    await expect(listen(`/v1/matches/${id}/live?after=x`)).rejects.toMatchObject({ status: 400 });
    await expect(listen(`/v1/matches/${id}/live`, { origin: 'https://evil.example' })).rejects.toMatchObject({
      status: 403,
    });
    expect((await listen(`/v1/matches/${id}/live`, { origin: url })).code).toBe(1000);
  });
});

describe('the log, followed', () => {
  it('is told to staff by both ways, from any position on, and to nobody else', async () => {
    await grant('ada', 100);
    const last = await arena.store.lastPosition();
    const { said } = await listen(`/v1/events?after=${last - 5}`, { headers: operator, enough: 5 });
    expect(said.map(({ id }) => Number(id))).toEqual([last - 4, last - 3, last - 2, last - 1, last]);
    const events = await listen('/v1/events?after=0&type=OwnerRegistered', { headers: operator, enough: 2 });
    expect(events.said.map(({ event, data }) => [event, (data as { stream: string }).stream])).toEqual([
      ['OwnerRegistered', 'account-ada'],
      ['OwnerRegistered', 'account-bob'],
    ]);
    const controller = new AbortController();
    const response = await fetch(`${url}/v1/events?after=${last - 1}`, {
      headers: operator,
      signal: controller.signal,
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes(`id: ${last}\n`)) text += (await reader?.read())?.value ?? '';
    controller.abort();
    expect(text).toContain('event: ');
    await expect(listen('/v1/events')).rejects.toMatchObject({ status: 401 });
    expect((await fetch(`${url}/v1/events`)).status).toBe(401);
  });
});

describe('webhooks', () => {
  it('are added once for each key, tell what happens, and are removed', async () => {
    const key = { ...operator, 'idempotency-key': 'hook-1' };
    const wanted = { url: hook, types: ['CreditsGranted'] };
    const { status, body: added } = await call('POST', 'ada/webhooks', wanted, key);
    expect(status).toBe(201);
    expect(added.secret).toMatch(/^whsec_/);
    const again = await call('POST', 'ada/webhooks', wanted, key);
    expect(again.body).toMatchObject({ webhookId: added.webhookId, secret: added.secret, repeated: true });
    expect(await call('POST', 'ada/webhooks', { url: `${hook}2` }, key)).toMatchObject({
      status: 422,
      body: { code: 'COMMAND.KEY_REUSED' },
    });
    const { body: listed } = await call('GET', 'ada/webhooks');
    expect(listed.items).toMatchObject([{ webhookId: added.webhookId, url: hook, status: 'active', failed: [] }]);
    expect(JSON.stringify([listed, await arena.store.readStream('webhooks-registry')])).not.toContain('whsec_');
    await grant('bob', 7);
    await grant('ada', 42);
    await expect.poll(() => got.length, { timeout: 30_000 }).toBe(1);
    const [{ headers, body, message } = {} as Got] = got;
    expect(message).toMatchObject({ type: 'CreditsGranted', data: { accountId: 'ada', amountCents: '42' } });
    const secret = Buffer.from(added.secret.slice('whsec_'.length), 'base64');
    const { 'webhook-id': id, 'webhook-timestamp': at } = headers;
    const mine = createHmac('sha256', secret).update(`${id}.${at}.${body}`).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${mine}`);
    const tested = await call('POST', `ada/webhooks/${added.webhookId}/test`);
    expect(tested.body).toMatchObject({ delivered: true, status: 200 });
    expect(got.at(-1)?.message.type).toBe('WebhookTest');
    expect((await call('POST', `bob/webhooks/${added.webhookId}/test`)).body.code).toBe('WEBHOOKS.UNKNOWN');
    expect((await call('DELETE', `ada/webhooks/${added.webhookId}`)).body.events).toEqual(['WebhookRemoved']);
    expect((await call('GET', 'ada/webhooks')).body.items).toEqual([]);
    expect((await call('GET', 'ada/webhooks', undefined, {})).status).toBe(401);
  });

  it('are worked with from the command line', async () => {
    const agon = async (...args: string[]) => {
      const { code, stdout, stderr } = await run('webhook', ...args, '--data', folder);
      return { code, stdout, stderr };
    };
    answer.status = 200;
    const added = JSON.parse((await agon('add', 'ada', hook, '--types', 'CreditsGranted', '--json')).stdout);
    expect(added).toMatchObject({ url: hook, types: ['CreditsGranted'], secret: expect.stringMatching(/^whsec_/) });
    const listed = await agon('list', 'ada');
    expect(listed.stdout).toMatch(new RegExp(`^${added.webhookId} +active +0 +${hook} +CreditsGranted`, 'm'));
    expect(listed.stdout).not.toContain('whsec_');
    expect(await agon('test', 'ada', added.webhookId)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('delivered'),
    });
    answer.status = 500;
    expect(await agon('test', 'ada', added.webhookId)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('500'),
    });
    answer.status = 200;
    expect((await agon('replay', 'ada', added.webhookId)).stdout).toContain('nothing to replay');
    expect(await agon('remove', 'ada', added.webhookId)).toMatchObject({ code: 0 });
    expect(await agon('remove', 'ada', added.webhookId)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('WEBHOOKS.UNKNOWN'),
    });
  });

  it('become dead letters when nothing helps, are sent again on demand, and miss nothing over a restart', async () => {
    const { store, clock, execute } = arena;
    const { load } = new Folds({ store });
    const checkpoints = new MemoryCheckpoints();
    const ports = { ...courierPorts('key', clock, true), wait: async () => {} };
    const makeBus = (behind: Checkpoints) => new EmbeddedBus(store, behind);
    const start = () => dispatchWebhooks({ store, load, checkpoints, makeBus, ports, execute, onRetry: () => {} });
    // The arena's own courier waits between attempts; this one does not, and has checkpoints of its own.
    const { body: added } = await call('POST', 'bob/webhooks', { url: hook, types: ['CreditsGranted'] });
    answer.status = 503;
    got.length = 0;
    let courier = await start();
    await grant('bob', 1001);
    const failed = async () => (await call('GET', 'bob/webhooks')).body.items[0].failed;
    await expect.poll(async () => (await failed()).length, { timeout: 30_000 }).toBe(1);
    expect((await failed())[0]).toMatchObject({ attempts: 8, why: 'it answered 503' });
    const before = got
      .filter(({ message }) => message.data.amountCents === '1001')
      .map(({ headers }) => headers['webhook-id']);
    await courier.stop();
    await grant('bob', 1002);
    answer.status = 200;
    got.length = 0;
    courier = await start();
    const amounts = () => [...new Set(got.map(({ message }) => message.data.amountCents))].sort();
    await expect.poll(amounts, { timeout: 30_000 }).toContain('1002');
    const { body: receipt } = await call('POST', `bob/webhooks/${added.webhookId}/replay`);
    expect(receipt.events).toEqual(['ReplayAsked']);
    await expect.poll(amounts, { timeout: 30_000 }).toEqual(['1001', '1002']);
    const after = got
      .filter(({ message }) => message.data.amountCents === '1001')
      .map(({ headers }) => headers['webhook-id']);
    expect(new Set([...before, ...after]).size).toBe(1);
    await expect.poll(failed, { timeout: 30_000 }).toEqual([]);
    await courier.stop();
  });

  it.each<[string, object, number, string]>([
    ['a file', { url: 'file:///etc/passwd' }, 400, 'QUERY.INVALID'],
    ['what a cloud tells its machines', { url: 'http://169.254.169.254/' }, 422, 'WEBHOOKS.BAD_URL'],
    ['an unknown type', { url: 'https://example.com/', types: ['ApiKeyIssued'] }, 400, 'QUERY.INVALID'],
    ['a field that is none', { url: 'https://example.com/', secret: 'mine' }, 400, 'QUERY.INVALID'],
  ])('do not take %s', async (_what, body, status, code) => {
    expect(await call('POST', 'ada/webhooks', body)).toMatchObject({ status, body: { code } });
  });
});

describe('a replay file', () => {
  it('is verified without the arena, and not when anything in it was changed', async () => {
    const id = await playOne();
    const text = await (await fetch(`${url}/v1/matches/${id}/replay`)).text();
    const file = join(folder, 'match.replay.json');
    const verify = async (content: string) => {
      writeFileSync(file, content);
      return run('match', 'verify', file, '--json');
    };
    const good = await verify(text);
    expect([good.code, JSON.parse(good.stdout)]).toMatchObject([0, { verified: true, matchId: id }]);
    const changed = await verify(text.replace('"winner":0', '"winner":1'));
    expect([changed.code, JSON.parse(changed.stdout).verified]).toEqual([1, false]);
    expect((await verify('{}')).code).toBe(1);
  });
});
