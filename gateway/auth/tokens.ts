import { hkdfSync } from 'node:crypto';
import {
  calculateJwkThumbprint,
  EncryptJWT,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTHeaderParameters,
  jwtDecrypt,
  jwtVerify,
  SignJWT,
} from 'jose';
import { AgonError, type Clock } from '../../services/kernel/index.js';

/** A key that signs access tokens, or has signed some that are still good. */
export interface SigningKey {
  readonly kid: string;
  readonly createdAt: string;
  readonly retiredAt?: string;
  readonly jwk: JWK;
}

/** Where the signing keys are kept. */
export interface KeyRing {
  load(): Promise<readonly SigningKey[]>;
  save(keys: readonly SigningKey[]): Promise<void>;
  /** Does this while no other gateway changes the keys. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

/** Who holds an access token. What they may do is not in it: that is read from the log at every request. */
export interface Claims {
  readonly accountId: string;
  readonly sessionId: string;
  readonly methods: readonly string[];
}

export const AUDIENCE = 'agon';
export const ACCESS_S = 600;
const TYPE = 'at+jwt';
const ALGORITHM = 'EdDSA';
const FLOW_S = 600;
const TOLERANCE_S = 5;
const ROTATED_EVERY_MS = 30 * 24 * 3_600_000;
/** How long a gateway may sign with a key that another has retired. */
const KNOWN_MS = 60_000;
/** A kid that nobody knows may be that of a key another gateway has just made; looking costs a file. */
const LOOK_EVERY_MS = 1_000;

export interface TokensOptions {
  readonly ring: KeyRing;
  readonly clock: Clock;
  /** The address under which this arena is known. */
  issuer(): string;
}

/** Access tokens: EdDSA alone, with a kid, for a few minutes. */
export class Tokens {
  private keys: readonly SigningKey[] | undefined;
  private loadedMs = 0;
  private lookedMs = 0;

  constructor(private readonly options: TokensOptions) {}

  async sign({ accountId, sessionId, methods }: Claims): Promise<string> {
    const { kid, jwk } = await this.current();
    const nowS = this.nowS();
    return new SignJWT({ sid: sessionId, amr: [...methods] })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE, kid })
      .setSubject(accountId)
      .setIssuer(this.options.issuer())
      .setAudience(AUDIENCE)
      .setIssuedAt(nowS)
      .setNotBefore(nowS)
      .setExpirationTime(nowS + ACCESS_S)
      .sign(await importJWK(jwk, ALGORITHM));
  }

  /** Whom a token speaks for; undefined when it is not one of ours, not for us, or not of this time. */
  async verify(token: string): Promise<Claims | undefined> {
    try {
      const { payload } = await jwtVerify(token, (header) => this.publicKey(header), {
        algorithms: [ALGORITHM],
        typ: TYPE,
        audience: AUDIENCE,
        issuer: this.options.issuer(),
        requiredClaims: ['sub', 'sid', 'amr', 'iat', 'nbf', 'exp'],
        clockTolerance: TOLERANCE_S,
        currentDate: new Date(this.options.clock()),
      });
      const { sub, sid, amr } = payload;
      return { accountId: sub as string, sessionId: sid as string, methods: amr as string[] };
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  /** The public halves, for whoever wants to check a token without asking us. */
  async jwks(): Promise<{ keys: JWK[] }> {
    const keys = (await this.valid()).map(({ kid, jwk: { kty, crv, x } }) => {
      return { kty, crv, x, kid, alg: ALGORITHM, use: 'sig' } as JWK;
    });
    return { keys };
  }

  /** Signs with a new key from now on. What the old one has signed stays good for as long as it would have. */
  rotate(): Promise<string> {
    return this.change(async () => {
      const retiredAt = this.options.clock();
      const before = (await this.valid()).map((key) => (key.retiredAt ? key : { ...key, retiredAt }));
      const { kid } = await this.add(before);
      return kid;
    });
  }

  /** Something to be given back to us within ten minutes, that nobody else can read or make. */
  async wrap(content: Record<string, unknown>): Promise<string> {
    const key = await this.current();
    const nowS = this.nowS();
    return new EncryptJWT(content)
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: key.kid })
      .setIssuedAt(nowS)
      .setExpirationTime(nowS + FLOW_S)
      .encrypt(wrappingKey(key));
  }

  async unwrap(text: string): Promise<Record<string, unknown> | undefined> {
    try {
      const { payload } = await jwtDecrypt(text, async ({ kid }) => wrappingKey(await this.known(kid)), {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
        requiredClaims: ['exp'],
        currentDate: new Date(this.options.clock()),
      });
      return payload;
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  private async publicKey({ kid }: JWTHeaderParameters) {
    const { kty, crv, x } = (await this.known(kid)).jwk;
    return importJWK({ kty, crv, x } as JWK, ALGORITHM);
  }

  private async known(kid: string | undefined): Promise<SigningKey> {
    const find = async () => (await this.valid()).find((key) => key.kid === kid);
    let found = await find();
    const nowMs = this.nowS() * 1000;
    if (!found && nowMs - this.lookedMs >= LOOK_EVERY_MS) {
      this.lookedMs = nowMs;
      this.keys = undefined;
      found = await find();
    }
    if (found) return found;
    throw new errors.JWKSNoMatchingKey();
  }

  private async current(): Promise<SigningKey> {
    const find = async () => {
      const nowMs = Date.parse(this.options.clock());
      const newest = (await this.valid()).findLast((key) => key.retiredAt === undefined);
      return newest && nowMs - Date.parse(newest.createdAt) < ROTATED_EVERY_MS ? newest : undefined;
    };
    const found = await find();
    if (found) return found;
    return this.change(async () => {
      const again = await find();
      if (again) return again;
      const retiredAt = this.options.clock();
      return this.add((await this.valid()).map((key) => (key.retiredAt ? key : { ...key, retiredAt })));
    });
  }

  private async add(before: readonly SigningKey[]): Promise<SigningKey> {
    const { privateKey } = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
    const jwk = await exportJWK(privateKey);
    const key = { kid: await calculateJwkThumbprint(jwk), createdAt: this.options.clock(), jwk };
    await this.options.ring.save([...before, key]);
    this.keys = [...before, key];
    return key;
  }

  /** Keys whose last token may still be good. */
  private async valid(): Promise<readonly SigningKey[]> {
    const nowMs = Date.parse(this.options.clock());
    if (!this.keys || nowMs - this.loadedMs >= KNOWN_MS) {
      this.keys = await this.options.ring.load();
      this.loadedMs = nowMs;
    }
    const longAgo = nowMs - (ACCESS_S + TOLERANCE_S) * 1000 - KNOWN_MS;
    return this.keys.filter(({ retiredAt }) => retiredAt === undefined || Date.parse(retiredAt) > longAgo);
  }

  /** By what is there now, and not by what was there when this gateway looked. */
  private change<T>(work: () => Promise<T>): Promise<T> {
    return this.options.ring.alone(() => {
      this.keys = undefined;
      return work();
    });
  }

  private nowS(): number {
    return Math.floor(Date.parse(this.options.clock()) / 1000);
  }
}

const wrappingKey = ({ jwk }: SigningKey): Uint8Array => {
  if (typeof jwk.d !== 'string') throw new AgonError('INTERNAL.INVARIANT', 'A signing key has a private half.');
  return new Uint8Array(hkdfSync('sha256', Buffer.from(jwk.d, 'base64url'), '', 'agon wrapped state', 32));
};
