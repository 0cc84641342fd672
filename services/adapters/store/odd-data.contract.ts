import fc from 'fast-check';

/** JSON that encoders get wrong: every store has to return it so that its hash still verifies. */
export const oddData: readonly [string, unknown][] = [
  ['null', null],
  ['an empty object', {}],
  ['an empty array', []],
  ['an empty string', ''],
  ['a bare number', 7],
  ['nested containers', { a: [[], [{}], { b: { c: [{ d: [null] }] } }] }],
  ['40 levels', Array.from({ length: 40 }).reduce<unknown>((inner) => ({ inner }), 'core')],
  ['large integers', [2 ** 31, 2 ** 32, 2 ** 53 - 1, -(2 ** 53) + 1, 2 ** 63, 1e21, -1e21]],
  ['fractions', [0.1, 1 / 3, 1e-7, 5e-324, 1.7976931348623157e308, -0.5]],
  ['negative zero', { zero: -0 }],
  ['text of many scripts', { text: 'Ωμέγα, 東京, עברית, नमस्ते, 🤖🏟️, e\u0301 and \u00e9' }],
  ['control characters and quotes', { text: '\u0000\u0007\b\t\n\f\r"\\/\u2028\u2029\u007f' }],
  ['keys that look like integers', { 10: 'ten', 9: 'nine', '01': 'text', '-1': 'minus' }],
  ['keys in an unusual order', { b: 1, a: 2, ä: 3, '🤖': 4, '\ufb33': 5 }],
  ['keys that objects have already', { constructor: 1, toString: 2, hasOwnProperty: 3, length: 4 }],
  ['empty and blank keys', { '': 1, ' ': 2, '\n': 3 }],
  ['fields that are undefined', { there: 1, missing: undefined, nested: { missing: undefined } }],
  ['many keys', Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`key${i}`, i]))],
  ['many shapes', Array.from({ length: 100 }, (_, i) => ({ [`field${i}`]: i, [`other${i % 7}`]: null }))],
  ['long text', { text: 'ab🤖'.repeat(20_000) }],
  ['many strings', Array.from({ length: 5_000 }, (_, i) => `text number ${i}`)],
];

/** Any JSON but the one key that sealing refuses. */
export const anyJson = () => fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"__proto__"'));
