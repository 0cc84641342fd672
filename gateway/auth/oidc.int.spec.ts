import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { manualClock } from '../../services/kernel/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { type KeyRing, Tokens } from './tokens.js';
import { fromBase32, totpAt } from './totp.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-oidc-'));
const REDIRECT = 'http://127.0.0.1:9/callback';
const SECRET = 'a-secret-of-this-client';
let arena: Arena;
let url: string;
let provider: Server;
let issuer: string;
const password = 'correct horse battery';
const clock = manualClock(new Date().toISOString());

beforeAll(async () => {
  provider = await startProvider();
  issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const env = { AGON_OIDC_ISSUER: issuer, AGON_OIDC_CLIENT_ID: 'agon', AGON_OIDC_CLIENT_SECRET: SECRET };
  const flags = { dataDir: folder, runner: false };
  arena = await arenaOfSpec(flags, { clock, env });
  url = await arena.listen();
});

afterAll(async () => {
  await arena?.stop();
  provider?.closeAllConnections();
  provider?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A certified OpenID provider, on this machine. It has no types of its own, so it is loaded by its name alone. */
async function startProvider(): Promise<Server> {
  const name: string = 'oidc-provider';
  const { default: Provider } = await import(name);
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const oidc = new Provider(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    clients: [{ client_id: 'agon', client_secret: SECRET, redirect_uris: [REDIRECT], application_type: 'native' }],
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email'], profile: ['name'] },
    conformIdTokenClaims: false,
    findAccount: (_context: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ sub, email: `${sub}@id.example`, name: `The ${sub}` }),
    }),
  });
  server.on('request', oidc.callback());
  return server;
}

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what each test says about it.
  readonly [field: string]: any;
}

async function auth(path: string, body: unknown, token = '') {
  const response = await fetch(`${url}/v1/auth/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Answer };
}

/** What a person does in a browser: signs in as somebody, agrees, and is sent back. */
async function browse(start: string, login: string): Promise<string> {
  const cookies = new Map<string, string>();
  let next = new URL(start);
  let form: Record<string, string> | undefined;
  for (let step = 0; step < 20; step++) {
    const response: Response = await fetch(next, {
      redirect: 'manual',
      method: form ? 'POST' : 'GET',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form ? { body: new URLSearchParams(form) } : {}),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const to = response.headers.get('location');
    if (to) {
      form = undefined;
      if (new URL(to, next).pathname === '/callback') return to;
      next = new URL(to, next);
      continue;
    }
    const page = await response.text();
    if (response.status !== 200) throw new Error(`${next} said ${response.status}: ${page}`);
    form = page.includes('name="login"') ? { prompt: 'login', login, password: 'any' } : { prompt: 'consent' };
  }
  throw new Error('The provider never sent us back.');
}

const begin = async (more = {}, token = '') => {
  const { status, body } = await auth('oidc/begin', { redirectUri: REDIRECT, ...more }, token);
  expect(status).toBe(200);
  return body as { url: string; flow: string };
};
const me = async (token: string) =>
  (await (await fetch(`${url}/v1/auth/me`, { headers: { authorization: `Bearer ${token}` } })).json()) as object;

describe("signing in by another's word", () => {
  it('asks with PKCE, a state and a nonce, and tells the client nothing that it could change', async () => {
    const { url: start, flow } = await begin();
    const asked = new URL(start).searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      client_id: 'agon',
      response_type: 'code',
      redirect_uri: REDIRECT,
      code_challenge_method: 'S256',
      state: expect.stringMatching(/.{20}/),
      nonce: expect.stringMatching(/.{20}/),
    });
    for (const name of ['state', 'nonce']) expect(flow).not.toContain(asked.get(name));
  });

  it('registers whoever comes first with a name, and knows them again without', async () => {
    const unknown = await begin();
    const nobody = await auth('oidc/finish', { flow: unknown.flow, callbackUrl: await browse(unknown.url, 'ada-sub') });
    expect(nobody.body.code).toBe('ACCOUNTS.NOT_LINKED');
    const first = await begin({ accountId: 'ada' });
    const made = await auth('oidc/finish', { flow: first.flow, callbackUrl: await browse(first.url, 'ada-sub') });
    expect(made).toMatchObject({ status: 200, body: { accountId: 'ada' } });
    expect(await me(made.body.accessToken)).toMatchObject({ accountId: 'ada', email: 'ada-sub@id.example' });
    const again = await begin();
    const known = await auth('oidc/finish', { flow: again.flow, callbackUrl: await browse(again.url, 'ada-sub') });
    expect(known.body.accountId).toBe('ada');
    const other = await begin({ accountId: 'ada' });
    const thief = await auth('oidc/finish', { flow: other.flow, callbackUrl: await browse(other.url, 'eve-sub') });
    expect(thief.body.code).toBe('ACCOUNTS.TAKEN');
    // Whoever has no password is not let in with one.
    expect((await auth('login', { accountId: 'ada', password: 'any password' })).body.code).toBe(
      'AUTH.BAD_CREDENTIALS',
    );
    const log = JSON.stringify(await arena.store.readStream('account-ada'));
    expect(log).toContain('IdentityLinked');
    expect(log).not.toContain('ada-sub');
  });

  it('is added to an account by whoever has signed in to it, and to one account only', async () => {
    const { accessToken } = (await auth('register', { accountId: 'bob', password })).body;
    // A token alone adds no way in: whoever has stolen one has it for ten minutes, and the identity would stay.
    const unproven = await auth('oidc/begin', { redirectUri: REDIRECT }, accessToken);
    expect(unproven).toMatchObject({ status: 401, body: { code: 'AUTH.BAD_CREDENTIALS' } });
    const linking = await begin({ password }, accessToken);
    const linked = await auth('oidc/finish', { flow: linking.flow, callbackUrl: await browse(linking.url, 'bob-sub') });
    expect(linked.body.accountId).toBe('bob');
    const again = await begin();
    const known = await auth('oidc/finish', { flow: again.flow, callbackUrl: await browse(again.url, 'bob-sub') });
    expect(known.body.accountId).toBe('bob');
    const stolen = await begin({ password }, accessToken);
    const refused = await auth('oidc/finish', { flow: stolen.flow, callbackUrl: await browse(stolen.url, 'ada-sub') });
    expect(refused.body.code).toBe('ACCOUNTS.IDENTITY_TAKEN');
  });

  it('is not added once the session that began is over, as after a new password', async () => {
    const { accessToken } = (await auth('register', { accountId: 'dora', password })).body;
    const begun = await begin({ password }, accessToken);
    const callbackUrl = await browse(begun.url, 'dora-sub');
    const changed = await auth('password', { password, newPassword: 'another staple entirely' }, accessToken);
    expect(changed.status).toBe(200);
    expect((await auth('oidc/finish', { flow: begun.flow, callbackUrl })).body.code).toBe('AUTH.BAD_FLOW');
    const later = await begin();
    const unknown = await auth('oidc/finish', { flow: later.flow, callbackUrl: await browse(later.url, 'dora-sub') });
    expect(unknown.body.code).toBe('ACCOUNTS.NOT_LINKED');
  });

  it('is not added without the second factor, and taken back with it', async () => {
    const codeOf = (secret: string) => totpAt(fromBase32(secret), Date.parse(clock()));
    const { accessToken } = (await auth('register', { accountId: 'emil', password })).body;
    const { secret } = (await auth('totp', { password }, accessToken)).body;
    const token = (await auth('totp/confirm', { code: codeOf(secret) }, accessToken)).body.accessToken;
    const begun = await begin({ password }, token);
    const callbackUrl = await browse(begun.url, 'emil-sub');
    const bare = await auth('oidc/finish', { flow: begun.flow, callbackUrl });
    expect(bare.body.code).toBe('AUTH.TOTP_REQUIRED');
    const log = async () => (await arena.store.readStream('account-emil')).map(({ type }) => type);
    expect(await log()).not.toContain('IdentityLinked');
    clock.advance(30_000);
    const linked = await auth('oidc/finish', { flow: begun.flow, callbackUrl, totp: codeOf(secret) });
    expect(linked.body.accountId).toBe('emil');
    expect(await me(linked.body.accessToken)).toMatchObject({ identities: [issuer] });
    clock.advance(30_000);
    const unlink = (more: object) =>
      auth('oidc/unlink', { issuer, password, totp: codeOf(secret), ...more }, linked.body.accessToken);
    expect((await unlink({ password: 'a guess' })).body.code).toBe('AUTH.BAD_CREDENTIALS');
    expect((await unlink({ totp: undefined })).body.code).toBe('AUTH.TOTP_REQUIRED');
    expect((await unlink({ issuer: 'https://another.example' })).body.code).toBe('ACCOUNTS.NOT_LINKED');
    const taken = await unlink({});
    expect(await me(taken.body.accessToken)).toMatchObject({ accountId: 'emil', identities: [] });
    // Whoever came in by it is out.
    expect(await me(linked.body.accessToken)).toMatchObject({ status: 401 });
    const again = await begin();
    const unknown = await auth('oidc/finish', { flow: again.flow, callbackUrl: await browse(again.url, 'emil-sub') });
    expect(unknown.body.code).toBe('ACCOUNTS.NOT_LINKED');
  });

  it('proves who is there only for a while, where there is no password, and is not the last to go', async () => {
    const first = await begin({ accountId: 'fritz' });
    const made = await auth('oidc/finish', { flow: first.flow, callbackUrl: await browse(first.url, 'fritz-sub') });
    const last = await auth('oidc/unlink', { issuer }, made.body.accessToken);
    expect(last).toMatchObject({ status: 409, body: { code: 'AUTH.LAST_WAY_IN' } });
    expect((await auth('oidc/begin', { redirectUri: REDIRECT }, made.body.accessToken)).status).toBe(200);
    clock.advance(601_000);
    const { accessToken } = (await auth('refresh', { refreshToken: made.body.refreshToken })).body;
    const stale = await auth('oidc/begin', { redirectUri: REDIRECT }, accessToken);
    expect(stale).toMatchObject({ status: 401, body: { code: 'AUTH.STALE_SESSION' } });
  });

  it('is refused when something does not fit', async () => {
    const keys = () => JSON.parse(readFileSync(join(folder, 'signing.json'), 'utf8'));
    const ring: KeyRing = { load: async () => keys(), save: async () => {}, alone: (work) => work() };
    const tokens = new Tokens({ ring, clock, issuer: () => url });
    const changed = async (flow: string, change: object) => tokens.wrap({ ...(await tokens.unwrap(flow)), ...change });
    const table: [string, (flow: string, to: string) => Promise<[string, string]>, string][] = [
      ['another state', async (flow, to) => [flow, to.replace(/state=[^&]+/, 'state=another')], 'AUTH.OIDC_REFUSED'],
      ['no state', async (flow, to) => [flow, to.replace(/state=[^&]+/, '')], 'AUTH.OIDC_REFUSED'],
      [
        'a nonce of another flow',
        async (flow, to) => [await changed(flow, { nonce: 'another' }), to],
        'AUTH.OIDC_REFUSED',
      ],
      [
        'a verifier of another flow',
        async (flow, to) => [await changed(flow, { verifier: 'v'.repeat(43) }), to],
        'AUTH.OIDC_REFUSED',
      ],
      ['a code that is none', async (flow, to) => [flow, to.replace(/code=[^&]+/, 'code=none')], 'AUTH.OIDC_REFUSED'],
      [
        'another provider',
        async (flow, to) => [flow, to.replace(/iss=[^&]+/, 'iss=http%3A%2F%2Fevil.example')],
        'AUTH.OIDC_REFUSED',
      ],
      ['another address', async (flow, to) => [flow, to.replace('127.0.0.1:9', 'evil.example')], 'AUTH.BAD_FLOW'],
      ['a flow that is not ours', async (_flow, to) => ['a.b.c.d.e', to], 'AUTH.BAD_FLOW'],
      ['a flow that was changed', async (flow, to) => [`${flow.slice(0, -3)}AAA`, to], 'AUTH.BAD_FLOW'],
    ];
    for (const [what, twist, code] of table) {
      const { url: start, flow } = await begin();
      const [given, callbackUrl] = await twist(flow, await browse(start, 'bob-sub'));
      const { body } = await auth('oidc/finish', { flow: given, callbackUrl });
      expect({ what, code: body.code }).toEqual({ what, code });
    }
    const { url: start, flow } = await begin();
    const callbackUrl = await browse(start, 'bob-sub');
    expect((await auth('oidc/finish', { flow, callbackUrl })).status).toBe(200);
    expect((await auth('oidc/finish', { flow, callbackUrl })).body.code).toBe('AUTH.OIDC_REFUSED');
  });

  it('works from a terminal: the browser comes back to the command that waits', async () => {
    const credentials = join(folder, 'credentials.json');
    const agon = join(packageRoot, 'ops', 'cli', 'agon.js');
    const args = ['login', 'carl', '--oidc', '--register', '--arena', url, '--json', '--data', join(folder, 'none')];
    const child = spawn(execPath, [agon, ...args], { env: { PATH: process.env.PATH, AGON_CREDENTIALS: credentials } });
    const ended = new Promise<number | null>((over) => child.once('close', over));
    let said = '';
    child.stdout.on('data', (chunk) => {
      said += chunk;
    });
    const page = await new Promise<string>((found) => {
      createInterface(child.stderr).on('line', (line) => line.startsWith('http') && found(line));
    });
    expect((await fetch(await browse(page, 'carl-sub'))).status).toBe(200);
    expect(await ended).toBe(0);
    expect(JSON.parse(said)).toEqual({ accountId: 'carl', arena: url });
    const { accessToken } = JSON.parse(readFileSync(credentials, 'utf8')).arenas[url];
    expect(await me(accessToken)).toMatchObject({ accountId: 'carl', role: 'owner' });
  });

  it('sends people back to this machine or to pages that were named, and nowhere else', async () => {
    for (const redirectUri of ['https://evil.example/', 'http://127.0.0.1.evil.example/', 'javascript:alert(1)']) {
      expect((await auth('oidc/begin', { redirectUri })).body.code).toMatch(/AUTH.BAD_REDIRECT|QUERY.INVALID/);
    }
    expect((await auth('oidc/begin', { redirectUri: 'http://127.0.0.1:51234/here' })).status).toBe(200);
  });
});
