import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CryptoKey, createLocalJWKSet, importJWK, jwtVerify, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { FileVault } from '../../services/adapters/vault/file.js';
import { Folds, manualClock } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { Directory } from './directory.js';
import { identitiesOn } from './part.js';
import type { SigningKey } from './tokens.js';
import { fromBase32, totpAt } from './totp.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-sign-in-'));
const clock = manualClock('2026-03-01T12:00:00.000Z');
const PASSWORD = 'correct horse battery';
let arena: Arena;
let url: string;
let operator: string;

beforeAll(async () => {
  const flags = { dataDir: folder, runner: false, proxies: 1 };
  arena = await arenaOfSpec(flags, { clock, sandbox: { port: 0 } });
  url = await arena.listen();
  operator = readFileSync(join(folder, 'operator.token'), 'utf8').trim();
});

afterAll(async () => {
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Said {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what each test says about it.
  readonly body: any;
}

let addresses = 0;
/** Every call from an address of its own, unless it is said: what is limited by address is a test of its own. */
async function send(
  path: string,
  body?: unknown,
  { token = '', address = '', method = 'POST', key = '' } = {},
): Promise<Said> {
  addresses += 1;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      'x-forwarded-for': address || `10.1.${addresses >> 8}.${addresses & 255}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(key ? { 'idempotency-key': key } : {}),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}

const auth = (path: string, body?: unknown, options = {}) => send(`/v1/auth/${path}`, body, options);
const me = (token: string) => auth('me', undefined, { token, method: 'GET' });
const register = async (accountId: string, more = {}) => {
  const said = await auth('register', { accountId, password: PASSWORD, ...more });
  expect(said).toMatchObject({ status: 201, body: { accountId, tokenType: 'Bearer' } });
  return said.body as { accessToken: string; refreshToken: string };
};
const login = (accountId: string, more = {}) => auth('login', { accountId, password: PASSWORD, ...more });
const ask = async (query: string, token: string) => {
  const { body } = await send('/graphql', { query }, { token });
  return { data: body.data, code: body.errors?.[0]?.extensions?.code };
};
const joins = (accountId: string, organisationId: string, token: string) =>
  ask(
    `mutation { joinOrganisation(accountId: "${accountId}", organisationId: "${organisationId}") { events } }`,
    token,
  );
const appoint = (memberId: string, role: string, by: string) =>
  ask(`mutation { setMember(accountId: "staff", memberId: "${memberId}", role: "${role}") { events } }`, by);
/** Somebody of staff, in a session with a second factor. */
async function staffed(accountId: string, role: string, by = operator): Promise<string> {
  const { accessToken: token } = await register(accountId);
  expect((await appoint(accountId, role, by)).code).toBeUndefined();
  expect((await joins(accountId, 'staff', token)).code).toBeUndefined();
  const { secret } = (await auth('totp', { password: PASSWORD }, { token })).body;
  const confirmed = (await auth('totp/confirm', { code: codeOf(secret) }, { token })).body;
  expect((await me(confirmed.accessToken)).body.role).toBe(role);
  return confirmed.accessToken;
}
const accountOf = (accountId: string) => new Directory(new Folds({ store: arena.store }).load).account(accountId);
const codeOf = (secret: string) => totpAt(fromBase32(secret), Date.parse(clock()));

describe('an account', () => {
  it('is made with a password, and acts for itself', async () => {
    const { accessToken } = await register('ada', { name: 'Ada Lovelace', email: 'ada@example.org' });
    expect((await me(accessToken)).body).toMatchObject({ accountId: 'ada', role: 'owner', name: 'Ada Lovelace' });
    const source = 'function act(o) { return o.legal[0] }';
    const submit = (owner: string) =>
      ask(
        `mutation { submitAgent(ownerId: "${owner}", name: "bot", games: ["tic-tac-toe"], source: "${source}") { events } }`,
        accessToken,
      );
    expect((await submit('ada')).data.submitAgent.events).toEqual(['AgentSubmitted']);
    await register('bob');
    expect((await submit('bob')).code).toBe('AUTH.FORBIDDEN');
    const wallet = (owner: string) => ask(`{ wallet(accountId: "${owner}") { accountId } }`, accessToken);
    expect((await wallet('ada')).data.wallet).toEqual({ accountId: 'ada' });
    expect((await wallet('bob')).code).toBe('AUTH.FORBIDDEN');
  });

  it.each<[string, object, number, string]>([
    ['a name that is taken', { accountId: 'ada' }, 409, 'ACCOUNTS.TAKEN'],
    ["a name of the arena's", { accountId: 'operator' }, 422, 'CONTENT.RESERVED'],
    ["a name of the house's", { accountId: 'gold' }, 409, 'ACCOUNTS.RESERVED'],
    ['a short password', { password: 'short' }, 422, 'AUTH.WEAK_PASSWORD'],
    ['a password of the same letter', { password: 'a'.repeat(20) }, 422, 'AUTH.WEAK_PASSWORD'],
    ["the account's name as password", { accountId: 'elizabeth', password: 'elizabeth123' }, 422, 'AUTH.WEAK_PASSWORD'],
    ['a name with capitals', { accountId: 'Eve' }, 400, 'QUERY.INVALID'],
    ['an e-mail that is none', { email: 'eve' }, 400, 'QUERY.INVALID'],
    ['no password', { password: undefined }, 400, 'QUERY.INVALID'],
  ])('is not made with %s', async (_what, change, status, code) => {
    const said = await auth('register', { accountId: 'eve', password: PASSWORD, ...change });
    expect(said).toMatchObject({ status, body: { code, status } });
    expect(JSON.stringify(said.body)).not.toContain(PASSWORD);
  });

  it('that an operator made can be given to somebody, by staff alone', async () => {
    await ask('mutation { registerOwner(accountId: "machine", displayName: "M") { id } }', operator);
    const body = { accountId: 'machine', password: PASSWORD };
    expect((await auth('register', body)).body.code).toBe('ACCOUNTS.TAKEN');
    // Signing in is left to whoever was let in.
    const made = await auth('register', body, { token: operator });
    expect({ status: made.status, body: made.body }).toEqual({ status: 201, body: { accountId: 'machine' } });
    expect((await login('machine')).status).toBe(200);
    expect((await auth('register', body, { token: operator })).body.code).toBe('ACCOUNTS.TAKEN');
  });

  it('is made once for each key, whose answer may be lost', async () => {
    const made = (key: string, more = {}) =>
      auth('register', { accountId: 'rita', password: PASSWORD, ...more }, { key });
    const [one, two] = await Promise.all([made('k-1'), made('k-1')]);
    for (const { status, body } of [one, two]) {
      expect(status).toBe(201);
      expect((await me(body.accessToken)).body.accountId).toBe('rita');
    }
    expect((await made('k-2')).body.code).toBe('ACCOUNTS.TAKEN');
    // The key is no secret: whoever knows it has to know the rest as well, and is slowed down as at the other endpoint.
    expect((await made('k-1', { password: 'not the password' })).body.code).toBe('AUTH.BAD_CREDENTIALS');
    const byStaff = () => auth('register', { accountId: 'rolf', password: PASSWORD }, { key: 'k-3', token: operator });
    expect((await byStaff()).body).toEqual({ accountId: 'rolf' });
    expect((await byStaff()).body).toEqual({ accountId: 'rolf' });
    expect((await login('rolf')).status).toBe(200);
    const { secret } = (await auth('totp', { password: PASSWORD }, { token: one.body.accessToken })).body;
    await auth('totp/confirm', { code: codeOf(secret) }, { token: one.body.accessToken });
    expect((await made('k-1')).body.code).toBe('AUTH.TOTP_REQUIRED');
  });

  it('is answered the same way whether it is there or not', async () => {
    const [wrong, nobody, impossible] = await Promise.all([
      login('ada', { password: 'not the password' }),
      login('nobody-at-all', { password: 'not the password' }),
      login('../Ada', { password: 'not the password' }),
    ]);
    expect(wrong.status).toBe(401);
    expect(nobody.body).toEqual(wrong.body);
    expect(impossible.body).toEqual(wrong.body);
    expect(wrong.body).toMatchObject({ code: 'AUTH.BAD_CREDENTIALS', status: 401 });
    const plain = (said: Said) => [...said.headers.keys()].filter((name) => name !== 'date').sort();
    expect(plain(nobody)).toEqual(plain(wrong));
  });

  it('cannot be guessed quickly, from one place or from many', async () => {
    await register('prey');
    const guess = (address: string, accountId = 'prey') =>
      auth('login', { accountId, password: 'a guess of mine' }, { address });
    const codes = async (addresses: string[]) => {
      const said = [];
      for (const address of addresses) said.push(await guess(address));
      return said;
    };
    const here = await codes(Array.from({ length: 11 }, () => '10.9.0.1'));
    expect(here.map(({ status }) => status)).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
    expect(Number(here.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(0);
    // Somebody who is not there is guessed no faster.
    const absent = [];
    for (let i = 0; i < 11; i++) absent.push((await guess('10.9.0.2', 'nobody-here')).status);
    expect(absent.at(-1)).toBe(429);
    const many = await codes(Array.from({ length: 51 }, (_, i) => `10.9.1.${i}`));
    expect(many.at(-1)?.status).toBe(429);
    expect((await login('prey')).status).toBe(429);
    clock.advance(60_000);
    expect((await login('prey')).status).toBe(200);
    await arena.settled();
    const trail = await ask('{ auditTrail(accountId: "prey") { nodes { type } } }', operator);
    const refusals = trail.data.auditTrail.nodes.filter(({ type }: { type: string }) => type === 'SignInRefused');
    // The first of a minute is recorded: whoever guesses cannot fill the log.
    expect(refusals).toHaveLength(1);
  });

  it('is guessed no faster by whoever has a network of addresses', async () => {
    await register('herd');
    const guess = async (address: string) =>
      (await auth('login', { accountId: 'herd', password: 'a guess of mine' }, { address })).status;
    const statuses = [];
    for (let i = 0; i < 11; i++) statuses.push(await guess(`2001:db8:9:9:${i.toString(16)}::1`));
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
    // The next network, and an IPv4 address written as IPv6, are others.
    expect([await guess('2001:db8:9:a::1'), await guess('::ffff:10.9.3.1')]).toEqual([401, 401]);
  });

  it('has its endpoints limited by address as well', async () => {
    const statuses = [];
    for (let i = 0; i < 41; i++) {
      const said = await auth('refresh', { refreshToken: 'none' }, { address: '10.8.0.1' });
      statuses.push(said.status);
    }
    expect(statuses.slice(0, 40).every((status) => status === 401)).toBe(true);
    expect(statuses.at(-1)).toBe(429);
  });
});

describe('a session', () => {
  it('gives tokens that anybody can check by the published keys', async () => {
    const { accessToken } = (await login('bob')).body;
    const jwks = (await send('/.well-known/jwks.json', undefined, { method: 'GET' })).body;
    expect(JSON.stringify(jwks)).not.toContain('"d"');
    const { payload } = await jwtVerify(accessToken, createLocalJWKSet(jwks), {
      issuer: url,
      audience: 'agon',
      currentDate: new Date(clock()),
    });
    expect(payload).toMatchObject({ sub: 'bob', amr: ['pwd'] });
  });

  it('is opened by no token that was forged, at no endpoint', async () => {
    const { accessToken } = (await login('bob')).body;
    const [own] = JSON.parse(readFileSync(join(folder, 'signing.json'), 'utf8')) as SigningKey[];
    const part = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString());
    const [header, payload] = accessToken.split('.').slice(0, 2).map(part);
    const { kty, crv, x } = own?.jwk ?? {};
    const pem = createPublicKey({ key: { kty, crv, x } as never, format: 'jwk' }).export({
      type: 'spki',
      format: 'pem',
    });
    const stranger = generateKeyPairSync('ed25519').privateKey;
    const ours = (await importJWK(own?.jwk ?? {}, 'EdDSA')) as CryptoKey;
    const forged = (change: { header?: object; payload?: object; key?: Parameters<SignJWT['sign']>[0] }) =>
      new SignJWT(JSON.parse(JSON.stringify({ ...payload, ...change.payload })))
        .setProtectedHeader({ ...header, ...change.header })
        .sign(change.key ?? ours);
    const none = Buffer.from(JSON.stringify({ ...header, alg: 'none' })).toString('base64url');
    const table: [string, string][] = [
      ['none', `${none}.${accessToken.split('.')[1]}.`],
      ['HS256 by the public key', await forged({ header: { alg: 'HS256' }, key: Buffer.from(pem) })],
      ['a key of somebody else', await forged({ key: stranger })],
      ['a kid of nobody', await forged({ header: { kid: 'another' } })],
      ['no kid', await forged({ header: { kid: undefined } })],
      ['another audience', await forged({ payload: { aud: 'another' } })],
      ['another issuer', await forged({ payload: { iss: 'https://evil.example' } })],
      ['its end', await forged({ payload: { exp: Date.parse(clock()) / 1000 - 60 } })],
      ['another type', await forged({ header: { typ: 'JWT' } })],
      ['a session of somebody else', await forged({ payload: { sub: 'ada' } })],
    ];
    // What was changed in nothing is let in, or the table would prove nothing.
    expect((await me(await forged({}))).body.accountId).toBe('bob');
    const wallet = '{ wallet(accountId: "bob") { accountId } }';
    for (const [what, token] of table) {
      const said = { rest: (await me(token)).status, graphql: (await ask(wallet, token)).code };
      expect({ what, ...said }).toEqual({ what, rest: 401, graphql: 'AUTH.UNAUTHENTICATED' });
    }
  });

  it('goes on by refresh tokens, each good once', async () => {
    const first = (await login('bob')).body;
    const second = (await auth('refresh', { refreshToken: first.refreshToken })).body;
    expect(second.refreshToken).not.toBe(first.refreshToken);
    expect((await me(second.accessToken)).status).toBe(200);
    clock.advance(606_000);
    expect((await me(second.accessToken)).status).toBe(401);
    const third = (await auth('refresh', { refreshToken: second.refreshToken })).body;
    expect((await me(third.accessToken)).body.accountId).toBe('bob');
  });

  it('ends for everybody when a refresh token comes twice', async () => {
    const stolen = (await login('bob')).body;
    const other = (await login('bob')).body;
    const mine = (await auth('refresh', { refreshToken: stolen.refreshToken })).body;
    const again = await auth('refresh', { refreshToken: stolen.refreshToken });
    expect(again).toMatchObject({ status: 401, body: { code: 'AUTH.TOKEN_REUSED' } });
    // The family is revoked: the token that came of it, and its access tokens, at once.
    expect((await auth('refresh', { refreshToken: mine.refreshToken })).body.code).toBe('AUTH.SESSION_OVER');
    for (const { accessToken } of [stolen, mine]) expect((await me(accessToken)).status).toBe(401);
    // Another session of the same person is none of it.
    expect((await me(other.accessToken)).status).toBe(200);
    await arena.settled();
    const trail = await ask('{ auditTrail(accountId: "bob", first: 1) { nodes { type detail } } }', other.accessToken);
    expect(trail.data.auditTrail.nodes[0].type).toBe('SessionEnded');
    expect(JSON.parse(trail.data.auditTrail.nodes[0].detail)).toMatchObject({ reason: 'token-reused' });
  });

  it('of two who refresh with one token at once lets one in, and ends', async () => {
    const { refreshToken } = (await login('bob')).body;
    const both = await Promise.all([1, 2].map(() => auth('refresh', { refreshToken })));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401]);
    const { body } = both.find(({ status }) => status === 200) as Said;
    expect((await me(body.accessToken)).status).toBe(401);
  });

  it('is not ended by somebody who only knows its id', async () => {
    const { refreshToken, accessToken } = (await login('bob')).body;
    const forged = `${refreshToken.slice(0, -64)}${'0'.repeat(64)}`;
    expect((await auth('refresh', { refreshToken: forged })).body.code).toBe('AUTH.SESSION_OVER');
    expect((await auth('logout', { refreshToken: forged })).status).toBe(204);
    expect((await me(accessToken)).status).toBe(200);
  });

  it('ends when somebody signs out, here or everywhere', async () => {
    const [one, two, three] = await Promise.all([1, 2, 3].map(async () => (await login('bob')).body));
    expect((await auth('logout', undefined, { token: one.accessToken })).status).toBe(204);
    expect((await me(one.accessToken)).status).toBe(401);
    expect((await auth('logout', { refreshToken: two.refreshToken })).status).toBe(204);
    expect((await auth('refresh', { refreshToken: two.refreshToken })).status).toBe(401);
    expect((await me(three.accessToken)).status).toBe(200);
    const ended = await ask('mutation { endSessions(accountId: "bob") { events } }', three.accessToken);
    expect(ended.data.endSessions.events).toEqual(['SessionsEnded']);
    expect((await me(three.accessToken)).status).toBe(401);
  });

  it('ends after thirty days, however often it was refreshed', async () => {
    await register('old');
    let { refreshToken } = (await login('old')).body;
    clock.advance(29 * 24 * 3_600_000);
    ({ refreshToken } = (await auth('refresh', { refreshToken })).body);
    clock.advance(25 * 3_600_000);
    expect((await auth('refresh', { refreshToken })).body.code).toBe('AUTH.SESSION_OVER');
  });
});

describe('a password', () => {
  it('is changed by whoever knows it, and every session of before ends', async () => {
    await register('cyd');
    const before = (await login('cyd')).body;
    const token = before.accessToken;
    const newPassword = 'another staple entirely';
    const wrong = await auth('password', { password: 'not the password', newPassword }, { token });
    expect(wrong.body.code).toBe('AUTH.BAD_CREDENTIALS');
    const after = await auth('password', { password: PASSWORD, newPassword }, { token });
    expect(after.status).toBe(200);
    expect((await me(token)).status).toBe(401);
    expect((await auth('refresh', { refreshToken: before.refreshToken })).status).toBe(401);
    expect((await me(after.body.accessToken)).status).toBe(200);
    expect((await login('cyd')).status).toBe(401);
    expect((await login('cyd', { password: newPassword })).status).toBe(200);
  });
});

describe('a second factor', () => {
  it('is asked for once it is there, and each code is good once', async () => {
    const { accessToken: token } = await register('dan');
    const begun = (await auth('totp', { password: PASSWORD }, { token })).body;
    expect((await login('dan')).status).toBe(200);
    expect((await auth('totp/confirm', { code: '000000' }, { token })).body.code).toBe('AUTH.BAD_TOTP');
    const confirmed = await auth('totp/confirm', { code: codeOf(begun.secret) }, { token });
    expect(confirmed.status).toBe(200);
    expect((await login('dan')).body.code).toBe('AUTH.TOTP_REQUIRED');
    // The very code that confirmed it is spent.
    expect((await login('dan', { totp: codeOf(begun.secret) })).body.code).toBe('AUTH.BAD_TOTP');
    clock.advance(30_000);
    const totp = codeOf(begun.secret);
    const [one, two] = await Promise.all([login('dan', { totp }), login('dan', { totp })]);
    expect([one.status, two.status].sort()).toEqual([200, 401]);
    expect((await auth('totp', { password: PASSWORD }, { token: confirmed.body.accessToken })).body.code).toBe(
      'AUTH.TOTP_ON',
    );
    clock.advance(60_000);
    const remove = { password: PASSWORD, code: codeOf(begun.secret) };
    expect((await auth('totp/remove', remove, { token: confirmed.body.accessToken })).status).toBe(204);
    expect((await login('dan')).status).toBe(200);
  });

  it('is not found by trying: ten codes, then one a minute', async () => {
    const { accessToken: token } = await register('fay');
    const { secret } = (await auth('totp', { password: PASSWORD }, { token })).body;
    const statuses = [];
    for (let i = 0; i < 11; i++) statuses.push((await auth('totp/confirm', { code: '000000' }, { token })).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
    expect((await auth('totp/confirm', { code: codeOf(secret) }, { token })).status).toBe(429);
    clock.advance(60_000);
    expect((await auth('totp/confirm', { code: codeOf(secret) }, { token })).status).toBe(200);
  });

  it('is what makes operators and admins of those who were appointed', async () => {
    const { accessToken: plain } = await register('olga');
    expect((await appoint('olga', 'admin', plain)).code).toBe('AUTH.FORBIDDEN');
    expect((await appoint('olga', 'admin', operator)).data.setMember.events).toEqual(['MemberSet']);
    expect((await appoint('nobody-yet', 'admin', operator)).code).toBe('ACCOUNTS.UNKNOWN');
    const { accessToken: token } = (await login('olga')).body;
    expect((await me(token)).body.role).toBe('owner');
    await joins('olga', 'staff', token);
    expect((await me(token)).body.role).toBe('owner');
    const rebuild = (by: string) => ask('mutation { rotateSigningKey }', by);
    expect((await rebuild(token)).code).toBe('AUTH.FORBIDDEN');
    const { secret } = (await auth('totp', { password: PASSWORD }, { token })).body;
    const admin = (await auth('totp/confirm', { code: codeOf(secret) }, { token })).body.accessToken;
    expect((await me(admin)).body.role).toBe('admin');
    expect((await rebuild(admin)).code).toBeUndefined();
    // Operators run the arena and appoint nobody; auditors look and touch nothing.
    await register('oskar');
    expect((await appoint('oskar', 'operator', admin)).data.setMember.events).toEqual(['MemberSet']);
    await register('aud');
    await appoint('aud', 'auditor', admin);
    const auditor = (await login('aud')).body.accessToken;
    // Nobody is of staff unasked.
    expect((await ask('{ wallet(accountId: "ada") { accountId } }', auditor)).code).toBe('AUTH.FORBIDDEN');
    await joins('aud', 'staff', auditor);
    expect((await ask('{ wallet(accountId: "ada") { accountId } }', auditor)).data.wallet.accountId).toBe('ada');
    const grant = 'mutation { grantCredits(accountId: "aud", amountCents: "1") { id } }';
    expect((await ask(grant, auditor)).code).toBe('AUTH.FORBIDDEN');
    // Dismissed, and the token that is out there is an owner's from that moment.
    await ask('mutation { removeMember(accountId: "staff", memberId: "olga") { id } }', operator);
    expect((await me(admin)).body.role).toBe('owner');
  });
});

describe('two gateways on one folder', () => {
  const paths = folderLayout(folder);
  /** As in another process: nothing in memory is shared. */
  const gateway = () =>
    identitiesOn({
      config: arena.config,
      signingKeys: paths.signingKeys,
      vault: new FileVault({ people: paths.people, keys: paths.peopleKeys }),
      load: new Folds({ store: arena.store }).load,
      database: arena.database,
      clock,
      ids: arena.ids,
      execute: arena.execute,
      houseAccounts: [],
      issuer: () => url,
      onInternalError: () => {},
      limits: new MemoryLimits(() => Date.parse(clock())),
    }).signIn;

  it('take a code of an authenticator once between them', async () => {
    const { accessToken: token } = await register('twin');
    const { secret } = (await auth('totp', { password: PASSWORD }, { token })).body;
    await auth('totp/confirm', { code: codeOf(secret) }, { token });
    const gateways = [gateway(), gateway()];
    for (let i = 0; i < 4; i++) {
      clock.advance(30_000);
      const totp = codeOf(secret);
      const tried = await Promise.allSettled(gateways.map((each) => each.secondFactor('twin', totp)));
      expect(tried.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    }
  });

  it('lose no change of a person that they make at once', async () => {
    await register('pair');
    const [one, two] = [gateway(), gateway()];
    for (let i = 0; i < 4; i++) {
      await Promise.all([
        one.change('pair', (person) => ({ ...person, name: `${person.name ?? ''}+` })),
        two.change('pair', (person) => ({ ...person, name: `${person.name ?? ''}+` })),
      ]);
    }
    expect((await one.person('pair')).person.name).toBe('+'.repeat(8));
  });
});

describe('an organisation', () => {
  it('is acted for by its members, each as far as the role goes, and no longer than it lasts', async () => {
    const founder = await register('gil');
    const found =
      'mutation { registerOrganisation(accountId: "acme", displayName: "Acme", founderId: "gil") { events } }';
    expect((await ask(found, founder.accessToken)).data.registerOrganisation.events).toEqual([
      'OwnerRegistered',
      'MemberSet',
    ]);
    const fresh = async (accountId: string) => (await login(accountId)).body.accessToken as string;
    const gil = await fresh('gil');
    const set = (memberId: string, role: string, by: string) =>
      ask(`mutation { setMember(accountId: "acme", memberId: "${memberId}", role: "${role}") { events } }`, by);
    const tokens: Record<string, string> = {};
    for (const [memberId, role] of [
      ['hal', 'admin'],
      ['ida', 'operator'],
      ['jon', 'member'],
      ['kim', 'auditor'],
      ['lou', ''],
    ] as const) {
      await register(memberId);
      tokens[memberId] = await fresh(memberId);
      if (!role) continue;
      expect((await set(memberId, role, gil)).code).toBeUndefined();
      // Being named is an invitation.
      expect((await me(tokens[memberId])).body.memberOf).toEqual({});
      await arena.settled();
      const invited = await ask(`{ invitations(accountId: "${memberId}") { accountId role } }`, tokens[memberId]);
      expect(invited.data.invitations).toEqual([{ accountId: 'acme', role }]);
      expect((await joins(memberId, 'acme', tokens[memberId])).data.joinOrganisation.events).toEqual([
        'OrganisationJoined',
      ]);
      expect((await me(tokens[memberId])).body.memberOf).toEqual({ acme: role });
    }
    const source = 'function act(o) { return o.legal[0] }';
    const acts: [string, string, string[]][] = [
      ['read', '{ wallet(accountId: "acme") { accountId } }', ['hal', 'ida', 'jon', 'kim']],
      [
        'submit',
        `mutation { submitAgent(ownerId: "acme", name: "bot", games: ["tic-tac-toe"], source: "${source}") { id } }`,
        ['hal', 'ida', 'jon'],
      ],
      [
        'budget',
        'mutation { setBudget(accountId: "acme", currency: "PLAY", perDayCents: "5") { id } }',
        ['hal', 'ida'],
      ],
      ['key', 'mutation { issueApiKey(accountId: "acme", scopes: ["read"]) { keyId } }', ['hal', 'ida']],
      ['pay', 'mutation { deposit(accountId: "acme", amountCents: "5000") { paymentId } }', ['hal']],
      ['member', 'mutation { setMember(accountId: "acme", memberId: "lou", role: "auditor") { id } }', ['hal']],
      ['own', 'mutation { setMember(accountId: "acme", memberId: "hal", role: "owner") { id } }', []],
    ];
    for (const [what, query, may] of acts) {
      const could = [];
      for (const [who, token] of Object.entries(tokens)) {
        if ((await ask(query, token)).code !== 'AUTH.FORBIDDEN') could.push(who);
      }
      expect({ what, could }).toEqual({ what, could: may });
    }
    const leave = (memberId: string, by: string) =>
      ask(`mutation { removeMember(accountId: "acme", memberId: "${memberId}") { events } }`, by);
    expect((await leave('gil', gil)).code).toBe('ACCOUNTS.LAST_OWNER');
    expect((await leave('gil', tokens.hal ?? '')).code).toBe('AUTH.FORBIDDEN');
    expect((await leave('jon', tokens.jon ?? '')).data.removeMember.events).toEqual(['MemberRemoved']);
    // The token was good a moment ago.
    expect((await ask('{ wallet(accountId: "acme") { accountId } }', tokens.jon ?? '')).code).toBe('AUTH.FORBIDDEN');
    // Who left for good is not made a member again unasked.
    await set('jon', 'admin', gil);
    expect((await me(tokens.jon ?? '')).body.memberOf).toEqual({});
  });

  it('locks nobody out, however many there are and whomever they name', async () => {
    const [founder, victim] = [await register('mal'), await register('vic')];
    const before = (await login('vic')).body.accessToken as string;
    const execute = (query: string) => ask(query, founder.accessToken);
    for (let i = 0; i < 60; i++) {
      const name = `o-${i}-${'x'.repeat(30)}`;
      const found = `registerOrganisation(accountId: "${name}", displayName: "O", founderId: "mal") { id }`;
      await execute(`mutation { ${found} }`);
      await execute(`mutation { setMember(accountId: "${name}", memberId: "vic", role: "owner") { id } }`);
      clock.advance(1_000);
    }
    const now = (await login('vic')).body.accessToken as string;
    // Neither what the victim carries nor what is looked up for each request has grown.
    expect(now.length).toBe(before.length);
    expect((await me(victim.accessToken)).body).toMatchObject({ role: 'owner', memberOf: {} });
    const state = await accountOf('mal');
    expect(state.joined).toHaveLength(50);
    await arena.settled();
    const { data } = await ask('{ invitations(accountId: "vic") { accountId } }', now);
    expect(data.invitations).toHaveLength(50);
    const decline = `mutation { removeMember(accountId: "${data.invitations[0].accountId}", memberId: "vic") { events } }`;
    expect((await ask(decline, now)).data.removeMember.events).toEqual(['MemberRemoved']);
  });
});

describe('an API key', () => {
  it('does over HTTP what its scopes say, for the agents that it names, and nothing else', async () => {
    const token = (await login('ada')).body.accessToken;
    const issue = async (scopes: string, agents = '') => {
      const made = await ask(
        `mutation { issueApiKey(accountId: "ada", scopes: [${scopes}]${agents}) { keyId key } }`,
        token,
      );
      return made.data.issueApiKey as { keyId: string; key: string };
    };
    const source = 'export const act = ({ legal }) => legal.at(-1)';
    const submit = (name: string) =>
      `mutation { submitAgent(ownerId: "ada", name: "${name}", games: ["tic-tac-toe"], source: "${source}") { id } }`;
    const wallet = '{ wallet(accountId: "ada") { accountId } }';
    const [reader, submitter, narrow] = [
      await issue('"read"'),
      await issue('"submit"'),
      await issue('"submit", "read"', ', agents: ["ada.bot"]'),
    ];
    const table: [string, string, string | undefined][] = [
      [reader.key, wallet, undefined],
      [reader.key, submit('bot'), 'AUTH.SCOPE'],
      [submitter.key, submit('bot'), undefined],
      [submitter.key, wallet, 'AUTH.SCOPE'],
      [narrow.key, submit('bot'), undefined],
      [narrow.key, submit('other'), 'AUTH.FORBIDDEN'],
      [narrow.key, '{ wallet(accountId: "bob") { accountId } }', 'AUTH.FORBIDDEN'],
      [narrow.key, 'mutation { issueApiKey(accountId: "ada", scopes: ["play"]) { key } }', 'AUTH.SCOPE'],
      [narrow.key, 'mutation { endSessions(accountId: "ada") { id } }', 'AUTH.SCOPE'],
      [narrow.key, 'mutation { setBudget(accountId: "ada", currency: "PLAY") { id } }', 'AUTH.SCOPE'],
      [`${narrow.key.slice(0, -1)}x`, wallet, 'AUTH.UNAUTHENTICATED'],
    ];
    for (const [key, query, code] of table)
      expect({ query, code: (await ask(query, key)).code }).toEqual({ query, code });
    const statement = (key: string) =>
      fetch(`${url}/v1/accounts/ada/statement.csv`, { headers: { authorization: `Bearer ${key}` } });
    expect((await statement(reader.key)).status).toBe(200);
    expect((await statement(submitter.key)).status).toBe(403);
    expect(
      (await auth('password', { password: PASSWORD, newPassword: 'x'.repeat(12) }, { token: reader.key })).status,
    ).toBe(403);
    await ask(`mutation { revokeApiKey(accountId: "ada", keyId: "${reader.keyId}") { id } }`, token);
    expect((await ask(wallet, reader.key)).code).toBe('AUTH.UNAUTHENTICATED');
  });
});

describe('a plan', () => {
  it('says how fast its owner may ask', async () => {
    await register('max');
    const { accessToken: token } = (await login('max')).body;
    const left = async () => Number((await me(token)).headers.get('ratelimit-remaining'));
    clock.advance(300_000);
    expect(await left()).toBe(199);
    const { accessToken: fresh } = (await login('max')).body;
    const { data } = await ask('mutation { subscribe(accountId: "max", planId: "pro") { detail } }', fresh);
    arena.sandbox?.happen.pay(data.subscribe.detail);
    const plan = async () =>
      (await ask('{ payer(accountId: "max") { plan { planId } } }', operator)).data.payer.plan.planId;
    await expect.poll(plan, { timeout: 30_000 }).toBe('pro');
    clock.advance(300_000);
    const { accessToken: now } = (await login('max')).body;
    expect(Number((await me(now)).headers.get('ratelimit-remaining'))).toBe(1_199);
  });
});

describe('what is personal', () => {
  const everything = (path: string): Buffer =>
    statSync(path).isDirectory()
      ? Buffer.concat(readdirSync(path).map((name) => everything(join(path, name))))
      : readFileSync(path);
  const holds = (text: string) =>
    ['log', 'people', 'bus.mdb', 'artifacts'].filter((part) => everything(join(folder, part)).includes(text));

  it('is in no byte of the log, and gone from the folder when it is erased', async () => {
    const about = { name: 'Zoë Zimmermann-Quatsch', email: 'zoe.zimmermann@personal.example' };
    const { accessToken: token } = await register('zoe', about);
    const { secret } = (await auth('totp', { password: PASSWORD }, { token })).body;
    const confirmed = await auth('totp/confirm', { code: codeOf(secret) }, { token });
    const key = await ask(
      'mutation { issueApiKey(accountId: "zoe", scopes: ["read"]) { key } }',
      confirmed.body.accessToken,
    );
    await arena.settled();
    // What is public is there in clear, or the search would prove nothing.
    expect(holds('PersonEnrolled')).toContain('log');
    expect(holds('zoe')).toContain('log');
    for (const text of [about.name, about.email, 'Zimmermann', secret, '$argon2id$', PASSWORD]) {
      expect({ text, in: holds(text) }).toEqual({ text, in: [] });
    }
    const enrolled = (await arena.store.readStream('account-zoe')).find(({ type }) => type === 'PersonEnrolled');
    const id = (enrolled?.data as { personId?: string } | undefined)?.personId ?? '';
    const sealed = readFileSync(join(folder, 'people', id));
    const personKey = readFileSync(join(folder, 'people-keys', id));

    const wrong = await auth('erase', { password: 'not the password' }, { token: confirmed.body.accessToken });
    expect(wrong.status).toBe(401);
    expect(
      (await auth('erase', { accountId: 'ada', password: PASSWORD }, { token: confirmed.body.accessToken })).status,
    ).toBe(403);
    expect((await auth('erase', { password: PASSWORD }, { token: confirmed.body.accessToken })).status).toBe(204);
    for (const secretText of [personKey.toString('latin1'), sealed.toString('latin1')]) {
      const all =
        everything(join(folder, 'people')).toString('latin1') +
        everything(join(folder, 'people-keys')).toString('latin1');
      expect(all).not.toContain(secretText);
    }
    expect(everything(join(folder, 'log')).includes(personKey)).toBe(false);
    expect((await me(confirmed.body.accessToken)).status).toBe(401);
    expect((await login('zoe')).body.code).toBe('AUTH.BAD_CREDENTIALS');
    expect((await ask('{ wallet(accountId: "zoe") { accountId } }', key.data.issueApiKey.key)).code).toBe(
      'AUTH.UNAUTHENTICATED',
    );
    // The name is spent: nobody else becomes zoe.
    expect((await auth('register', { accountId: 'zoe', password: PASSWORD })).body.code).toBe('ACCOUNTS.TAKEN');
    await arena.settled();
    const trail = await ask('{ auditTrail(accountId: "zoe", first: 1) { nodes { type actorId } } }', operator);
    expect(trail.data.auditTrail.nodes[0]).toEqual({ type: 'PersonErased', actorId: 'zoe' });
  });

  it('of staff is for admins and the machine to erase: an operator becomes nobody else', async () => {
    const admin = await staffed('ann', 'admin');
    const mate = await staffed('otto', 'operator', admin);
    const rogue = await staffed('rob', 'operator', admin);
    for (const accountId of ['ann', 'otto']) {
      const refused = await auth('erase', { accountId }, { token: rogue });
      expect(refused).toMatchObject({ status: 403, body: { code: 'AUTH.FORBIDDEN' } });
    }
    expect((await me(admin)).body.role).toBe('admin');
    expect((await me(mate)).body.role).toBe('operator');
    // Nor is a place taken that was left: the membership went with the person.
    expect((await auth('erase', { password: PASSWORD }, { token: admin })).status).toBe(204);
    expect((await accountOf('ann')).joined).toEqual([]);
    expect((await accountOf('staff')).members.ann).toBeUndefined();
    const letIn = await auth('register', { accountId: 'ann', password: PASSWORD }, { token: rogue });
    expect({ status: letIn.status, body: letIn.body }).toEqual({ status: 201, body: { accountId: 'ann' } });
    const { accessToken: token } = (await login('ann')).body;
    await joins('ann', 'staff', token);
    const { secret } = (await auth('totp', { password: PASSWORD }, { token })).body;
    const confirmed = (await auth('totp/confirm', { code: codeOf(secret) }, { token })).body;
    expect((await me(confirmed.accessToken)).body.role).toBe('owner');
    // Whoever is about to be of staff is let in by those who appoint alone.
    await auth('erase', { accountId: 'otto' }, { token: operator });
    await appoint('otto', 'admin', operator);
    const body = { accountId: 'otto', password: PASSWORD };
    expect((await auth('register', body, { token: rogue })).body.code).toBe('AUTH.FORBIDDEN');
    expect((await auth('register', body)).body.code).toBe('ACCOUNTS.TAKEN');
    expect((await auth('register', body, { token: operator })).status).toBe(201);
  });

  it('is erased by staff for whoever asks', async () => {
    const { accessToken } = await register('yan');
    expect((await auth('erase', { accountId: 'yan' }, { token: operator })).status).toBe(204);
    expect((await me(accessToken)).status).toBe(401);
  });
});
