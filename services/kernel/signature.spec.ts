import { describe, expect, it } from 'vitest';
import { isSignedBy, newSigningKey, runnerIdOf, signingKeyFrom } from './signature.js';

describe('signatures', () => {
  // RFC 8032, section 7.1, test 2.
  const seed = '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb';
  const publicKey = '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c';
  const signature =
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00';
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(seed, 'hex')]);
  const pem = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`;

  it('are those of Ed25519', () => {
    const key = signingKeyFrom(pem);
    expect(key.publicKey).toBe(publicKey);
    expect(key.sign('r')).toBe(signature);
    expect(isSignedBy(publicKey, 'r', signature)).toBe(true);
  });

  it.each([
    ['another text', publicKey, 's', signature],
    ['another key', newSigningKey().publicKey, 'r', signature],
    ['a changed signature', publicKey, 'r', signature.replace('92', '93')],
    ['no key', 'abc', 'r', signature],
    ['no signature', publicKey, 'r', ''],
    ['a point that is none', 'ff'.repeat(32), 'r', signature],
  ])('do not hold for %s', (_what, key, text, signed) => {
    expect(isSignedBy(key, text, signed)).toBe(false);
  });

  it('come from keys that can be kept, and whose holder has one id', () => {
    const key = newSigningKey();
    expect(signingKeyFrom(key.pem).publicKey).toBe(key.publicKey);
    expect(runnerIdOf(key.publicKey)).toMatch(/^r-[0-9a-f]{16}$/);
    expect(runnerIdOf(key.publicKey)).not.toBe(runnerIdOf(newSigningKey().publicKey));
  });
});
