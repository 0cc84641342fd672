import { AgonError } from './errors.js';

/** Text that JSON writes as it stands. */
const UNESCAPED = /^[ !#-[\]-~]*$/;

/**
 * RFC 8785 (JSON Canonicalization Scheme). The `canonicalize` package is the reference that our tests and every
 * verification use; this is the writing side's equal, five times as fast because it trusts the plain data it is given
 * (no toJSON, no cycle tracking). A property test keeps the two identical.
 *
 * @example canonical({ b: 1, a: [true, null] }) // '{"a":[true,null],"b":1}'
 */
export function canonical(value: unknown): string {
  switch (typeof value) {
    case 'string':
      if (UNESCAPED.test(value)) return `"${value}"`;
      if (!value.isWellFormed()) throw notJson('a string with a lone surrogate');
      return JSON.stringify(value);
    case 'number':
      if (!Number.isFinite(value)) throw notJson('a number that is not finite');
      return `${value}`;
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? canonicalArray(value) : canonicalObject(value as Record<string, unknown>);
    default:
      throw notJson(`a ${typeof value}`);
  }
}

function canonicalArray(values: readonly unknown[]): string {
  let text = '[';
  for (let i = 0; i < values.length; i++) {
    if (i > 0) text += ',';
    text += canonical(values[i]);
  }
  return `${text}]`;
}

function canonicalObject(value: Record<string, unknown>): string {
  // A Date, a Map or a Buffer would be written as something that it does not read back as.
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw notJson('an object of a class');
  let text = '{';
  for (const key of sorted(Object.keys(value))) {
    const item = value[key];
    if (item === undefined) continue;
    if (text.length > 1) text += ',';
    text += canonicalKey(key) + canonical(item);
  }
  return `${text}}`;
}

const FEW_KEYS = 16;

/** Strings compare by UTF-16 code units, which is the order that RFC 8785 asks for. */
function sorted(keys: string[]): string[] {
  if (keys.length > FEW_KEYS) return keys.sort();
  // In place, and most keys stand where they belong: a few comparisons, where sort() copies its array twice.
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] as string;
    let at = i;
    for (; at > 0 && (keys[at - 1] as string) > key; at--) keys[at] = keys[at - 1] as string;
    keys[at] = key;
  }
  return keys;
}

/** The keys met so far, with their quotes and colon: a schema's keys come again with every event. */
const knownKeys = new Map<string, string>();
const KNOWN_KEYS_MAX = 1_000;

function canonicalKey(key: string): string {
  const known = knownKeys.get(key);
  if (known !== undefined) return known;
  // Decoders rename or drop this key to protect their objects, so it would not read back as it was sealed.
  if (key === '__proto__') throw notJson('a key named __proto__');
  const text = `${canonical(key)}:`;
  if (knownKeys.size < KNOWN_KEYS_MAX) knownKeys.set(key, text);
  return text;
}

const notJson = (what: string) =>
  new AgonError('EVENT.NOT_JSON', `Only plain JSON can be recorded, and this holds ${what}.`);
