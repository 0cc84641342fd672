import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { env, stderr, stdin } from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError } from '../../services/kernel/index.js';
import { folderLayout, holderOf } from '../../services/runtime/data-folder.js';
import { colour, type Outcome } from './output.js';

interface Login extends Omit<SignedIn, 'expiresInS'> {
  /** When the access token is to be renewed. */
  readonly renewAtMs: number;
}

interface Credentials {
  /** The arena that was signed in to last. */
  readonly current?: string;
  readonly arenas: Readonly<Record<string, Login>>;
}

interface SignedIn {
  readonly accountId: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly expiresInS: number;
}

const LOCK_MS = { try: 50, wait: 15_000, stale: 30_000 };
const file = () =>
  env.AGON_CREDENTIALS || join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'agon', 'credentials.json');

function kept(): Credentials {
  try {
    return JSON.parse(readFileSync(file(), 'utf8')) as Credentials;
  } catch {
    return { arenas: {} };
  }
}

function keep(next: Credentials): void {
  mkdirSync(dirname(file()), { recursive: true, mode: 0o700 });
  writeFileSync(`${file()}.new`, JSON.stringify(next), { mode: 0o600 });
  renameSync(`${file()}.new`, file());
}

/** An access token for this arena, renewed if need be; undefined when nobody signed in to it. */
async function loginFor(url: string): Promise<string | undefined> {
  const login = kept().arenas[url];
  if (!login) return undefined;
  if (login.renewAtMs > Date.now()) return login.accessToken;
  return alone(async () => {
    // Another command may have renewed it meanwhile: the same refresh token twice would end the session.
    const now = kept().arenas[url];
    if (!now || now.renewAtMs > Date.now()) return now?.accessToken;
    try {
      return remember(url, await post<SignedIn>(url, 'refresh', { refreshToken: now.refreshToken })).accessToken;
    } catch (error) {
      if (!(error instanceof AgonError) || !/^AUTH\./.test(error.code)) throw error;
      forget(url);
      throw new AgonError(error.code, `${error.message} ("agon login ${now.accountId}")`);
    }
  });
}

function remember(url: string, { accountId, accessToken, refreshToken, expiresInS }: SignedIn): Login {
  // Renewed half a minute early, so that it is still good when it arrives.
  const login = { accountId, accessToken, refreshToken, renewAtMs: Date.now() + (expiresInS - 30) * 1000 };
  keep({ current: url, arenas: { ...kept().arenas, [url]: login } });
  return login;
}

function forget(url: string): void {
  const { current, arenas: before } = kept();
  const { [url]: _gone, ...arenas } = before;
  keep({ arenas, ...(current && current !== url ? { current } : {}) });
}

/** One command at a time: what two read, change and write at once would be lost by one of them. */
async function alone<T>(work: () => Promise<T>): Promise<T> {
  const lock = `${file()}.lock`;
  mkdirSync(dirname(lock), { recursive: true, mode: 0o700 });
  for (let waitedMs = 0; ; waitedMs += LOCK_MS.try) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const made = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - made > LOCK_MS.stale) rmSync(lock, { recursive: true, force: true });
    if (waitedMs > LOCK_MS.wait)
      throw new AgonError('AUTH.LOCKED', `Another command holds ${lock}. Remove it if none runs.`);
    await sleep(LOCK_MS.try);
  }
  try {
    return await work();
  } finally {
    rmdirSync(lock);
  }
}

interface LoginFlags {
  readonly arena?: string;
  readonly totp?: string;
  readonly register: boolean;
  readonly oidc: boolean;
  readonly port: number;
}

export async function logIn(dataDir: string, accountId: string | undefined, flags: LoginFlags): Promise<Outcome> {
  const url = arenaOf(dataDir, flags.arena);
  const totp = flags.totp === undefined ? {} : { totp: flags.totp };
  if (!flags.oidc && accountId === undefined) {
    throw new AgonError('AUTH.NO_ACCOUNT', 'Say which account: "agon login ada". Only --oidc finds it by itself.');
  }
  const signedIn = flags.oidc
    ? await byBrowser(url, { ...(flags.register ? { accountId } : {}) }, totp, flags.port)
    : await post<SignedIn>(url, flags.register ? 'register' : 'login', {
        accountId,
        password: await password(),
        ...totp,
      });
  await alone(async () => remember(url, signedIn));
  const text = `${colour.green('signed in')}: ${signedIn.accountId} at ${url}`;
  return { json: { accountId: signedIn.accountId, arena: url }, text };
}

export async function logOut(dataDir: string, flags: { arena?: string }): Promise<Outcome> {
  const url = arenaOf(dataDir, flags.arena);
  const login = kept().arenas[url];
  if (login) {
    await alone(async () => forget(url));
    await post(url, 'logout', { refreshToken: login.refreshToken });
  }
  const text = login
    ? `${colour.green('signed out')}: ${login.accountId} at ${url}`
    : `Nobody was signed in to ${url}.`;
  return { json: { arena: url, accountId: login?.accountId ?? null }, text };
}

export async function whoAmI(dataDir: string): Promise<Outcome> {
  const { url, token } = await accessOf(dataDir);
  type Me = { accountId: string; role: string; memberOf: Record<string, string> };
  const me = await ask<Me>(url, 'me', 'GET', { token });
  const also = Object.entries(me.memberOf).map(([organisation, role]) => `, ${role} of ${organisation}`);
  return { json: { ...me, arena: url }, text: `${me.accountId} (${me.role}${also.join('')}) at ${url}` };
}

/**
 * Which arena to ask, and as whom: the one that AGON_URL names, the one that runs on this data folder, or the one
 * that was signed in to last. Whoever signed in there acts as themselves; on its own machine the operator needs not.
 */
export async function accessOf(dataDir: string): Promise<{ url: string; token: string }> {
  const local = holderOf(dataDir)?.url;
  const url = env.AGON_URL?.replace(/\/+$/, '') || local || kept().current;
  if (!url) {
    throw new AgonError(
      'ARENA.NOT_RUNNING',
      `No arena runs on ${dataDir}. Start one with "agon start", then try again.`,
    );
  }
  const login = await loginFor(url);
  if (login) return { url, token: login };
  const { token: tokenFile } = folderLayout(dataDir);
  if (url === local && existsSync(tokenFile)) return { url, token: readFileSync(tokenFile, 'utf8').trim() };
  throw new AgonError(
    'AUTH.NOT_SIGNED_IN',
    `You are not signed in to ${url}. Try "agon login <account> --arena ${url}".`,
  );
}

/** Passwords do not cross a network in clear. */
function arenaOf(dataDir: string, flag: string | undefined): string {
  const url = (flag ?? env.AGON_URL ?? holderOf(dataDir)?.url ?? kept().current ?? '').replace(/\/+$/, '');
  if (url === '') {
    throw new AgonError('ARENA.NOT_RUNNING', `No arena runs on ${dataDir}. Say which one with --arena <address>.`);
  }
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' };
  const safe = protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname));
  if (safe) return url;
  throw new AgonError(
    'AUTH.INSECURE',
    `${url} is neither https nor on this machine: a password would go there in clear.`,
  );
}

/** From AGON_PASSWORD, a pipe, or the keyboard, where it is not shown. */
async function password(): Promise<string> {
  if (env.AGON_PASSWORD) return env.AGON_PASSWORD;
  if (stdin.isTTY) stderr.write('Password: ');
  const lines = createInterface({ input: stdin, terminal: stdin.isTTY === true });
  try {
    for await (const line of lines) {
      if (stdin.isTTY) stderr.write('\n');
      return line;
    }
  } finally {
    lines.close();
  }
  throw new AgonError('AUTH.NO_PASSWORD', 'There is no password. Type one, pipe it in, or set AGON_PASSWORD.');
}

/** RFC 8252: the browser comes back to a port of this machine that only this command listens on. */
async function byBrowser(url: string, begin: object, finish: object, port: number): Promise<SignedIn> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
  try {
    const { url: page, flow } = await post<{ url: string; flow: string }>(url, 'oidc/begin', { redirectUri, ...begin });
    stderr.write(`Open this in a browser to sign in:\n${page}\n`);
    const callbackUrl = await new Promise<string>((came) => {
      server.on('request', (request, response) => {
        const isIt = request.url?.startsWith('/callback?');
        response.writeHead(isIt ? 200 : 404, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
        response.end(isIt ? 'You can close this page and go back to the terminal.\n' : 'Not here.\n');
        if (isIt) came(new URL(request.url ?? '', redirectUri).href);
      });
    });
    return await post<SignedIn>(url, 'oidc/finish', { flow, callbackUrl, ...finish });
  } finally {
    server.close();
  }
}

const post = <T>(url: string, path: string, body: object): Promise<T> => ask<T>(url, path, 'POST', { body });

/** Sends a request, with what it says as JSON. */
export function reach(url: string, method: string, path: string, { body, token }: Message): Promise<Response> {
  const headers = {
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...(body ? { 'content-type': 'application/json' } : {}),
  };
  return fetch(`${url}${path}`, { method, headers, body: body ? JSON.stringify(body) : null }).catch((error: Error) => {
    throw new AgonError('ARENA.NO_ANSWER', `The arena at ${url} does not answer: ${error.message}.`);
  });
}

interface Message {
  readonly body?: object | undefined;
  readonly token?: string;
}

async function ask<T>(url: string, path: string, method: string, message: Message): Promise<T> {
  const response = await reach(url, method, `/v1/auth/${path}`, message);
  if (response.status === 204) return undefined as T;
  const body = (await response.json().catch(() => ({}))) as T & { code?: string; detail?: string };
  if (response.ok) return body;
  throw new AgonError(body.code ?? 'ARENA.REFUSED', body.detail ?? `${url} said ${response.status}.`);
}
