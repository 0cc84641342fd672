import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cents, currency, formatMoney, parseMoney, positiveCents } from './money.js';

describe('an amount of money', () => {
  it.each([
    ['0', 0n],
    ['12', 1_200n],
    ['12.5', 1_250n],
    ['12.50', 1_250n],
    ['0.01', 1n],
    ['007', 700n],
    ['-3.20', -320n],
    ['-0', 0n],
    [' 4.00 ', 400n],
    ['90071992547409921.11', 9_007_199_254_740_992_111n],
  ])('"%s" is %s cents', (text, amount) => {
    expect(parseMoney(text)).toBe(amount);
  });

  it.each(['', '.', '1.', '.5', '1.234', '1,50', '1e3', '+1', '--1', '1 000', '0x10', 'NaN', '12€'])(
    '"%s" is none',
    (text) => {
      expect(() => parseMoney(text)).toThrow(expect.objectContaining({ code: 'MONEY.INVALID' }));
    },
  );

  it.each([
    [0n, '0.00'],
    [5n, '0.05'],
    [-5n, '-0.05'],
    [1_250n, '12.50'],
    [-100n, '-1.00'],
    [123_456_789_012_345_678n, '1234567890123456.78'],
  ])('of %s cents is written %s', (amount, text) => {
    expect(formatMoney(amount)).toBe(text);
  });

  it('reads back as it was written, whatever it is', () => {
    fc.assert(
      fc.property(fc.bigInt(), (amount) => {
        expect(parseMoney(formatMoney(amount))).toBe(amount);
      }),
      { seed: 11, numRuns: 500 },
    );
  });
});

describe('an amount in an event', () => {
  it.each([
    ['0', true, false],
    ['1', true, true],
    ['999999999999999999', true, true],
    ['1000000000000000000', false, false],
    ['-1', false, false],
    ['-0', false, false],
    ['01', false, false],
    ['1.5', false, false],
    ['', false, false],
    ['1e3', false, false],
    [1, false, false],
  ])('%j: cents %s, positive %s', (value, plain, positive) => {
    const fits = [cents, positiveCents].map((schema) => schema.safeParse(value).success);
    expect(fits).toEqual([plain, positive]);
  });

  it.each([
    ['PLAY', true],
    ['USD', true],
    ['usd', false],
    ['US', false],
    ['TOOLONGCODE', false],
    ['US1', false],
  ])('currency %s: %s', (value, fits) => {
    expect(currency.safeParse(value).success).toBe(fits);
  });
});
