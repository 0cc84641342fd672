import { describe, expect, it } from 'vitest';
import { assertPassword, Passwords } from './password.js';

describe('a password', () => {
  it('is hashed with argon2id as OWASP advises, each time with another salt', async () => {
    const passwords = new Passwords();
    const [one, two] = await Promise.all([passwords.hash('correct horse'), passwords.hash('correct horse')]);
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    expect(one).not.toBe(two);
    expect(await passwords.matches(one, 'correct horse')).toBe(true);
    expect(await passwords.matches(one, 'correct horsf')).toBe(false);
    expect(passwords.isOld(one)).toBe(false);
    expect(passwords.isOld(one.replace('m=19456', 'm=4096'))).toBe(true);
  });

  it('is the same however an accent was typed', async () => {
    const passwords = new Passwords();
    expect(await passwords.matches(await passwords.hash('caf\u00e9 au lait'), 'cafe\u0301 au lait')).toBe(true);
  });

  it('of nobody is compared as well, and never fits', async () => {
    const passwords = new Passwords();
    // What has to wait for its turn, and is sent away when too many do, is work that is really done.
    const many = await Promise.allSettled(Array.from({ length: 80 }, () => passwords.matches(undefined, 'guess')));
    const codes = many.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []));
    expect(codes.length).toBeGreaterThan(0);
    expect(new Set(codes)).toEqual(new Set(['LIMITS.BUSY']));
    expect(many.some((each) => each.status === 'fulfilled' && each.value)).toBe(false);
    // And the next one is served again.
    expect(await passwords.matches(undefined, 'guess')).toBe(false);
  });

  it.each<[string, boolean]>([
    ['ten chars!', true],
    ['nine char', false],
    ['x'.repeat(257), false],
    ['🎲♟🐴🔋🎲♟🐴🔋🎲♟', true],
    ['abababababab', false],
    ['lovelace12345', false],
    ['lovelace and the engine', true],
  ])('"%s" is good enough: %s', (password, good) => {
    const check = () => assertPassword(password, 'lovelace');
    if (good) expect(check).not.toThrow();
    else expect(check).toThrow(expect.objectContaining({ code: 'AUTH.WEAK_PASSWORD' }));
  });
});
