import { describe, expect, it } from 'vitest';
import { fromBase32, newTotpSecret, stepOf, toBase32, totpAt, totpUri } from './totp.js';

const digits = '1234567890'.repeat(7);
const keys = { sha1: digits.slice(0, 20), sha256: digits.slice(0, 32), sha512: digits.slice(0, 64) };

describe('TOTP', () => {
  // RFC 6238, appendix B: the eight-digit codes of three algorithms.
  it.each<[number, string, string, string]>([
    [59, '94287082', '46119246', '90693936'],
    [1111111109, '07081804', '68084774', '25091201'],
    [1111111111, '14050471', '67062674', '99943326'],
    [1234567890, '89005924', '91819424', '93441116'],
    [2000000000, '69279037', '90698825', '38618901'],
    [20000000000, '65353130', '77737706', '47863826'],
  ])('at %i s is that of the RFC', (seconds, sha1, sha256, sha512) => {
    for (const [algorithm, expected] of Object.entries({ sha1, sha256, sha512 }) as ['sha1', string][]) {
      expect(totpAt(Buffer.from(keys[algorithm]), seconds * 1000, { digits: 8, algorithm })).toBe(expected);
    }
  });

  it('takes the code of the step, and of those right before and after', () => {
    const secret = toBase32(Buffer.from(keys.sha1));
    const nowMs = 1_111_111_111_000;
    const step = Math.floor(nowMs / 30_000);
    const codeOf = (at: number) => totpAt(fromBase32(secret), at * 30_000);
    for (const near of [-1, 0, 1]) expect(stepOf(codeOf(step + near), secret, nowMs, 0)).toBe(step + near);
    for (const far of [-2, 2]) expect(stepOf(codeOf(step + far), secret, nowMs, 0)).toBeUndefined();
    expect(stepOf('000000', secret, nowMs, 0)).toBeUndefined();
    expect(stepOf('', secret, nowMs, 0)).toBeUndefined();
  });

  it('takes a code once, and none from before it', () => {
    const secret = newTotpSecret();
    const nowMs = 1_700_000_000_000;
    const step = Math.floor(nowMs / 30_000);
    const codeOf = (at: number) => totpAt(fromBase32(secret), at * 30_000);
    expect(stepOf(codeOf(step), secret, nowMs, step)).toBeUndefined();
    expect(stepOf(codeOf(step - 1), secret, nowMs, step)).toBeUndefined();
    expect(stepOf(codeOf(step + 1), secret, nowMs, step)).toBe(step + 1);
  });

  it('has a secret of 160 bits in base32, as apps read it', () => {
    const secret = newTotpSecret();
    expect(secret).toMatch(/^[A-Z2-7]{32}$/);
    expect(toBase32(fromBase32(secret))).toBe(secret);
    // RFC 4648, section 10.
    expect(toBase32(Buffer.from('foobar'))).toBe('MZXW6YTBOI');
    expect(fromBase32('MZXW6YTBOI').toString()).toBe('foobar');
    expect(new URL(totpUri(secret, 'ada')).searchParams.get('secret')).toBe(secret);
  });
});
