import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgonError } from '../../services/kernel/index.js';
import type { Driver } from '../drivers/driver.js';
import { ProcessDriver, whyNoProcessSandboxes } from '../drivers/process.js';
import { WasmDriver } from '../drivers/wasm.js';
import { allowanceOf, type Limits, limitsFrom } from '../limits.js';
import { bundleCode } from './bundle.js';

const pack = (files: Record<string, string | Buffer>): string =>
  bundleCode(new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)]))).source;

async function ask(driver: Driver, source: string, overrides: Partial<Limits> = {}) {
  const limits = limitsFrom(overrides);
  const allowed = allowanceOf(limits, driver.meter);
  const agent = await driver.load(source, { seed: 'seed', seat: 0, limits });
  try {
    const started = await agent.init({}, allowed.init);
    return started.kind === 'fault' ? started : await agent.act({ legal: [3, 4] }, allowed.turn);
  } finally {
    agent.dispose();
  }
}

const malformed: [what: string, source: string][] = [
  ['that leads out', 'agon bundle 1\n{"entry":"../main.js","files":{"../main.js":"x"}}'],
  ['in another form', 'agon bundle 1\n{ "entry":"main.js","files":{"main.js":"export const act = () => 1;"}}'],
  ['that is none', 'agon bundle 1\nexport const act = () => 1;'],
];

const table = 'export const table = { "a": 1 };';

describe('a bundle in WebAssembly', () => {
  const driver = new WasmDriver();
  afterAll(() => driver.close());

  it.each<[what: string, files: Record<string, string>, value: unknown]>([
    [
      'its files, from folder to folder',
      {
        'main.js': "import { best } from './lib/search/best.js'; export const act = ({ legal }) => best(legal);",
        'lib/search/best.js': "import { first } from '../order.mjs'; export const best = (legal) => first(legal) * 10;",
        'lib/order.mjs': 'export const first = (list) => list[0];',
      },
      30,
    ],
    [
      'its data',
      { 'main.js': "import book from './book.json'; export const act = () => book;", 'book.json': '{"e2e4":[1,"é"]}' },
      { e2e4: [1, 'é'] },
    ],
    [
      "data as Node's modules name it",
      { 'main.js': "import a from './a.json' with { type: 'json' }; export const act = () => a;", 'a.json': '[1]' },
      [1],
    ],
    [
      'a file only when it is needed',
      { 'main.js': "export const act = async () => (await import('./late.js')).table;", 'late.js': table },
      { a: 1 },
    ],
    [
      'files that need each other, once each',
      {
        'main.js': "import { twice } from './b.js'; export let n = 1; n += 1; export const act = () => [n, twice()];",
        'b.js': "import { n } from './main.js'; export const twice = () => 2 * n;",
      },
      [2, 4],
    ],
    [
      'a default object',
      {
        'main.js': "export { default } from './agent/x.js';",
        'agent/x.js': 'export default { n: 7, act() { return this.n; } };',
      },
      7,
    ],
  ])('imports %s', async (_what, files, value) => {
    expect(await ask(driver, pack(files))).toMatchObject({ kind: 'reply', value });
  });

  it.each([
    '/etc/passwd',
    '/agent/x.js',
    'agent/x.js',
    'x.js',
    'node:fs',
    'fs',
    'file:///etc/passwd',
    'data:text/javascript,export default 1',
    '../x.js',
    './../../x.js',
    './lib/../../agent/x.js',
    './X.js',
    './x',
    '.',
    '',
    './x.js?a',
    './data.txt',
  ])('finds nothing at %j, before it plays or later', async (from) => {
    const rest = { 'x.js': table, 'data.txt': 'export default 1', 'lib/y.js': table };
    const later = pack({ 'main.js': `export const act = () => import('${from}').then(() => 'in', String);`, ...rest });
    expect(await ask(driver, later)).toMatchObject({ kind: 'reply', value: expect.stringMatching(/Cannot import/) });
    const before = pack({ 'main.js': `import '${from}'; export const act = () => 'in';`, ...rest });
    expect(await ask(driver, before)).toMatchObject({ kind: 'fault', rule: 'syntax_error' });
  });

  it('leaves nothing of its files to the next agent of the same machine', async () => {
    const steal = "export const act = () => import('./x.js').then(() => 'in', () => 'out');";
    for (let round = 0; round < 3; round += 1) {
      expect(await ask(driver, pack({ 'main.js': steal, 'x.js': table }))).toMatchObject({ value: 'in' });
      expect(await ask(driver, pack({ 'main.js': steal }))).toMatchObject({ value: 'out' });
      expect(await ask(driver, steal.replace("'./x.js'", "'agent/x.js'"))).toMatchObject({ value: 'out' });
    }
  });

  it('spends the same fuel on every run', async () => {
    const source = pack({
      'main.js': "import './l.js'; export const act = () => Math.random();",
      'l.js': 'for (let i = 0; i < 1e5; i += 1);',
    });
    expect(await ask(driver, source)).toEqual(await ask(new WasmDriver(), source));
  });

  it.each<[what: string, files: Record<string, string>, rule: string, detail: RegExp]>([
    [
      'an error',
      { 'main.js': "import './lib/x.js'; export const act = 1", 'lib/x.js': '\nnull.x' },
      'crash',
      /\(lib\/x\.js, line 2\)$/,
    ],
    ['a syntax error', { 'main.js': "import './x.js';", 'x.js': 'let let' }, 'syntax_error', /^SyntaxError/],
    ['a missing export', { 'main.js': "import { b } from './x.js';", 'x.js': table }, 'syntax_error', /export 'b'/],
    ['bad data', { 'main.js': "import './x.json';", 'x.json': '{' }, 'syntax_error', /^SyntaxError/],
    ['no act', { 'main.js': 'function act() {}' }, 'no_act', /act/],
    ['a loop', { 'main.js': "import './x.js';", 'x.js': 'for (;;);' }, 'out_of_fuel', /./],
  ])('that has %s is told where', async (_what, files, rule, detail) => {
    expect(await ask(driver, pack(files))).toMatchObject({
      kind: 'fault',
      rule,
      detail: expect.stringMatching(detail),
    });
  });

  it.each(malformed)('%s is no agent', async (_what, source) => {
    expect(await driver.check(source, limitsFrom())).toMatchObject({ ok: false, rule: 'syntax_error' });
  });
});

const why = whyNoProcessSandboxes();
describe.skipIf(why !== undefined)(`a bundle in a process${why ? ` (${why})` : ''}`, () => {
  let python: Driver;
  let node: Driver;
  beforeAll(async () => {
    [python, node] = await Promise.all([ProcessDriver.open('python'), ProcessDriver.open('node')]);
  });
  afterAll(() => Promise.all([python?.close(), node?.close()]));
  const driver = (name: string) => (name === 'python' ? python : node);
  const actIn = (body: string) => `def act(o):\n    ${body.replaceAll('\n', '\n    ')}\n`;

  it.each<[runtime: string, what: string, files: Record<string, string | Buffer>, value: unknown]>([
    [
      'python',
      'imports its modules and packages',
      {
        'main.py': `import moves\nfrom lib.deep import order\n${actIn('return [moves.first(o), order.N]')}`,
        'moves.py': 'def first(o): return o["legal"][0]\n',
        'lib/deep/__init__.py': '',
        'lib/deep/order.py': 'from . import base\nN = base.N + 1\n',
        'lib/deep/base.py': 'N = 1\n',
      },
      [3, 2],
    ],
    [
      'python',
      'reads its data, from where it stands and from beside its file',
      {
        'main.py': `import os\n${actIn('beside = os.path.join(os.path.dirname(__file__), "w.bin")\nreturn [open("d/words.txt").read(), list(open(beside, "rb").read())]')}`,
        'd/words.txt': 'é\n',
        'w.bin': Buffer.from([0, 255, 10]),
      },
      ['é\n', [0, 255, 10]],
    ],
    [
      'python',
      'starts from the entry that it names',
      {
        'src/bot.py': `import helper\n${actIn('return helper.N')}`,
        'src/helper.py': 'N = 5\n',
        'agent.json': '{"entry":"src/bot.py"}',
      },
      5,
    ],
    [
      'node',
      'imports its modules and reads its data',
      {
        'main.js':
          "import { readFileSync } from 'node:fs'; import { n } from './lib/n.mjs'; import d from './d.json' with { type: 'json' };\nexport const act = () => [n, d, readFileSync('w.bin').length, readFileSync(new URL('w.bin', import.meta.url))[1]];",
        'lib/n.mjs': 'export const n = 1;',
        'd.json': '{"a":2}',
        'w.bin': Buffer.from([0, 255, 10]),
      },
      [1, { a: 2 }, 3, 255],
    ],
    [
      'node',
      'requires its modules',
      {
        'main.js':
          "const { n } = require('./lib'); const d = require('./d.json');\nmodule.exports = { act: () => [n, d.a] };",
        'lib/index.js': 'exports.n = 4;',
        'd.json': '{"a":2}',
      },
      [4, 2],
    ],
  ])('of %s %s', async (runtime, _what, files, value) => {
    expect(await ask(driver(runtime), pack(files))).toMatchObject({ kind: 'reply', value });
  });

  it.each<[runtime: string, what: string, files: Record<string, string>, rule: string, detail: RegExp]>([
    [
      'python',
      'an error',
      { 'main.py': 'import lib.x\n', 'lib/x.py': '\n1 / 0\n' },
      'crash',
      /\(lib\/x\.py, line 2\)$/,
    ],
    ['python', 'a syntax error', { 'main.py': 'def act(:\n' }, 'syntax_error', /\(main\.py, line 1\)$/],
    [
      'python',
      'a module that is not there',
      { 'main.py': 'import nothing\n' },
      'crash',
      /ModuleNotFoundError.*\(main\.py, line 1\)$/,
    ],
    ['python', 'no act', { 'main.py': 'x = 1\n' }, 'no_act', /act/],
    [
      'node',
      'an error',
      { 'main.js': "import './lib/x.js';", 'lib/x.js': '\nnull.x' },
      'crash',
      /\(lib\/x\.js, line 2\)$/,
    ],
    ['node', 'a syntax error', { 'main.js': "import './x.mjs';", 'x.mjs': 'let let' }, 'syntax_error', /SyntaxError/],
    ['node', 'a module that is not there', { 'main.js': "import './nothing.js';" }, 'crash', /Cannot find module/],
    ['node', 'no act', { 'main.js': 'export const x = 1;' }, 'no_act', /act/],
  ])('of %s that has %s is told where', async (runtime, _what, files, rule, detail) => {
    expect(await ask(driver(runtime), pack(files))).toMatchObject({
      kind: 'fault',
      rule,
      detail: expect.stringMatching(detail),
    });
  });

  it.each(['python', 'node'])('of %s has no more room than any agent has', async (runtime) => {
    const files = { 'main.py': actIn('return 1'), 'main.js': 'export const act = () => 1;' };
    const [name = ''] = Object.keys(files).filter((file) => file.endsWith(runtime === 'python' ? '.py' : '.js'));
    const source = pack({ [name]: files[name as keyof typeof files], 'big.bin': Buffer.alloc(200_000, 255) });
    expect(await ask(driver(runtime), source)).toMatchObject({ kind: 'reply', value: 1 });
    expect(await ask(driver(runtime), source, { diskBytes: 64 * 1024 })).toMatchObject({
      kind: 'fault',
      rule: 'crash',
    });
  });

  it.each(malformed)('%s is no agent', async (_what, source) => {
    for (const each of [python, node]) {
      expect(await each.check(source, limitsFrom())).toMatchObject({ ok: false, rule: 'syntax_error' });
    }
  });
});

it('says what is wrong in a way that its author can act on', () => {
  try {
    pack({ 'lib.js': 'x' });
    expect.unreachable();
  } catch (error) {
    expect((error as AgonError).message).toMatch(/none of main\.py, main\.js.*agent\.json/);
  }
});
