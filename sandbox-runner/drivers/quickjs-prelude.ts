/**
 * JavaScript that runs inside the sandbox before any agent code. It takes away what is not deterministic, and returns
 * the few functions through which the host talks to the agent. Nothing here is trusted afterwards: an agent that
 * tampers with its own globals can only spoil its own replies, because text is all that crosses and the host checks it.
 *
 * Answers are strings whose first letter says what follows: R reply, B bad reply, L too large, E error, P pending.
 */
export const prelude = String.raw`(() => {
  'use strict';
  const { parse, stringify } = JSON;
  const { apply, construct, ownKeys, deleteProperty } = Reflect;
  const PlainPromise = Promise;
  const resolve = PlainPromise.resolve;
  const then = PlainPromise.prototype.then;
  const slice = String.prototype.slice;
  const asString = String;

  const keep = new Set(('Object Function Array String Number Boolean Symbol BigInt Math JSON Date RegExp Promise Proxy ' +
    'Reflect Map Set WeakMap WeakSet Iterator Error EvalError RangeError ReferenceError SyntaxError TypeError URIError ' +
    'InternalError AggregateError ArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array ' +
    'Int32Array Uint32Array BigInt64Array BigUint64Array Float16Array Float32Array Float64Array parseInt parseFloat ' +
    'isNaN isFinite decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape eval globalThis ' +
    'undefined NaN Infinity').split(' '));
  for (const key of ownKeys(globalThis)) if (typeof key === 'string' && !keep.has(key)) deleteProperty(globalThis, key);

  // The clock stands still at the first second of 2000, because a running one would make two runs differ.
  const now = 946684800000;
  const RealDate = Date;
  const FrozenDate = function Date(...given) {
    if (new.target === undefined) return new RealDate(now).toString();
    return construct(RealDate, given.length === 0 ? [now] : given, new.target);
  };
  FrozenDate.prototype = RealDate.prototype;
  FrozenDate.prototype.constructor = FrozenDate;
  FrozenDate.now = () => now;
  FrozenDate.parse = RealDate.parse;
  FrozenDate.UTC = RealDate.UTC;
  globalThis.Date = FrozenDate;

  // sfc32: small, fast and well tested. Two draws make the 53 bits of a double.
  let a = 0, b = 0, c = 0, d = 0;
  const draw = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return sum >>> 0;
  };
  Math.random = () => ((draw() >>> 5) * 67108864 + (draw() >>> 6)) / 9007199254740992;

  let logged = '';
  let logChars = 0;
  const print = (...values) => {
    for (const value of values) {
      if (logged.length >= logChars) return;
      let text;
      try { text = typeof value === 'string' ? value : stringify(value) ?? asString(value); } catch { text = '?'; }
      logged += apply(slice, text + ' ', [0, logChars - logged.length]);
    }
    if (logged.length < logChars) logged += '\n';
  };
  globalThis.console = { log: print, info: print, warn: print, error: print, debug: print };

  const describe = (thrown) => {
    try {
      if (typeof thrown !== 'object' || thrown === null) return apply(slice, 'threw ' + asString(thrown), [0, 1000]);
      const line = /agent(?:\.js|\/([^:\n]+)):(\d+)/.exec(asString(thrown.stack ?? ''));
      const where = line === null ? '' : ' (' + (line[1] ? line[1] + ', ' : '') + 'line ' + line[2] + ')';
      return apply(slice, asString(thrown.name ?? 'Error') + ': ' + asString(thrown.message), [0, 1000]) + where;
    } catch {
      return 'threw a value that cannot be shown';
    }
  };

  let replyChars = 0;
  const encode = (value) => {
    try {
      const text = stringify(value);
      if (typeof text !== 'string') return 'B' + typeof value + ' has no JSON form';
      return text.length > replyChars ? 'L' + text.length : 'R' + text;
    } catch (thrown) {
      return 'B' + describe(thrown);
    }
  };

  const handlers = { __proto__: null };
  let owner;
  const bind = (found) => {
    const whole = found.default;
    const holder = whole !== null && typeof whole === 'object' && typeof whole.act === 'function' ? whole : found;
    owner = holder === whole ? whole : undefined;
    if (typeof holder.init === 'function') handlers.init = holder.init;
    if (typeof holder.act === 'function') handlers.act = holder.act;
    if (typeof holder.onResult === 'function') handlers.onResult = holder.onResult;
    if (handlers.act === undefined && typeof whole === 'function') handlers.act = whole;
    return handlers.act !== undefined;
  };

  let settled = 'P';
  const isThenable = (value) => value !== null && typeof value === 'object' && typeof value.then === 'function';
  const watch = (promise) => {
    settled = 'P';
    apply(then, apply(resolve, PlainPromise, [promise]), [
      (value) => { settled = encode(value); },
      (thrown) => { settled = 'E' + describe(thrown); },
    ]);
    return settled;
  };
  const invoke = (name, text) => {
    const handler = handlers[name];
    if (handler === undefined) return 'Rnull';
    try {
      const value = apply(handler, owner, [parse(text)]);
      return isThenable(value) ? watch(value) : encode(value);
    } catch (thrown) {
      return 'E' + describe(thrown);
    }
  };

  return {
    start(seedA, seedB, seedC, seedD, maxReplyChars, maxLogChars) {
      a = seedA; b = seedB; c = seedC; d = seedD;
      for (let round = 0; round < 12; round += 1) draw();
      replyChars = maxReplyChars;
      logChars = maxLogChars;
    },
    bind, describe,
    init: (text) => invoke('init', text),
    act: (text) => invoke('act', text),
    onResult: (text) => invoke('onResult', text),
    settled: () => settled,
    log: () => logged,
  };
})()`;

/**
 * Finds the agent's functions after a plain script has run. They may be function declarations, which become globals,
 * or `const`s, which only code in the same global scope can see; hence a script and not a look at globalThis.
 */
export const findScriptHandlers = `({
  init: typeof init === 'function' ? init : undefined,
  act: typeof act === 'function' ? act : undefined,
  onResult: typeof onResult === 'function' ? onResult : undefined,
})`;
