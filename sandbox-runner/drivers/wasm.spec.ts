import { afterAll, describe, expect, it } from 'vitest';
import { type Limits, limitsFrom } from '../limits.js';
import { WasmDriver } from './wasm.js';

const driver = new WasmDriver();
afterAll(() => driver.close());

const observation = { game: 'tic-tac-toe', turn: 1, seat: 0, board: [], legal: [0, 1, 2] };

async function load(source: string, overrides: Partial<Limits> = {}, seat = 0, seed = 'seed') {
  const limits = limitsFrom(overrides);
  const agent = await driver.load(source, { seed, seat, limits });
  return { agent, limits };
}

/** Starts the agent and asks it once; whatever comes first, a fault or the reply. */
async function ask(source: string, overrides: Partial<Limits> = {}, seat = 0, seed = 'seed') {
  const { agent, limits } = await load(source, overrides, seat, seed);
  try {
    const started = await agent.init({ seat }, limits.initFuel);
    if (started.kind === 'fault') return { ...started, phase: 'init' };
    return { ...(await agent.act(observation, limits.turnFuel)), phase: 'act' };
  } finally {
    agent.dispose();
  }
}

const act = (body: string): string => `function act(observation) { ${body} }`;

describe('agents that behave', () => {
  it.each([
    ['a function declaration', 'function act({ legal }) { return legal[1]; }'],
    ['a const', 'const act = ({ legal }) => legal[1];'],
    ['an exported function', 'export function act({ legal }) { return legal[1]; }'],
    ['an exported list', 'const act = ({ legal }) => legal[1];\nexport { act };'],
    ['a default object with a state', 'export default { n: 1, act({ legal }) { return legal[this.n]; } };'],
    ['a default function', 'export default ({ legal }) => legal[1];'],
    ['an async function', 'async function act({ legal }) { await null; return legal[1]; }'],
    ['a thenable', 'function act({ legal }) { return { then(resolve) { resolve(legal[1]); } }; }'],
    ['a module that awaits', 'const n = await Promise.resolve(1);\nexport const act = ({ legal }) => legal[n];'],
    ['a script that mentions export', '// export default\nfunction act({ legal }) { return legal[1]; }'],
  ])('may be %s', async (_form, source) => {
    expect(await ask(source)).toMatchObject({ kind: 'reply', value: 1 });
  });

  // Where the text of a module ends in memory once decided whether its compiled form could be read.
  it('may be modules of any length, one after the other', async () => {
    for (let length = 0; length < 64; length += 1) {
      const source = `export function act(observation) { return observation.legal[0]; }\n//${'x'.repeat(length)}`;
      expect(await driver.check(source, limitsFrom())).toEqual({ ok: true });
    }
  });

  it('keep their state between turns, and hear how they are seated and how it ended', async () => {
    const { agent } = await load(`
      let seen = [];
      function init(config) { seen.push(config.seat); }
      function act() { seen.push('act'); return seen; }
      function onResult(result) { console.log('score', result.score); }`);
    await agent.init({ seat: 7 }, 100);
    await agent.act({}, 100);
    expect(await agent.act({}, 100)).toMatchObject({ value: [7, 'act', 'act'] });
    await agent.onResult({ score: 1 }, 100);
    expect(agent.log()).toBe('score 1 \n');
    agent.dispose();
    agent.dispose();
    expect(await agent.act({}, 100)).toMatchObject({ kind: 'fault', rule: 'crash' });
  });

  it('get a capped console', async () => {
    const { agent } = await load(act('for (let i = 0; i < 1e4; i += 1) console.log("x".repeat(99)); return 0;'));
    await agent.init({}, 500);
    await agent.act({}, 500);
    expect(agent.log().length).toBe(16 * 1024);
    agent.dispose();
  });
});

describe('containment', () => {
  const attacks: [name: string, source: string, rule: string][] = [
    ['a loop at the top level', 'for (;;) {}', 'out_of_fuel'],
    ['a loop in init', `function init() { for (;;) {} } ${act('return 0')}`, 'out_of_fuel'],
    ['a loop in act', act('for (;;) {}'), 'out_of_fuel'],
    [
      'a loop that catches everything',
      act('for (;;) { try { for (;;) {} } catch {} finally { for (;;) {} } }'),
      'out_of_fuel',
    ],
    ['a loop in a getter of the reply', act('return { get a() { for (;;) {} } }'), 'out_of_fuel'],
    ['a loop in toJSON', act('return { toJSON() { for (;;) {} } }'), 'out_of_fuel'],
    ['a loop in the message of an error', act('throw { get message() { for (;;) {} } }'), 'out_of_fuel'],
    ['a loop of promises', act('const again = () => Promise.resolve().then(again); return again();'), 'out_of_fuel'],
    ['a loop in a then', act('return { then() { for (;;) {} } }'), 'out_of_fuel'],
    ['promises left behind', act('(async () => { for (;;) await null; })(); return 0;'), 'out_of_fuel'],
    ['a regular expression that backtracks', act('return /(a+)+$/.test("a".repeat(40) + "b") ? 1 : 0'), 'out_of_fuel'],
    ['a generator without end', act('return [...(function* () { for (;;) yield 1; })()]'), 'out_of_fuel'],
    ['a memory bomb of arrays', act('const a = []; for (;;) a.push(new Array(1000).fill(1));'), 'out_of_memory'],
    ['a memory bomb of objects', act('const o = {}; for (let i = 0; ; i += 1) o["k" + i] = { i };'), 'out_of_memory'],
    ['a memory bomb of a map', act('const m = new Map(); for (let i = 0; ; i += 1) m.set(i, [i]);'), 'out_of_memory'],
    [
      'a memory bomb of strings',
      act('const a = []; for (let i = 0; ; i += 1) a.push(("x" + i).padEnd(1e5));'),
      'out_of_memory',
    ],
    ['one huge array', act('return new Array(1e9).fill(0)'), 'out_of_memory'],
    ['one huge string', act('return "a".repeat(1e9)'), 'out_of_memory'],
    ['one huge buffer', act('return new ArrayBuffer(1e9)'), 'out_of_memory'],
    ['a memory bomb at the top level', 'const a = []; for (;;) a.push(new Uint8Array(1e5));', 'out_of_memory'],
    ['a string that doubles', act('let s = "x"; for (;;) s += s;'), 'crash'],
    ['a recursion without end', act('return act(observation) + 1'), 'crash'],
    ['a recursion through a native', act('return [1, 2].sort(() => act(observation))'), 'crash'],
    ['deep nesting to eval', act('return eval("(".repeat(1e5))'), 'crash'],
    ['deep nesting to parse', act('return JSON.parse("[".repeat(1e6))'), 'crash'],
    ['deep nesting in the reply', act('let a = []; for (let i = 0; i < 1e5; i += 1) a = [a]; return a;'), 'crash'],
    ['a huge reply', act('return "x".repeat(1e6)'), 'reply_too_large'],
    ['a reply just too large in bytes', act('return "é".repeat(2100)'), 'reply_too_large'],
    ['no reply', act(''), 'bad_reply'],
    ['a function as a reply', act('return () => 1'), 'bad_reply'],
    ['a symbol as a reply', act('return Symbol("a")'), 'bad_reply'],
    ['a bigint as a reply', act('return 1n'), 'bad_reply'],
    ['a cyclic reply', act('const a = {}; a.a = a; return a;'), 'bad_reply'],
    ['a reply whose getter throws', act('return { get a() { throw 1 } }'), 'bad_reply'],
    ['a reply whose toJSON returns nothing', act('return { toJSON() {} }'), 'bad_reply'],
    ['a revoked proxy as a reply', act('const p = Proxy.revocable({}, {}); p.revoke(); return p.proxy;'), 'crash'],
    ['a promise that never resolves', act('return new Promise(() => {})'), 'bad_reply'],
    ['a promise that rejects', act('return Promise.reject(new Error("no"))'), 'crash'],
    ['a throw of null', act('throw null'), 'crash'],
    ['a throw of a symbol', act('throw Symbol("x")'), 'crash'],
    ['a throw of a hostile object', act('throw { get name() { throw 1 }, toString: null }'), 'crash'],
    ['a throw of a proxy', act('throw new Proxy({}, { get() { throw new Proxy({}, {}) } })'), 'crash'],
    ['a throw at the top level', 'throw new Error("not today")', 'crash'],
    ['a rejection at the top level', 'await Promise.reject(new Error("x")); export const act = 1', 'crash'],
    ['an escape by constructors', act('return this.constructor.constructor("return process")().pid'), 'crash'],
    ['an escape by the function constructor', act('return (() => {}).constructor("return process")().pid'), 'crash'],
    ['an import', 'import fs from "node:fs"; export const act = () => 0', 'syntax_error'],
    ['a dynamic import', act('return import("node:fs")'), 'crash'],
    ['a require', act('return require("fs")'), 'crash'],
    ['a syntax error', 'function act( { return 1 }', 'syntax_error'],
    ['no act', 'function play() { return 1 }', 'no_act'],
    ['an act that is no function', 'const act = 5;', 'no_act'],
    ['a top level that never resolves', 'await new Promise(() => {}); export const act = () => 0', 'no_act'],
    ['a source too large', `${act('return 0')} //${'x'.repeat(1024 * 1024)}`, 'source_too_large'],
  ];

  it.each(attacks)(
    '%s',
    async (_name, source, rule) => {
      const result = await ask(source);
      expect(result).toMatchObject({ kind: 'fault', rule });
      const { detail } = result as { detail: string };
      expect(detail).toMatch(/^.{1,300}$/);
      // The driver is as good as new, whatever has happened in its machine.
      expect(await ask(act('return observation.legal[2]'))).toMatchObject({ kind: 'reply', value: 2 });
    },
    30_000,
  );

  it('keeps details to one short line without control characters', async () => {
    const result = await ask(act('throw new Error("a\\n\\u001b[31m\\u2028\\u202e" + "b".repeat(1e6))'));
    expect(result).toMatchObject({ rule: 'crash', detail: expect.stringMatching(/^Error: a \[31m b+…$/) });
  });

  it('names the line of an error', async () => {
    expect(await ask('\n\nfunction act() {\n  null.x;\n}')).toMatchObject({
      detail: expect.stringContaining('(line 4)'),
    });
    expect(await ask('const a = 1;\nconst b = ;\nfunction act() {}')).toMatchObject({
      rule: 'syntax_error',
      detail: expect.stringContaining('(line 2)'),
    });
  });

  it('stays failed after a fault', async () => {
    const { agent } = await load(act('throw new Error("once")'));
    await agent.init({}, 100);
    expect(await agent.act({}, 100)).toMatchObject({ rule: 'crash' });
    expect(await agent.act({}, 100)).toMatchObject({ rule: 'crash', detail: expect.stringContaining('once'), fuel: 0 });
    agent.dispose();
  });

  it('lets an agent survive its own out-of-memory error, within the cap', async () => {
    const source = act('try { new Array(1e9).fill(0); } catch (e) { return e.message; }');
    expect(await ask(source)).toMatchObject({ kind: 'reply', value: 'out of memory' });
  });
});

describe('isolation', () => {
  it('shows an agent nothing of the host', async () => {
    const source = act('return Reflect.ownKeys(globalThis).map(String)');
    const { value } = (await ask(source)) as { value: string[] };
    for (const name of [
      'process',
      'require',
      'performance',
      'fetch',
      'setTimeout',
      'WebAssembly',
      'std',
      'os',
      'print',
    ]) {
      expect(value).not.toContain(name);
    }
    for (const name of ['SharedArrayBuffer', 'Atomics', 'WeakRef', 'FinalizationRegistry']) {
      expect(value).not.toContain(name);
    }
    expect(value).toContain('console');
  });

  it('finds no way to the host through any object that it can reach', async () => {
    const source = act(`
      const seen = new Set(), names = [], queue = [globalThis];
      while (queue.length) {
        const at = queue.pop();
        if (at === null || (typeof at !== 'object' && typeof at !== 'function') || seen.has(at)) continue;
        seen.add(at);
        queue.push(Object.getPrototypeOf(at));
        for (const key of Reflect.ownKeys(at)) {
          const { value, get, set } = Object.getOwnPropertyDescriptor(at, key);
          if (/pid|binding|env|HEAP|ballast|invoke/i.test(String(key))) names.push(String(key));
          queue.push(value, get, set);
        }
      }
      return { names, many: seen.size > 500 };`);
    expect(await ask(source)).toMatchObject({ value: { names: [], many: true } });
  });

  const pollution = `
    Object.prototype.polluted = 1; Array.prototype.polluted = 1; Function.prototype.call = () => 'forged';
    Object.prototype.toJSON = () => 6; JSON.stringify = () => '5'; JSON.parse = () => ({ legal: [9] });
    Math.random = () => 0.5; Date.now = () => 1; String.prototype.slice = () => 'forged'; Promise.resolve = null;
    Promise.prototype.then = null; Reflect.apply = null; Array.prototype[Symbol.iterator] = null;`;

  it('lets pollution reach neither the host, nor the other seat, nor the next match', async () => {
    const { agent: polluter } = await load(`${pollution} ${act('return 0')}`);
    const other = await load(act('return [{}.polluted ?? null, Math.random() === 0.5, JSON.stringify([1])]'), {}, 1);
    await polluter.init({}, 100);
    await other.agent.init({}, 100);
    expect(await polluter.act(observation, 100)).toMatchObject({ kind: 'reply' });
    expect(await other.agent.act(observation, 100)).toMatchObject({ value: [null, false, '[1]'] });
    polluter.dispose();
    other.agent.dispose();
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(await ask(act('return [{}.polluted ?? null, JSON.stringify([1])]'))).toMatchObject({ value: [null, '[1]'] });
  });

  it('gives observations and replies as JSON, whatever the agent has made of JSON', async () => {
    const source = `JSON.parse = () => 1; JSON.stringify = () => '"forged"'; ${act('return observation.legal')}`;
    expect(await ask(source)).toMatchObject({ kind: 'reply', value: [0, 1, 2] });
  });

  it('takes imitated answers of its own protocol for what they are: plain replies', async () => {
    for (const forged of ['R0', 'E', 'P', 'L1', '{"kind":"reply"}']) {
      expect(await ask(act(`return ${JSON.stringify(forged)}`))).toMatchObject({ kind: 'reply', value: forged });
    }
    expect(await ask(act('return { kind: "fault", rule: "crash", __proto__: { a: 1 } }'))).toMatchObject({
      kind: 'reply',
      value: { kind: 'fault' },
    });
  });

  it('keeps globals of one match from the next, and of one seat from the other', async () => {
    const source = 'globalThis.count = (globalThis.count ?? 0) + 1; const act = () => count;';
    for (const seat of [0, 1, 0, 1]) expect(await ask(source, {}, seat)).toMatchObject({ value: 1 });
  });

  it('leaves nothing of a source in the memory that the next agent gets', async () => {
    const probe = act('const b = new Uint8Array(9e5); let n = 0; for (const x of b) n += x; return n;');
    await ask(`const secret = "${'s'.repeat(1000)}".repeat(500); ${act('return secret.length')}`);
    expect(await ask(probe)).toMatchObject({ value: 0 });
  });
});

describe('determinism', () => {
  const busy = `
    const drawn = Array.from({ length: 5 }, Math.random);
    function act() {
      const keys = Object.keys(Object.fromEntries(drawn.map((x, i) => ['k' + x, i])));
      let n = 0; for (let i = 0; i < 123456; i += 1) n += Math.sin(i) * Math.random();
      return [drawn, keys, n, Date.now(), new Date().toISOString(), Date(), new Date(5).getTime(), [3, 1, 2].sort()];
    }`;

  it('gives the same reply for the same fuel, on a new machine and on a used one', async () => {
    const first = await ask(busy);
    expect(first).toMatchObject({ kind: 'reply' });
    expect(await ask(busy)).toEqual(first);
    expect(
      JSON.stringify(
        await new WasmDriver().load(busy, { seed: 'seed', seat: 0, limits: limitsFrom() }).then(async (agent) => {
          await agent.init({ seat: 0 }, 500);
          return { ...(await agent.act(observation, 250)), phase: 'act' };
        }),
      ),
    ).toBe(JSON.stringify(first));
  });

  it('draws other random numbers for another seat and another seed', async () => {
    const source = act('return Math.random()');
    const draws = [await ask(source), await ask(source, {}, 1), await ask(source, {}, 0, 'other')];
    expect(new Set(draws.map((draw) => (draw as { value: number }).value)).size).toBe(3);
  });

  it('counts the same fuel and the same memory for a fault', async () => {
    const faults = [];
    for (let round = 0; round < 2; round += 1) {
      const { agent } = await load(act('const a = []; for (;;) a.push({});'));
      await agent.init({}, 500);
      faults.push([await agent.act({}, 1e6), agent.usage]);
      agent.dispose();
    }
    expect(faults[1]).toEqual(faults[0]);
  });
});

describe('limits', () => {
  it('holds the memory cap closely', async () => {
    const hold = (megabytes: number) => act(`return new Uint8Array(${megabytes} * 1048576).fill(1).length`);
    expect(await ask(hold(24))).toMatchObject({ kind: 'reply' });
    expect(await ask(hold(33))).toMatchObject({ rule: 'out_of_memory' });
    expect(await ask(hold(24), { memoryBytes: 16 * 1024 * 1024 })).toMatchObject({ rule: 'out_of_memory' });
  });

  it('reports the peak even when the memory was given back', async () => {
    const { agent } = await load(act('{ new Uint8Array(8e6).fill(1); } return 0;'));
    await agent.init({}, 100);
    await agent.act({}, 100);
    expect(agent.usage.peakMemoryBytes).toBeGreaterThan(8e6);
    expect(agent.usage.peakMemoryBytes).toBeLessThan(12e6);
    agent.dispose();
  });

  it('refuses limits that no driver could hold', () => {
    expect(() => limitsFrom({ memoryBytes: 1 })).toThrow(expect.objectContaining({ code: 'SANDBOX.BAD_LIMITS' }));
    expect(() => limitsFrom({ turnFuel: 0.5 })).toThrow(/turnFuel/);
    expect(() => limitsFrom({ unknown: 1 } as Partial<Limits>)).toThrow(/unknown/);
  });

  it('checks a source without playing it', async () => {
    const limits = limitsFrom();
    expect(await driver.check(act('throw 1'), limits)).toEqual({ ok: true });
    expect(await driver.check('let x = 1;\nlet x = 2;', limits)).toMatchObject({ ok: false, rule: 'syntax_error' });
    expect(await driver.check('let a = 1;', limits)).toMatchObject({ ok: false, rule: 'no_act' });
    expect(await driver.check('for (;;) {}', limits)).toMatchObject({ ok: false, rule: 'out_of_fuel' });
  });
});
