import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { z } from 'zod';

/** An Ed25519 key with its public half as it is written down: 32 raw bytes in hex. */
export interface SigningKey {
  readonly publicKey: string;
  /** The signature over a text's UTF-8, in hex. */
  sign(text: string): string;
  /** PKCS #8 in PEM, for keeping. */
  readonly pem: string;
}

export const publicKeyHex = z.string().regex(/^[0-9a-f]{64}$/);
export const signatureHex = z.string().regex(/^[0-9a-f]{128}$/);

export const newSigningKey = (): SigningKey => signingKeyOf(generateKeyPairSync('ed25519').privateKey);

/** @example signingKeyFrom(readFileSync('runner.key', 'utf8')).sign('text') */
export const signingKeyFrom = (pem: string): SigningKey => signingKeyOf(createPrivateKey(pem));

function signingKeyOf(key: KeyObject): SigningKey {
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' });
  return {
    publicKey: Buffer.from(x, 'base64url').toString('hex'),
    sign: (text) => sign(null, Buffer.from(text), key).toString('hex'),
    pem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** Whether this key signed this text. A key or signature that is none signed nothing. */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  if (!publicKeyHex.safeParse(publicKey).success || !signatureHex.safeParse(signature).success) return false;
  const x = Buffer.from(publicKey, 'hex').toString('base64url');
  try {
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return verify(null, Buffer.from(text), key, Buffer.from(signature, 'hex'));
  } catch {
    // Not every 32 bytes are a point on the curve.
    return false;
  }
}

/** The id of whoever holds this key. Derived from it, so that nobody can take the id without the key. */
export const runnerIdOf = (publicKey: string): string =>
  `r-${hash('sha256', Buffer.from(publicKey, 'hex')).slice(0, 16)}`;
