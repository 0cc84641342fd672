import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { type CryptoKey, exportJWK, importJWK, SignJWT, UnsecuredJWT } from 'jose';
import { beforeEach, describe, expect, it } from 'vitest';
import { manualClock } from '../../services/kernel/index.js';
import { AUDIENCE, type SigningKey, Tokens } from './tokens.js';

const ISSUER = 'https://agon.example';
const claims = { accountId: 'ada', sessionId: '0'.repeat(32), methods: ['pwd'] };
let saved: readonly SigningKey[];
let clock: ReturnType<typeof manualClock>;
let tokens: Tokens;
let changing: Promise<unknown> = Promise.resolve();

const make = () =>
  new Tokens({
    ring: {
      load: async () => saved,
      save: async (keys) => {
        saved = keys;
      },
      alone: (work) => {
        const turn = changing.then(work);
        changing = turn.catch(() => {});
        return turn;
      },
    },
    clock,
    issuer: () => ISSUER,
  });

beforeEach(async () => {
  [saved, clock] = [[], manualClock('2026-01-01T00:00:00.000Z')];
  tokens = make();
  await tokens.sign(claims);
});

/** A token as ours are, with something changed. */
async function forged(change: {
  header?: Record<string, unknown>;
  payload?: Record<string, unknown>;
  key?: CryptoKey | Uint8Array;
}): Promise<string> {
  const [own] = saved;
  const nowS = Date.parse(clock()) / 1000;
  const payload = {
    sub: 'ada',
    sid: '0'.repeat(32),
    amr: ['pwd'],
    iss: ISSUER,
    aud: AUDIENCE,
    iat: nowS,
    nbf: nowS,
    exp: nowS + 600,
    ...change.payload,
  };
  const header = { alg: 'EdDSA', typ: 'at+jwt', kid: own?.kid ?? '', ...change.header };
  const key = change.key ?? ((await importJWK(own?.jwk ?? {}, 'EdDSA')) as CryptoKey);
  return new SignJWT(JSON.parse(JSON.stringify(payload))).setProtectedHeader(header).sign(key);
}

const publicPem = () => {
  const { kty, crv, x } = saved[0]?.jwk ?? {};
  return createPublicKey({ key: { kty, crv, x } as never, format: 'jwk' }).export({
    type: 'spki',
    format: 'pem',
  }) as string;
};

describe('an access token', () => {
  it('says who, and is told by its signature, audience, issuer and time', async () => {
    expect(await tokens.verify(await tokens.sign(claims))).toEqual(claims);
    // The table below is worth something only if nothing changed is let in.
    expect(await tokens.verify(await forged({}))).toMatchObject({ accountId: 'ada' });
  });

  it.each<[string, () => Promise<string>]>([
    [
      'alg none',
      async () => {
        const token = new UnsecuredJWT({ sub: 'ada', sid: '0'.repeat(32), amr: [] });
        return token
          .setIssuer(ISSUER)
          .setAudience(AUDIENCE)
          .setIssuedAt()
          .setNotBefore(0)
          .setExpirationTime('10y')
          .encode();
      },
    ],
    [
      'alg none with our header and the signature cut off',
      async () => {
        const [, payload] = (await forged({})).split('.');
        const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt', kid: saved[0]?.kid })).toString(
          'base64url',
        );
        return `${header}.${payload}.`;
      },
    ],
    ['HS256 with the public key in PEM', () => forged({ header: { alg: 'HS256' }, key: Buffer.from(publicPem()) })],
    [
      'HS256 with the raw public key',
      () => forged({ header: { alg: 'HS256' }, key: Buffer.from(saved[0]?.jwk.x ?? '', 'base64url') }),
    ],
    [
      'HS256 with the public key as JSON',
      async () => forged({ header: { alg: 'HS256' }, key: Buffer.from(JSON.stringify((await tokens.jwks()).keys[0])) }),
    ],
    ['a kid that nobody has', () => forged({ header: { kid: 'another' } })],
    ['no kid', () => forged({ header: { kid: undefined } })],
    ['a key of somebody else under our kid', async () => forged({ key: await strangerKey() })],
    [
      'a key that the token brings along',
      async () => {
        const stranger = await strangerKey();
        const { kty, crv, x } = await exportJWK(stranger);
        return forged({ header: { jwk: { kty, crv, x } }, key: stranger });
      },
    ],
    ['a token of another type', () => forged({ header: { typ: 'JWT' } })],
    ['another audience', () => forged({ payload: { aud: 'another' } })],
    ['no audience', () => forged({ payload: { aud: undefined } })],
    ['another issuer', () => forged({ payload: { iss: 'https://evil.example' } })],
    ['no issuer', () => forged({ payload: { iss: undefined } })],
    ['an end that has come', () => forged({ payload: { exp: Date.parse(clock()) / 1000 - 6 } })],
    ['no end', () => forged({ payload: { exp: undefined } })],
    ['a beginning that has not come', () => forged({ payload: { nbf: Date.parse(clock()) / 1000 + 60 } })],
    ['no beginning', () => forged({ payload: { nbf: undefined } })],
    ['nobody in it', () => forged({ payload: { sub: undefined } })],
    ['no session', () => forged({ payload: { sid: undefined } })],
    ['another payload', async () => swapped(await forged({}), 1, { sub: 'root' })],
    ['another header', async () => swapped(await forged({}), 0, { alg: 'EdDSA' })],
    ['nonsense', async () => 'a.b.c'],
  ])('is refused with %s', async (_what, token) => {
    expect(await tokens.verify(await token())).toBeUndefined();
  });

  it('ends after ten minutes', async () => {
    const token = await tokens.sign(claims);
    clock.advance(599_000);
    expect(await tokens.verify(token)).toEqual(claims);
    clock.advance(7_000);
    expect(await tokens.verify(token)).toBeUndefined();
  });
});

describe('signing keys', () => {
  it('are changed without a token being lost, and forgotten when their last one has ended', async () => {
    const before = await tokens.sign(claims);
    const kid = await tokens.rotate();
    expect((await tokens.jwks()).keys.map((key) => key.kid)).toEqual([saved[0]?.kid, kid]);
    const after = await tokens.sign(claims);
    expect(JSON.parse(Buffer.from(after.split('.')[0] ?? '', 'base64url').toString())).toMatchObject({
      kid,
      alg: 'EdDSA',
    });
    expect(await tokens.verify(before)).toEqual(claims);
    expect(await tokens.verify(after)).toEqual(claims);
    // Another gateway may have signed with it a little longer.
    clock.advance(606_000);
    expect(await tokens.verify(before)).toBeUndefined();
    clock.advance(60_000);
    expect((await tokens.jwks()).keys.map((key) => key.kid)).toEqual([kid]);
    expect(await tokens.verify(await tokens.sign(claims))).toEqual(claims);
    expect(await tokens.verify(before)).toBeUndefined();
  });

  it('are changed by themselves every thirty days', async () => {
    const [first] = saved;
    clock.advance(31 * 24 * 3_600_000);
    await Promise.all([tokens.sign(claims), tokens.sign(claims)]);
    expect(saved.at(-1)?.kid).not.toBe(first?.kid);
    expect(saved.filter(({ retiredAt }) => retiredAt === undefined)).toHaveLength(1);
  });

  it('show their public half only, and are found when another gateway made them', async () => {
    expect((await tokens.jwks()).keys).toEqual([
      { kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: saved[0]?.kid, alg: 'EdDSA', use: 'sig' },
    ]);
    const other = make();
    await other.rotate();
    const token = await other.sign(claims);
    clock.advance(2_000);
    expect(await tokens.verify(token)).toEqual(claims);
  });

  it('are not lost when two gateways make or change them at once', async () => {
    const kidIn = (token: string) => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid;
    saved = [];
    const [one, two] = [make(), make()];
    const signed = await Promise.all([one.sign(claims), two.sign(claims)]);
    expect(new Set([...signed.map(kidIn), ...saved.map(({ kid }) => kid)]).size).toBe(1);
    const kids = await Promise.all([one.rotate(), two.rotate()]);
    expect(saved.map(({ kid }) => kid)).toEqual([kidIn(signed[0] ?? ''), ...kids]);
    expect(saved.filter(({ retiredAt }) => retiredAt === undefined).map(({ kid }) => kid)).toEqual([kids[1]]);
    // Whoever did not look for a minute signs with what is in force by then.
    await one.rotate();
    clock.advance(60_000);
    expect(kidIn(await two.sign(claims))).toBe(saved.at(-1)?.kid);
  });

  it('seal what is to come back, for ten minutes and for nobody else', async () => {
    const sealed = await tokens.wrap({ state: 'abc' });
    expect(sealed).not.toContain(Buffer.from('abc').toString('base64url'));
    expect(await make().unwrap(sealed)).toMatchObject({ state: 'abc' });
    expect(await tokens.unwrap(`${sealed.slice(0, -4)}AAAA`)).toBeUndefined();
    expect(await tokens.unwrap(await tokens.sign(claims))).toBeUndefined();
    clock.advance(601_000);
    expect(await tokens.unwrap(sealed)).toBeUndefined();
  });
});

const strangerKey = async () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  return (await importJWK(privateKey.export({ format: 'jwk' }) as never, 'EdDSA', { extractable: true })) as CryptoKey;
};

function swapped(token: string, part: number, change: object): string {
  const parts = token.split('.');
  const content = JSON.parse(Buffer.from(parts[part] ?? '', 'base64url').toString());
  parts[part] = Buffer.from(JSON.stringify({ ...content, ...change, extra: 1 })).toString('base64url');
  return parts.join('.');
}
