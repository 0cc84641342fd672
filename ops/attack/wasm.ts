import type { Attack } from './attack.js';
import { attacksIn, attemptOf, forgedBy, hugeReply, outOfMemory, signalsUs, writesOutside } from './common.js';

const attacks = attacksIn(attemptOf);

/** Ways to time, to threads, to machine code, to the network or to the process: an engine alone has none of them. */
const globals = (
  'process require Buffer fetch setTimeout setInterval setImmediate queueMicrotask performance WebAssembly ' +
  'SharedArrayBuffer Atomics WeakRef FinalizationRegistry structuredClone TextEncoder URL AbortController EventTarget ' +
  'MessageChannel BroadcastChannel'
)
  .split(' ')
  .flatMap((name) => attacks({ [`the global ${name}`]: `return typeof ${name} !== 'undefined';` }));

const viaProcess = attacks({
  'reading a file of the host': 'return require("node:fs").readFileSync(o.secretFile, "utf8");',
  'reading /etc/shadow': 'return require("node:fs").readFileSync("/etc/shadow", "utf8").startsWith("root:");',
  'writing outside': ['require("node:fs").writeFileSync(o.outsideFile, "x"); return true;', writesOutside],
  'the environment': 'return process.env.AGON_ATTACK_SECRET;',
  'starting a shell': 'return require("node:child_process").execFileSync("/bin/echo", { encoding: "utf8" }) === "\\n";',
  TCP: `return new Promise((resolve, reject) => require('node:net').connect(o.tcpPort, '127.0.0.1')
       .on('data', (data) => resolve(String(data))).on('error', reject));`,
  'a unix socket': `return new Promise((resolve, reject) => require('node:net').connect(o.unixPath)
       .on('data', (data) => resolve(String(data))).on('error', reject));`,
  'signals to the host': ['process.kill(o.hostPid, "SIGUSR2"); return true;', signalsUs],
  'native bindings': 'return typeof process.binding("fs") === "object";',
  'a module by import()': 'return (await import("node:fs")).readFileSync(o.secretFile, "utf8");',
});

const polluted = (): boolean =>
  [{}, [], () => {}].some((value) => (value as { polluted?: unknown }).polluted !== undefined);
const pollutes: Partial<Attack> = {
  worked: ({ reply }) => polluted() || JSON.stringify(reply) === '{"worked":true}',
};

const escapes = attacks({
  "the constructor of this's constructor":
    'return (function () { return this; })().constructor.constructor("return process")().pid > 0;',
  'the constructor of a function': 'return (() => {}).constructor("return process")().pid > 0;',
  'the constructor of an async function': 'return (await (async () => {}).constructor("return process")()).pid > 0;',
  'the constructor of a generator': 'return (function* () {}).constructor("yield process")().next().value.pid > 0;',
  "the constructor of the observation's constructor": 'return o.constructor.constructor("return process")().pid > 0;',
  'the constructor of console.log': 'return console.log.constructor("return process")().pid > 0;',
  'eval in the global scope': 'return (0, eval)("process").pid > 0;',
  'frames of the host in a stack trace': 'return String(new Error().stack).includes("[eval]");',
  'a running clock':
    'const before = Date.now(); for (let i = 0; i < 3e5 && Date.now() === before; i += 1); return Date.now() !== before;',
  "today's date": 'return new Date().getFullYear() > 2020;',
  'pollution of Object.prototype': [
    'Object.prototype.polluted = 1; return process.memoryUsage().polluted === 1;',
    pollutes,
  ],
  'pollution of Array.prototype': ['Array.prototype.polluted = 1; return process.execArgv.polluted === 1;', pollutes],
  'pollution of Function.prototype': ['Function.prototype.polluted = 1; return process.cwd.polluted === 1;', pollutes],
  'pollution by __proto__': [
    'const a = {}; a.__proto__.polluted = 1; return process.versions.polluted === 1 || process.memoryUsage().polluted === 1;',
    pollutes,
  ],
});

/** Bounded by a clock: it stands still in the sandbox, and runs for half a second in the control. */
const untilLater = (round: string): string =>
  `const end = Date.now() + 500; while (Date.now() < end) { ${round} } return true;`;

const outOfFuel: Partial<Attack> = { stopped: ['out_of_fuel'] };
const soon: Partial<Attack> = { ...outOfFuel, limits: { turnFuel: 100 } };

const overMemory: Partial<Attack> = {
  ...outOfMemory,
  limits: { turnFuel: 5_000, memoryBytes: 32 * 1024 * 1024 },
};

const resources: Attack[] = [
  ...attacks({
    'CPU loop': [untilLater(''), outOfFuel],
    'a loop that catches everything': [untilLater('try { throw 1; } catch {} finally { continue; }'), outOfFuel],
    'a loop of promises': [untilLater('await null;'), soon],
    'a regular expression that backtracks': ['return !/(a+)+$/.test("a".repeat(25) + "b");', soon],
    'console flood': [
      'for (let i = 0; i < 100; i += 1) console.log("x".repeat(1e4)); return true;',
      { worked: ({ log }) => log.length > 64 * 1024, afterMs: 20 },
    ],
  }),
  // Not inside a try: the agent could live through it, within its limit, and that is no escape.
  ...attacksIn((body) => `const held = []; function act() { ${body} return { worked: true }; }`)({
    'memory bomb of buffers': ['while (held.length < 200) held.push(new Uint8Array(1e6).fill(1));', overMemory],
    'memory bomb of arrays': ['while (held.length < 200) held.push(new Array(1e5).fill(1.5));', overMemory],
    'memory bomb of strings': [
      'while (held.length < 200) held.push(("x" + held.length).padEnd(1e6).toUpperCase());',
      overMemory,
    ],
  }),
  ...attacksIn((source) => source)({
    'timing out in init': [
      'function init() { const end = Date.now() + 500; while (Date.now() < end); } function act() { return { worked: true }; }',
      outOfFuel,
    ],
    'timing out before init': [
      'const end = Date.now() + 500; while (Date.now() < end); function act() { return { worked: true }; }',
      outOfFuel,
    ],
    'huge reply': ['const act = () => "x".repeat(8e6);', hugeReply(8e6)],
    'a module by import': [
      'import fs from "node:fs"; export const act = (o) => fs.readFileSync(o.secretFile, "utf8");',
      { stopped: ['syntax_error'] },
    ],
  }),
];

const imitations: Attack[] = [
  ...attacks({
    'an answer printed': [
      `console.log('t R{"worked":true}'); if (typeof setTimeout === 'function') await new Promise((resolve) => setTimeout(resolve, 500)); return false;`,
      { worked: ({ reply }) => JSON.stringify(reply) === '{"worked":true}' },
    ],
  }),
  ...forgedBy((json) => `const act = () => (${json});`),
];

export const wasmAttacks: readonly Attack[] = [...globals, ...viaProcess, ...escapes, ...resources, ...imitations];
