import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../services/runtime/package.js';
import { changed, changesOf, filesNamed, guides, isRun, pageOf } from './guides.js';

const fence = '```';
const page = (...lines: string[]) => pageOf('docs/some.md', lines.join('\n'));
const block = (...lines: string[]) => {
  const [first] = page(...lines).blocks;
  if (!first) throw new Error('There is no block.');
  return first;
};

describe('the blocks of a page', () => {
  it('come in order, with language, line and text', () => {
    const { blocks } = page('# Some', `${fence}sh`, 'a', '', 'b', fence, 'and', fence, 'output', fence);
    expect(blocks).toEqual([
      { page: 'docs/some.md', line: 3, language: 'sh', text: 'a\n\nb\n', marks: {} },
      { page: 'docs/some.md', line: 9, language: '', text: 'output\n', marks: {} },
    ]);
  });

  it('in a list are read without its indentation', () => {
    expect(block('1. first', '', `   ${fence}ts`, '   a {', '', '     b', `   ${fence}`).text).toBe('a {\n\n  b\n');
  });

  it('have the marks of the comments directly above', () => {
    const text = ['<!-- needs: python -->', '', '<!-- exits: 1 -->', '<!-- network -->', `${fence}sh`, 'a', fence];
    expect(block(...text).marks).toEqual({ exits: '1', network: '' });
  });

  it('may have something running beside them', () => {
    expect(page('# Some', '<!-- besides: npx agon start -->').besides).toBe('npx agon start');
  });

  it('end, and have no marks that are unknown', () => {
    expect(() => page(`${fence}sh`, 'a')).toThrow('docs/some.md:1: this block has no end');
    expect(() => page('<!-- noted -->', `${fence}sh`, fence)).toThrow('docs/some.md:1: there is no mark "noted"');
  });
});

describe('a block', () => {
  it('is run, shown, or left out with a reason', () => {
    expect(isRun(block(`${fence}sh`, fence))).toBe(true);
    expect(isRun(block(fence, fence))).toBe(false);
    expect(isRun(block('<!-- file: a.js -->', `${fence}js`, fence))).toBe(true);
    expect(isRun(block('<!-- not run: takes an hour -->', `${fence}sh`, fence))).toBe(false);
  });

  it('is nothing else', () => {
    expect(() => isRun(block('<!-- not run -->', `${fence}sh`, fence))).toThrow('wants its reason');
    expect(() => isRun(block(`${fence}cobol`, fence))).toThrow('docs/some.md:2: nobody knows how to run cobol');
  });
});

describe('a change', () => {
  const source = 'one\ntwo\nthree\nfour\n';
  const asked = changesOf(
    block(`${fence}diff`, '+++ a.ts', ' one', '+one and a half', '@@', '-four', '+++ b.ts', '+x', fence),
  );

  it('names its files and the lines that it belongs to', () => {
    expect([...asked.keys()]).toEqual(['a.ts', 'b.ts']);
    expect(asked.get('a.ts')?.reduce(changed, source)).toBe('one\none and a half\ntwo\nthree\n');
  });

  it('is refused where its lines are not, or not once', () => {
    expect(() => changed(source, { before: 'wo\n', after: '' })).toThrow('nowhere');
    expect(() => changed('a\na\n', { before: 'a\n', after: '' })).toThrow('more than once');
    expect(() => changesOf(block(`${fence}diff`, '+one', fence))).toThrow('docs/some.md:2: a change begins with');
  });
});

describe.each(guides())('$path', ({ path, blocks }) => {
  it('says of each block what becomes of it', () => {
    expect(() => blocks.map(isRun)).not.toThrow();
  });

  it('names files that are there', () => {
    const made = blocks.map(({ marks }) => marks.file);
    const named = filesNamed(path, readFileSync(join(packageRoot, path), 'utf8'));
    expect(named.filter((file) => !made.includes(file) && !existsSync(join(packageRoot, file)))).toEqual([]);
  });
});
