import { describe, expect, it } from 'vitest';
import { untidyCode } from './tidy.js';

/** What is said of files, without what nobody imports: a small source has nobody to import it. */
const said = (files: Record<string, string>) =>
  untidyCode(new Map(Object.entries(files))).filter((text) => !text.includes('nobody imports it'));
const saidOf = (text: string, path = 'gateway/some.ts') => said({ [path]: text });
const lines = (count: number, text = (i: number) => `  f(${i});`) =>
  Array.from({ length: count }, (_, i) => text(i)).join('\n');

describe('functions', () => {
  it.each([
    ['a function', (body: string) => `function f() {\n${body}\n}`],
    ['an arrow function', (body: string) => `const f = () => {\n${body}\n};`],
    ['a method', (body: string) => `class C {\n  @Decorated({\n    a: 1,\n  })\n  f() {\n${body}\n  }\n}`],
    ['a constructor', (body: string) => `class C {\n  constructor() {\n${body}\n  }\n}`],
  ])('have at most 70 lines: %s', (_what, around) => {
    expect(saidOf(around(lines(68)))).toEqual([]);
    expect(saidOf(around(lines(69)))).toEqual([expect.stringMatching(/at most 70 lines, and this one 71/)]);
  });

  it('count without the functions in them, which count for themselves', () => {
    const body = (name: string, count: number) => lines(count, (i) => `  ${name}(${i});`);
    const inner = (count: number) => `  const g = () => {\n${body('g', count)}\n  };`;
    const around = (before: number) => `function f() {\n${body('f', before)}\n${inner(60)}\n${body('h', 33)}\n}`;
    expect(saidOf(around(34))).toEqual([]);
    expect(saidOf(around(35))).toEqual(['gateway/some.ts:1: a function has at most 70 lines, and this one 71']);
    expect(saidOf(`function f() {\n${inner(69)}\n}`)).toEqual([expect.stringMatching(/^gateway\/some\.ts:2: /)]);
  });

  it('may be longer where they only dispatch', () => {
    const around = (one: string, before = '') =>
      `function f(x: number) {\n${before}  switch (x) {\n${lines(70, (i) => `    case ${i}: ${one}`)}\n  }\n}`;
    expect(saidOf(around('return g(x);'))).toEqual([]);
    expect(saidOf(around('g(x); break;'))).toEqual([]);
    expect(saidOf(around('{ const y = x; return g(y); }'))).toEqual([]);
    expect(saidOf(around('return g(x);', '  const y = x;\n'))).toEqual([]);
    expect(saidOf(around('if (x) return g(x);'))).toHaveLength(1);
    expect(saidOf(around('g(x); h(x); break;'))).toHaveLength(1);
    expect(saidOf(around('return g(x);', '  g(x);\n'))).toHaveLength(1);
  });
});

describe('spread literals', () => {
  it.each(['const a = { ...{ b, c }, d };', 'const a = [...[b, c], d];', 'f(...([b, c] as const));'])(
    'only pack: %s',
    (text) => {
      expect(saidOf(text)).toEqual([
        'gateway/some.ts:1: properties stand by themselves; a spread literal only packs them',
      ]);
    },
  );

  it.each(['const a = { ...b, c };', 'const a = { ...(b ? { c } : {}) };', 'const a = [...b, ...c.map(d)];'])(
    'are not: %s',
    (text) => expect(saidOf(text)).toEqual([]),
  );
});

describe('private members', () => {
  it.each([
    'class C { readonly #x = 1; }',
    'class C { private readonly _x = 1; }',
    'class C { #x() {} }',
    'class C { constructor(private readonly _x: number) {} }',
  ])('are marked by the word for it: %s', (text) => {
    expect(saidOf(text)).toEqual([expect.stringMatching(/a private member is marked by "private": [#_]x$/)]);
  });

  it.each([
    'class C { private readonly x = 1; constructor(private readonly y: number, _z: number) {} }',
    'const { a: _unused, ...rest } = b;',
  ])('are not: %s', (text) => expect(saidOf(text)).toEqual([]));

  it('may be hidden for good where that is said', () => {
    expect(saidOf('class C { readonly #text = 1; }', 'services/kernel/secret.ts')).toEqual([]);
  });
});

describe('names of types', () => {
  it.each(['interface Kept {}', 'type Told = 1;', 'class SeatTaken {}', 'interface Answered {}', 'type Ran = 1;'])(
    'are nouns: %s',
    (text) => expect(saidOf(text)).toEqual([expect.stringMatching(/a type is named by a noun/)]),
  );

  it.each(['interface KeptRow {}', 'type Feed = 1;', 'class RecordedEvent {}', 'const Kept = 1;', 'type Speed = 1;'])(
    'are not: %s',
    (text) => expect(saidOf(text)).toEqual([]),
  );

  it('are what was done where they are events', () => {
    expect(saidOf('type MatchSettled = 1;', 'services/arena/events.ts')).toEqual([]);
    expect(saidOf('type MatchSettled = 1;', 'services/arena/decider.ts')).toHaveLength(1);
  });
});

describe('files of a context', () => {
  const inContext = (text: string, file = 'decider.ts') =>
    said({ 'services/notes/events.ts': '', [`services/notes/${file}`]: text });

  it.each([
    ["import { readFileSync } from 'node:fs';", 'node:fs'],
    ["import { setTimeout } from 'node:timers/promises';", 'node:timers/promises'],
    ["import { Injectable } from '@nestjs/common';", '@nestjs/common'],
    ["import { MemoryEventStore } from '../adapters/store/memory.js';", '../adapters/store/memory.js'],
    ["export { Metrics } from '../runtime/metrics.js';", '../runtime/metrics.js'],
    ['const path = process.env.HOME;', 'process'],
    ['setInterval(() => {}, 1_000);', 'setInterval'],
    ["fetch('http://example.org');", 'fetch'],
  ])('are pure: %s', (text, reached) => {
    expect(inContext(text)).toEqual([
      `services/notes/decider.ts:1: a context is pure, and this reaches for ${reached}`,
    ]);
  });

  it('may compute, and be fed', () => {
    expect(inContext("import { createHash } from 'node:crypto';\nimport { seal } from '../kernel/index.js';")).toEqual(
      [],
    );
  });

  it('are not pure where they start what runs by itself, and in specs', () => {
    const text = "import { setTimeout } from 'node:timers/promises';";
    expect(inContext(text, 'part.ts')).toEqual([]);
    expect(inContext(text, 'notes.spec.ts')).toEqual([]);
    expect(said({ 'services/kernel/attempt.ts': text })).toEqual([]);
  });
});

describe('exports', () => {
  const dead = (files: Record<string, string>) => untidyCode(new Map(Object.entries(files)));
  const one = { 'gateway/one.ts': 'export const a = 1;\nexport function b() {}\n' };

  it('are imported by somebody', () => {
    expect(dead(one)).toEqual([
      'gateway/one.ts:1: a is exported, and nobody imports it',
      'gateway/one.ts:2: b is exported, and nobody imports it',
    ]);
    expect(dead({ ...one, 'ops/two.ts': "import { a, b as c } from '../gateway/one.js';" })).toEqual([]);
  });

  it.each([
    ['as a whole', "import * as all from './one.js';"],
    ['later', "const all = await import('./one.js');"],
    ['in passing on', "export * from './one.js';"],
  ])('are imported %s', (_how, text) => {
    expect(dead({ ...one, 'gateway/two.ts': text })).toEqual([]);
  });

  it.each([
    ['named', "import { a } from './one.js';"],
    ['taken later', "const { a } = await import('./one.js');"],
    ['named as a type', "type A = import('./one.js').a;"],
  ])('are alive where they are %s, and the others are not', (_how, text) => {
    expect(dead({ ...one, 'gateway/two.ts': text })).toEqual([
      'gateway/one.ts:2: b is exported, and nobody imports it',
    ]);
  });

  it('are dead when only a spec elsewhere imports them', () => {
    const text = 'import { a, b } from ';
    expect(dead({ ...one, 'gateway/one.spec.ts': `${text}'./one.js';` })).toEqual([]);
    expect(dead({ ...one, 'ops/two.contract.ts': `${text}'../gateway/one.js';` })).toEqual([]);
    expect(dead({ ...one, 'ops/two.spec.ts': `${text}'../gateway/one.js';` })).toEqual([
      'gateway/one.ts:1: a is exported, and only ops/two.spec.ts imports it',
      'gateway/one.ts:2: b is exported, and only ops/two.spec.ts imports it',
    ]);
    const forSpecs = { 'gateway/one.contract.ts': 'export const a = 1;' };
    expect(dead({ ...forSpecs, 'ops/two.spec.ts': "import { a } from '../gateway/one.contract.js';" })).toEqual([]);
  });

  it('may be types that other exports speak of, where others see it', () => {
    const options = 'export interface Options {}\n';
    const user = { 'gateway/two.ts': "import { a } from './one.js';" };
    expect(dead({ ...user, 'gateway/one.ts': `${options}export function a(options: Options) {}` })).toEqual([]);
    expect(dead({ ...user, 'gateway/one.ts': `${options}export function a() { const b: Options = {}; }` })).toEqual([
      'gateway/one.ts:1: Options is exported, and nobody imports it',
    ]);
    expect(dead({ ...user, 'gateway/one.ts': 'export const b = 1;\nexport const a = b;' })).toHaveLength(1);
  });

  it('may be for others than us', () => {
    expect(dead({ 'sdk/typescript/index.ts': 'export const a = 1;' })).toEqual([]);
    expect(dead({ 'services/notes/index.ts': "export { a } from './one.js';" })).toEqual([]);
  });
});

describe('passages', () => {
  const text = lines(13, (i) => `const a${i} = ${i};`);

  it('of more than twelve lines stand once', () => {
    expect(said({ 'gateway/one.ts': text, 'ops/two.ts': `f();\n${text}` })).toEqual([
      'ops/two.ts:2: lines 2-14 stand at gateway/one.ts:1-13 as well: 13 lines of code',
    ]);
    expect(said({ 'gateway/one.ts': text, 'ops/two.ts': text.replace('a12', 'b') })).toEqual([]);
    expect(said({ 'gateway/one.ts': `${text}\nf();\n${text}` })).toHaveLength(1);
  });

  it('are said once, from end to end', () => {
    const long = lines(40, (i) => `const a${i} = ${i};`);
    expect(said({ 'gateway/one.ts': long, 'ops/two.ts': long })).toEqual([
      'ops/two.ts:1: lines 1-40 stand at gateway/one.ts:1-40 as well: 40 lines of code',
    ]);
  });

  it('count by what is code', () => {
    const padding = '\n// What is said beside it.\n/**\n * Or before.\n */\n}\n';
    const padded = text.replaceAll(/;$/gm, `;${padding}`).replaceAll(/^}$/gm, '');
    expect(said({ 'gateway/one.ts': text, 'ops/two.ts': `import { b } from './b.js';\n${padded}` })).toHaveLength(1);
    const imports = lines(20, (i) => `import { a${i} } from './${i}.js';`);
    expect(said({ 'gateway/one.ts': imports, 'ops/two.ts': imports })).toEqual([]);
    const punctuation = `const a = [\n${lines(20, () => '  {\n  },')}\n];`;
    expect(said({ 'gateway/one.ts': punctuation, 'ops/two.ts': punctuation })).toEqual([]);
  });

  it('may stand again in tables', () => {
    expect(said({ 'projections/one/table.ts': text, 'projections/two/table.ts': text })).toEqual([]);
  });

  it('that go on by themselves are one passage', () => {
    expect(said({ 'gateway/one.ts': lines(25, () => 'f(1);') })).toEqual([]);
  });
});
