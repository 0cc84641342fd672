import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonical } from './canonical.js';

const withoutProto = (value: unknown) => !JSON.stringify(value).includes('"__proto__"');

describe('canonical JSON', () => {
  it.each([
    [{ b: 1, a: [true, null] }, '{"a":[true,null],"b":1}'],
    [{ 10: 'ten', 9: 'nine' }, '{"10":"ten","9":"nine"}'],
    [
      { '€': 1, '\r': 2, '\ufb33': 3, 1: 4, '😀': 5, '\u0080': 6, ö: 7 },
      '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
    ],
    [[Number('333333333.33333329'), 1e30, 4.5, 2e-3, 1e-27], '[333333333.3333333,1e+30,4.5,0.002,1e-27]'],
    [-0, '0'],
    [{ constructor: 1, toString: 'x' }, '{"constructor":1,"toString":"x"}'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [Object.assign(Object.create(null), { b: 1, a: 2 }), '{"a":2,"b":1}'],
    ['\u2028"\\\u0001', '"\u2028\\"\\\\\\u0001"'],
  ])('%j', (value, expected) => {
    expect(canonical(value)).toBe(expected);
  });

  it('is what the reference makes of any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, noUnicodeString: false } as object).filter(withoutProto), (value) => {
        expect(canonical(value)).toBe(canonicalize(value));
      }),
      { seed: 4, numRuns: 3_000 },
    );
  });

  it('is what the reference makes of any keys and any numbers', () => {
    const key = fc.string({ unit: 'binary' }).filter((text) => text !== '__proto__');
    fc.assert(
      fc.property(fc.dictionary(key, fc.double({ noNaN: true, noDefaultInfinity: true })), (value) => {
        expect(canonical(value)).toBe(canonicalize(value));
      }),
      { seed: 5, numRuns: 2_000 },
    );
  });

  it('does not depend on the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.integer()).filter(withoutProto), (value) => {
        expect(canonical(Object.fromEntries(Object.entries(value).reverse()))).toBe(canonical(value));
      }),
      { seed: 6 },
    );
  });

  it.each<[string, unknown]>([
    ['NaN', Number.NaN],
    ['Infinity', { deep: [Number.POSITIVE_INFINITY] }],
    ['-Infinity', Number.NEGATIVE_INFINITY],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a key', { '\udc00': 1 }],
    ['a Date', { at: new Date(0) }],
    ['a bigint', { amount: 1n }],
    ['a Map', new Map()],
    ['a Set', new Set()],
    ['bytes', Buffer.from('x')],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
    ['undefined itself', undefined],
    ['undefined in an array', [undefined]],
    ['an object of a class', new (class Point {})()],
    ['a key named __proto__', JSON.parse('{"__proto__":1}')],
  ])('refuses %s', (_what, value) => {
    expect(() => canonical(value)).toThrow(expect.objectContaining({ code: 'EVENT.NOT_JSON' }));
  });
});
