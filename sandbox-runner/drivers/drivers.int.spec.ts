import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { allowanceOf, type Limits, limitsFrom } from '../limits.js';
import type { AgentInstance, Driver, FaultRule } from './driver.js';
import { ProcessDriver, whyNoProcessSandboxes } from './process.js';
import { WasmDriver } from './wasm.js';

/** The same small agents, written in the language of the driver. `act` is the body of a function of `observation`. */
interface Dialect {
  act(body: string): string;
  /** An agent whose three functions note what they were given, whose `act` returns the notes, and whose last prints. */
  readonly noting: string;
  readonly random: string;
  readonly counting: string;
  readonly body: Readonly<
    Record<'second' | 'raise' | 'loop' | 'allocate' | 'huge' | 'noJson' | 'print' | 'survive' | 'globals', string>
  >;
  readonly loopAtTop: string;
  readonly noAct: string;
  readonly syntaxError: string;
  /** Only where there is something to wait for, or to leave. */
  readonly native?: Readonly<Record<'sleep' | 'exit' | 'flood' | 'killSelf', string>>;
}

const observation = { legal: [0, 1, 2], text: 'a "quoted" é\n line \u2028 and 😀' };

/** What every driver owes the referee, whatever the agents are written in. */
function driverContract(name: string, open: () => Promise<Driver>, dialect: Dialect): void {
  describe(`the driver contract: ${name}`, () => {
    let driver: Driver;
    beforeAll(async () => {
      driver = await open();
    });
    afterAll(() => driver?.close());

    // Small enough that a test of a limit is short, large enough for an honest agent on a busy machine.
    const quick: Partial<Limits> = { turnMs: 300, initMs: 1_500, stallMs: 700, outputBytes: 256 * 1024 };
    const load = async (source: string, overrides: Partial<Limits> = {}, seat = 0, seed = 'seed') => {
      const limits = limitsFrom({ ...quick, ...overrides });
      const agent = await driver.load(source, { seed, seat, limits });
      return { agent, allowed: allowanceOf(limits, driver.meter) };
    };
    const ask = async (source: string, overrides: Partial<Limits> = {}, seat = 0, seed = 'seed') => {
      const { agent, allowed } = await load(source, overrides, seat, seed);
      try {
        const started = await agent.init({ seat }, allowed.init);
        return started.kind === 'fault' ? started : await agent.act(observation, allowed.turn);
      } finally {
        agent.dispose();
      }
    };
    const { act, body } = dialect;

    it('says what it is, what it runs on and what it counts', async () => {
      const { agent } = await load(act(body.second));
      expect(driver.name).toMatch(/^[a-z]+(\/[a-z]+)?$/);
      expect(driver.version).toMatch(/\d/);
      expect(agent).toMatchObject({ driver: driver.name, driverVersion: driver.version, meter: driver.meter });
      agent.dispose();
    });

    it('asks for an action, and gives it as plain data', async () => {
      expect(await ask(act(body.second))).toMatchObject({ kind: 'reply', value: 1 });
    });

    it('carries every character in and out', async () => {
      expect(await ask(act('return observation;'))).toMatchObject({ kind: 'reply', value: observation });
    });

    it('keeps an agent and its state through a match, from init to onResult', async () => {
      const { agent, allowed } = await load(dialect.noting);
      expect(await agent.init({ seat: 7 }, allowed.init)).toMatchObject({ kind: 'done' });
      await agent.act(1, allowed.turn);
      expect(await agent.act(2, allowed.turn)).toMatchObject({ value: [{ seat: 7 }, 1, 2] });
      expect(await agent.onResult({ score: 1 }, allowed.turn)).toMatchObject({ kind: 'done' });
      await vi.waitFor(() => expect(agent.log()).toContain('over'));
      agent.dispose();
    });

    it('accounts for what an agent used', async () => {
      const { agent, allowed } = await load(act(body.survive));
      const started = await agent.init({}, allowed.init);
      const reply = await agent.act(observation, allowed.turn);
      expect(agent.usage.fuel).toBe(started.fuel + reply.fuel);
      expect(agent.usage.peakMemoryBytes).toBeGreaterThan(0);
      agent.dispose();
      expect(agent.usage.fuel).toBe(started.fuel + reply.fuel);
    });

    it('draws the same numbers for the same seed and seat, and others for others', async () => {
      const first = await ask(dialect.random);
      expect(first).toMatchObject({ kind: 'reply' });
      const drawn = async (seat: number, seed: string) =>
        ((await ask(dialect.random, {}, seat, seed)) as { value: unknown }).value;
      expect(await drawn(0, 'seed')).toEqual((first as { value: unknown }).value);
      expect(await drawn(1, 'seed')).not.toEqual((first as { value: unknown }).value);
      expect(await drawn(0, 'other')).not.toEqual((first as { value: unknown }).value);
    });

    it('starts every match from nothing', async () => {
      for (const seat of [0, 1, 0]) expect(await ask(dialect.counting, {}, seat)).toMatchObject({ value: 1 });
    });

    const stopped: FaultRule[] = ['out_of_fuel', 'timeout'];
    const faults: [name: string, source: string, rules: FaultRule[], overrides?: Partial<Limits>][] = [
      ['an error', act(body.raise), ['crash']],
      ['a reply without a JSON form', act(body.noJson), ['bad_reply']],
      ['a huge reply', act(body.huge), ['reply_too_large']],
      ['a loop', act(body.loop), stopped],
      ['a loop before init', dialect.loopAtTop, stopped, { initMs: 300, initFuel: 100 }],
      ['a memory bomb', act(body.allocate), ['out_of_memory'], { turnMs: 5_000, turnFuel: 5_000 }],
      ['no act', dialect.noAct, ['no_act']],
      ['a syntax error', dialect.syntaxError, ['syntax_error']],
      ['a source too large', act(body.second), ['source_too_large'], { sourceBytes: 8 }],
      ...(dialect.native
        ? ([
            ['a sleep', act(dialect.native.sleep), ['timeout']],
            ['an exit', act(dialect.native.exit), ['crash']],
            ['a flood', act(dialect.native.flood), ['flood'], { turnMs: 5_000 }],
            ['a signal to itself', act(dialect.native.killSelf), ['crash']],
          ] satisfies [string, string, FaultRule[], Partial<Limits>?][])
        : []),
    ];

    it.each(faults)(
      'answers %s with a named fault, again and again, and plays on with others',
      async (_, source, rules, overrides) => {
        const { agent, allowed } = await load(source, overrides);
        const started = await agent.init({}, allowed.init);
        const first = started.kind === 'fault' ? started : await agent.act(observation, allowed.turn);
        expect(first).toMatchObject({
          kind: 'fault',
          rule: expect.toSatisfy((rule: FaultRule) => rules.includes(rule)),
        });
        const { rule, detail } = first as { rule: string; detail: string };
        expect(detail).toMatch(/^.{1,300}$/u);
        for (const again of [() => agent.act({}, allowed.turn), () => agent.onResult({}, allowed.turn)]) {
          expect(await again()).toEqual({ kind: 'fault', rule, detail, fuel: 0 });
        }
        agent.dispose();
        expect(await ask(act(body.second))).toMatchObject({ kind: 'reply', value: 1 });
      },
    );

    it('keeps no more of what is printed than allowed', async () => {
      const { agent, allowed } = await load(act(body.print), { logBytes: 1_000 });
      await agent.init({}, allowed.init);
      expect(await agent.act(observation, allowed.turn)).toMatchObject({ kind: 'reply' });
      await vi.waitFor(() => expect(Buffer.byteLength(agent.log())).toBe(1_000));
      agent.dispose();
    });

    it('can be left at any time, and more than once', async () => {
      const states: ((agent: AgentInstance) => Promise<unknown>)[] = [
        async () => {},
        (agent) => agent.init({}, 500),
        async (agent) => {
          await agent.init({}, 500);
          const asked = agent.act(observation, 200);
          agent.dispose();
          return asked;
        },
      ];
      for (const reach of states) {
        const { agent, allowed } = await load(act(body.second));
        await reach(agent);
        agent.dispose();
        agent.dispose();
        expect(await agent.act(observation, allowed.turn)).toMatchObject({ kind: 'fault', rule: 'crash' });
      }
    });

    it('keeps two agents apart', async () => {
      const one = await load(act(body.globals), {}, 0);
      const two = await load(act(body.globals), {}, 1);
      for (const { agent, allowed } of [one, two]) await agent.init({}, allowed.init);
      for (const { agent, allowed } of [one, two, one]) {
        expect(await agent.act(observation, allowed.turn)).toMatchObject({
          kind: 'reply',
          value: agent === one.agent ? expect.any(Number) : 1,
        });
      }
      for (const { agent } of [one, two]) agent.dispose();
    });

    it('checks a source without playing', async () => {
      const limits = limitsFrom(quick);
      expect(await driver.check(act(body.raise), limits)).toEqual({ ok: true });
      expect(await driver.check(dialect.noAct, limits)).toMatchObject({ ok: false, rule: 'no_act' });
      expect(await driver.check(dialect.syntaxError, limits)).toMatchObject({ ok: false, rule: 'syntax_error' });
    });
  });
}

const quickJs: Dialect = {
  act: (body) => `function act(observation) { ${body} }`,
  noting: `const seen = [];
    function init(config) { seen.push(config); }
    function act(observation) { seen.push(observation); return seen; }
    function onResult() { console.log('over'); }`,
  random: 'const drawn = Math.random(); function act() { return [drawn, Math.random()]; }',
  counting: 'globalThis.count = (globalThis.count ?? 0) + 1; function act() { return count; }',
  body: {
    second: 'return observation.legal[1];',
    raise: 'throw new Error("not today");',
    loop: 'for (;;) {}',
    allocate: 'const held = []; for (;;) held.push(new Uint8Array(1e6).fill(1));',
    huge: 'return "x".repeat(1e6);',
    noJson: 'return () => 1;',
    print: 'for (let i = 0; i < 100; i += 1) console.log("x".repeat(99)); return 0;',
    survive: 'const held = []; for (let i = 0; i < 1e5; i += 1) held.push({ i }); return held.length;',
    globals: 'globalThis.calls = (globalThis.calls ?? 0) + 1; return globalThis.calls;',
  },
  loopAtTop: 'for (;;) {}',
  noAct: 'function play() { return 1; }',
  syntaxError: 'function act( { return 1 }',
};

const nodeJs: Dialect = {
  ...quickJs,
  native: {
    sleep: 'return new Promise((resolve) => setTimeout(resolve, 60_000));',
    exit: 'process.exit(3);',
    flood: 'const line = "x".repeat(1e5); for (;;) require("fs").writeSync(1, line);',
    killSelf: 'process.kill(process.pid, "SIGKILL"); for (;;) {}',
  },
};

const indent = (body: string): string => body.replace(/^/gm, '    ');

const python: Dialect = {
  act: (body) => `import os, sys, time\nheld = []\ndef act(observation):\n${indent(body)}\n`,
  noting: `seen = []
def init(config):
    seen.append(config)
def act(observation):
    seen.append(observation)
    return seen
def on_result(result):
    print('over')
`,
  random:
    'import random\ndrawn = random.random()\ndef act(observation):\n    return [drawn, random.random(), hash("a")]\n',
  counting:
    'import builtins\nbuiltins.count = getattr(builtins, "count", 0) + 1\ndef act(observation):\n    return count\n',
  body: {
    second: 'return observation["legal"][1]',
    raise: 'raise ValueError("not today")',
    loop: 'while True: pass',
    allocate: 'while True: held.append(b"x" * 1_000_000)',
    huge: 'return "x" * 1_000_000',
    noJson: 'return object()',
    print: 'for i in range(100): print("x" * 99)\nreturn 0',
    survive: 'held.extend({"i": i} for i in range(100_000))\nreturn len(held)',
    globals: 'held.append(1)\nreturn len(held)',
  },
  loopAtTop: 'while True: pass\n',
  noAct: 'def play(observation): return 1\n',
  syntaxError: 'def act(:\n    return 1\n',
  native: {
    sleep: 'time.sleep(60)',
    exit: 'os._exit(3)',
    flood: 'while True: os.write(1, b"x" * 100_000)',
    killSelf: 'os.kill(os.getpid(), 9)',
  },
};

driverContract('wasm', async () => new WasmDriver(), quickJs);

const why = whyNoProcessSandboxes();
describe.skipIf(why !== undefined)(`process sandboxes${why ? ` (${why})` : ''}`, () => {
  driverContract('process/python', () => ProcessDriver.open('python'), python);
  driverContract('process/node', () => ProcessDriver.open('node'), nodeJs);
});
