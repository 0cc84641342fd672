import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { type ArchiveEntry, longName, tarOf, zipOf } from '../../ops/attack/archives.js';
import { AgonError } from '../../services/kernel/index.js';
import { codeDigest } from '../protocol.js';
import { archivedAgent, folderAgent } from './archive.js';
import { bootCode, bundleCode, bundleLimits, bundleOf } from './bundle.js';

const main: ArchiveEntry = { name: 'main.js', content: 'export const act = () => 1;' };
const codeOf = (refuse: () => unknown): string => {
  try {
    refuse();
  } catch (error) {
    if (error instanceof AgonError) return error.code;
    throw error;
  }
  return 'accepted';
};

describe('an agent of several files', () => {
  const files: ArchiveEntry[] = [
    { name: 'main.py', content: 'from lib.moves import best\n\ndef act(o):\n    return best(o)\n' },
    { name: 'lib/moves.py', content: 'def best(o):\n    return o["legal"][0]\n' },
    { name: 'weights.bin', content: Buffer.from([0, 255, 254, 10, 13]) },
    { name: 'words.txt', content: '\ufeffé 😀\u0000' },
  ];
  const folder = mkdtempSync(join(tmpdir(), 'agon-bundle-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, content: string | Buffer = '') => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  };

  it('is the same code from a folder and from every archive of it, in any order', () => {
    for (const { name, content } of files) write(name, content);
    for (const litter of ['.git/config', '__pycache__/main.cpython-312.pyc', 'lib/.hidden']) write(litter, 'x');
    const wanted = folderAgent(folder);
    const wrapped = files.map((file) => ({ ...file, name: `mine/${file.name}` }));
    const shuffled = files.toReversed();
    for (const archive of [
      tarOf(files),
      gzipSync(tarOf(shuffled)),
      tarOf([{ name: './', type: '5' }, ...files.map((file) => ({ ...file, name: `./${file.name}` }))]),
      tarOf([{ name: 'mine/', type: '5' }, ...wrapped]),
      tarOf(files.flatMap((file) => [longName(file.name), { ...file, name: 'cut' }])),
      tarOf(
        files.flatMap((file) => [
          { name: 'long', type: 'L', content: `${file.name}\0` },
          { ...file, name: 'cut' },
        ]),
      ),
      zipOf(shuffled),
      zipOf(files.map((file) => ({ ...file, method: 0 }))),
      zipOf([{ name: 'mine/lib/', mode: 0o040755 }, ...wrapped, { name: '__MACOSX/._main.py', content: 'x' }]),
    ]) {
      expect(archivedAgent(archive)).toEqual(wanted);
    }
    expect(wanted.runtime).toBe('python');
    expect(codeDigest(wanted.source)).toBe('1f3aa4006a54157f29c54ec92b6c49bd99b0ae9cdef1f6b77730a93c788698e0');
    const bundle = bundleOf(wanted.source)!;
    expect(bundle.entry).toBe('main.py');
    for (const { name, content } of files) expect(bundle.files.get(name)).toEqual(Buffer.from(content!));
  });

  it.each([
    ['main.py', {}, 'python', 'main.py'],
    ['main.js', {}, 'javascript', 'main.js'],
    ['index.js', {}, 'javascript', 'index.js'],
    ['main.js', { runtime: 'node' }, 'node', 'main.js'],
    ['src/bot.py', { entry: 'src/bot.py' }, 'python', 'src/bot.py'],
    ['bot.cjs', { entry: 'bot.cjs', runtime: 'node' }, 'node', 'bot.cjs'],
  ])('with %s and the manifest %j runs in %s from %s', (name, manifest, runtime, entry) => {
    const code = archivedAgent(
      tarOf([
        { name, content: 'x' },
        { name: 'a', content: 'x' },
        { name: 'agent.json', content: JSON.stringify(manifest) },
      ]),
    );
    expect(code.runtime).toBe(runtime);
    expect(bundleOf(code.source)?.entry).toBe(entry);
    expect([...bundleOf(code.source)!.files.keys()].sort()).toEqual(['a', name].sort());
  });

  it('has no link in its folder', () => {
    const linked = join(folder, 'linked');
    mkdirSync(linked);
    symlinkSync('/etc/hostname', join(linked, 'main.py'));
    expect(codeOf(() => folderAgent(linked))).toBe('AGENTS.BUNDLE_LINK');
    rmSync(linked, { recursive: true });
    expect(codeOf(() => folderAgent(join(folder, 'none')))).toBe('FILE.UNREADABLE');
  });
});

describe('an archive is refused as a whole', () => {
  const tar = (...entries: ArchiveEntry[]) => tarOf([main, ...entries]);
  const zip = (...entries: ArchiveEntry[]) => zipOf([main, ...entries]);
  const both = (code: string, what: string, ...entries: ArchiveEntry[]): [string, string, Buffer][] => [
    [code, `${what}, in a tar`, tar(...entries)],
    [code, `${what}, in a zip`, zip(...entries)],
  ];
  const large = Buffer.alloc(bundleLimits.contentBytes + 1);
  const half = large.subarray(bundleLimits.contentBytes / 2 - 1);
  const spoilt = (archive: Buffer, at: number, byte = 0xff) => {
    const copy = Buffer.from(archive);
    copy[at < 0 ? copy.length + at : at] = byte;
    return copy;
  };
  const base256 = tarOf([{ ...main, content: '' }]);
  base256[124] = 0x80;
  base256.write((Number.parseInt(base256.toString('latin1', 148, 154), 8) + 0x50).toString(8).padStart(6, '0'), 148);
  const zip64 = Buffer.concat([zipOf([main]).subarray(0, -22), Buffer.from('504b0607', 'hex'), Buffer.alloc(16)]);

  it.each([
    ...both('UNSAFE_NAME', 'leads up', { name: '../x' }),
    ...both('UNSAFE_NAME', 'leads up from inside', { name: 'a/../../x' }),
    ...both('UNSAFE_NAME', 'leads up after a dot', { name: './../x' }),
    ...both('UNSAFE_NAME', 'is absolute', { name: '/etc/cron.d/x' }),
    ...both('UNSAFE_NAME', 'has a drive', { name: 'C:x' }),
    ...both('UNSAFE_NAME', 'has a backslash', { name: '..\\x' }),
    ...both('UNSAFE_NAME', 'has a control character', { name: 'a\nb' }),
    ...both('UNSAFE_NAME', 'has a letter of another script', { name: 'аct.js' }),
    ...both('UNSAFE_NAME', 'has an empty part', { name: 'a//b' }),
    ...both('UNSAFE_NAME', 'would be a prototype', { name: '__proto__' }),
    ...both('UNSAFE_NAME', 'hides what leads up among litter', { name: '.git/../../x' }),
    ['UNSAFE_NAME', 'a folder that leads up', tar({ name: '../', type: '5' })],
    ['UNSAFE_NAME', 'a NUL in a long name', tar(longName('x\0/../y'), { name: 'cut' })],
    ['UNSAFE_NAME', 'a NUL in a name', tar({ name: 'x.js\0.py' })],
    ['UNSAFE_NAME', 'a NUL in a name, in a zip', zip({ name: 'x.js\0.py' })],
    ['UNSAFE_NAME', 'a long name that leads up', tar(longName('../../x'), { name: 'innocent' })],
    [
      'UNSAFE_NAME',
      "a long name of GNU's that leads up",
      tar({ name: 'l', type: 'L', content: '../x\0' }, { name: 'x' }),
    ],
    ...both('NAME_TWICE', 'the same name twice', { name: 'a' }, { name: 'a' }),
    ...both('NAME_TWICE', 'the same name after a dot', { name: 'a' }, { name: './a' }),
    ...both('NAME_TWICE', 'names that differ in case', { name: 'a/B' }, { name: 'A/c' }),
    ...both('NAME_TWICE', 'a file that is a folder too', { name: 'a' }, { name: 'a/b' }),
    ['LINK', 'a symlink', tar({ name: 'x', type: '2', linkTo: '/etc/passwd' })],
    ['LINK', 'a hard link', tar({ name: 'x', type: '1', linkTo: 'main.js' })],
    ['LINK', 'a long link', tar({ name: 'x', type: 'K', content: '/etc/passwd' })],
    ['LINK', 'a symlink among litter', tar({ name: '.x', type: '2', linkTo: '/' })],
    ['LINK', 'a symlink, in a zip', zip({ name: 'x', mode: 0o120777, content: '/etc/passwd' })],
    ['SPECIAL_FILE', 'a device', tar({ name: 'x', type: '3' })],
    ['SPECIAL_FILE', 'a block device', tar({ name: 'x', type: '4' })],
    ['SPECIAL_FILE', 'a fifo', tar({ name: 'x', type: '6' })],
    ['SPECIAL_FILE', 'a fifo, in a zip', zip({ name: 'x', mode: 0o010644 })],
    ['NAME_TOO_LONG', 'a long name', tar(longName('x'.repeat(201)), { name: 'cut' })],
    ['NAME_TOO_LONG', 'a long name, in a zip', zip({ name: 'x'.repeat(201) })],
    ...both('TOO_MANY_FILES', 'many files', ...Array.from({ length: 256 }, (_, i) => ({ name: `f${i}` }))),
    ...both('TOO_MANY_FILES', 'litter without end', ...Array.from({ length: 4_096 }, (_, i) => ({ name: `.f${i}` }))),
    ...both('TOO_LARGE', 'a large file', { name: 'x', content: large }),
    ...both('TOO_LARGE', 'two that are large together', { name: 'x', content: half }, { name: 'y', content: half }),
    ['TOO_LARGE', 'quotes that grow when they are written', zip({ name: 'x', content: '"'.repeat(6e5) })],
    ['TOO_LARGE', 'a bomb of gzip', gzipSync(tar({ name: '.x', content: Buffer.alloc(2e8) }))],
    ['TOO_LARGE', 'an archive that is large itself', Buffer.alloc(bundleLimits.archiveBytes + 1)],
    ['CORRUPT', 'a bomb that says it is small', zip({ name: 'x', content: Buffer.alloc(2e8), bytes: 9 })],
    ['CORRUPT', 'a file that says it is larger', zip({ name: 'x', content: 'abc', bytes: 9 })],
    ['CORRUPT', 'a wrong checksum', zip({ name: 'x', content: 'abc', crc: 1 })],
    ['CORRUPT', 'two names for one entry', zip({ name: 'x', localName: '../x' })],
    ['CORRUPT', 'something in front of the zip', Buffer.concat([Buffer.from('PK'), zip()])],
    ['CORRUPT', 'something behind the zip', Buffer.concat([zip(), Buffer.from('x')])],
    ['CORRUPT', 'a zip that ends in the middle', zip().subarray(0, -9)],
    ['CORRUPT', 'a zip without its contents', zip().subarray(40)],
    ['CORRUPT', 'a tar without an end', tarOf([main], Buffer.alloc(0))],
    ['CORRUPT', 'a tar that ends in the middle', tar({ name: 'x', content: 'x', bytes: 9e6 })],
    ['CORRUPT', 'a damaged tar', spoilt(tar(), 3)],
    ['CORRUPT', 'a size that is no number', tarOf([{ ...main, bytes: Number.NaN }])],
    ['CORRUPT', 'a malformed long name', tar({ name: 'l', type: 'x', content: '99 path=x\n' }, { name: 'x' })],
    ['CORRUPT', 'a damaged gzip', spoilt(gzipSync(tar()), 20)],
    ['CORRUPT', 'a gzip that ends in the middle', gzipSync(tar()).subarray(0, -9)],
    ['CORRUPT', 'text', Buffer.from('export const act = () => 1;'.repeat(99))],
    ['CORRUPT', 'nothing', Buffer.alloc(0)],
    ['ENCRYPTED', 'an encrypted entry', zip({ name: 'x', flags: 1 })],
    ['UNSUPPORTED', 'another compression', zip({ name: 'x', method: 14 })],
    ['UNSUPPORTED', 'zip64', Buffer.concat([zip64, zipOf([main]).subarray(-22)])],
    ['UNSUPPORTED', 'a sparse file', tar({ name: 'x', type: 'S' })],
    ['UNSUPPORTED', 'sizes in base 256', base256],
    ['UNSUPPORTED', 'a size that is somewhere else', tar(longName('9', 'size'), { name: 'x' })],
    ['UNSUPPORTED', 'one name for all', tar({ ...longName('main.py'), type: 'g' }, { name: 'x' })],
    ['NO_ENTRY', 'no entry', tarOf([{ name: 'lib.js' }])],
    ['NO_ENTRY', 'two entries', tar({ name: 'main.py' })],
    ['NO_ENTRY', 'an entry that is not there', tar({ name: 'agent.json', content: '{"entry":"bot.js"}' })],
    ['NO_ENTRY', 'no file at all', tarOf([])],
    ['NO_ENTRY', 'no file at all, in a zip', zipOf([])],
    ['BAD_MANIFEST', 'a manifest that is no JSON', tar({ name: 'agent.json', content: '{' })],
    ['BAD_MANIFEST', 'an unknown runtime', tar({ name: 'agent.json', content: '{"runtime":"cobol"}' })],
    ['BAD_MANIFEST', 'a runtime for another language', tar({ name: 'agent.json', content: '{"runtime":"python"}' })],
  ])('%s: %s', (code, _what, archive) => {
    expect(codeOf(() => archivedAgent(archive))).toBe(`AGENTS.BUNDLE_${code}`);
  });
});

describe('properties', () => {
  const name = fc.stringMatching(/^[a-z0-9_]{1,8}(\/[a-z0-9_]{1,8}){0,3}$/);
  const content = fc.oneof(
    fc.string().map(Buffer.from),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  );
  const several = fc.dictionary(name, content, { maxKeys: 20 }).filter((files) => {
    const names = Object.keys(files);
    return !names.some((one) => names.some((other) => other.startsWith(`${one}/`)));
  });

  it('what is packed comes out again, from every archive, and hashes the same', () => {
    fc.assert(
      fc.property(several, fc.boolean(), (files, stored) => {
        const packed = Object.entries({ ...files, 'main.py': Buffer.from('x') }).map(([path, data]) => ({
          name: path,
          content: data,
          ...(stored ? { method: 0 } : {}),
        }));
        const wanted = bundleCode(new Map(packed.map((file) => [file.name, file.content])));
        const back = bundleOf(wanted.source)!.files;
        expect([...back].sort()).toEqual(packed.map((file) => [file.name, file.content]).sort());
        for (const archive of [tarOf(packed), gzipSync(tarOf(packed)), zipOf(packed.toReversed())]) {
          expect(archivedAgent(archive).source).toBe(wanted.source);
        }
      }),
    );
  });

  it('no damage gets an archive past the reader, but what changes nothing', () => {
    const files = [main, { name: 'lib/a.js', content: 'export const a = 1;'.repeat(9) }];
    for (const archive of [tarOf(files), zipOf(files), gzipSync(tarOf(files))]) {
      const { source } = archivedAgent(archive);
      fc.assert(
        fc.property(fc.nat(archive.length - 1), fc.integer({ min: 1, max: 255 }), fc.boolean(), (at, flip, cut) => {
          const damaged = cut ? archive.subarray(0, at) : Buffer.from(archive);
          if (!cut) damaged[at] = (damaged[at] ?? 0) ^ flip;
          const code = codeOf(() => {
            const read = archivedAgent(damaged);
            // A tar has no checksum over contents: what it says then is what it holds, and safe like any other.
            if (read.source !== source) bundleOf(read.source);
          });
          expect(code).toMatch(/^(accepted|AGENTS\.BUNDLE_[A-Z_]+)$/);
        }),
      );
    }
  });

  it('no name that leads anywhere else ever passes', () => {
    const part = fc.constantFrom('..', '.', '', 'a', '/', '\\', 'C:', '\0', 'main.js', '~', '%2e%2e');
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
        const path = parts.join('/');
        for (const archive of [tarOf([main, longName(path), { name: 'x' }]), zipOf([main, { name: path }])]) {
          let files: Iterable<string> = [];
          codeOf(() => {
            files = bundleOf(archivedAgent(archive).source)!.files.keys();
          });
          for (const file of files) expect(file).toMatch(/^(?!.*(^|\/)\.\.?(\/|$))[\w.@+ -]+(\/[\w.@+ -]+)*$/);
        }
      }),
    );
  });
});

describe('code that was not packed here', () => {
  const good = bundleCode(
    new Map([
      ['main.js', Buffer.from('x')],
      ['b.bin', Buffer.from([255])],
    ]),
  ).source;
  const json = (value: unknown) => `agon bundle 1\n${JSON.stringify(value)}`;

  it('is a bundle to the letter, or a plain file', () => {
    expect(good).toBe('agon bundle 1\n{"entry":"main.js","files":{"b.bin":{"base64":"/w=="},"main.js":"x"}}');
    expect(bootCode(good)).toEqual({
      bundle: { entry: 'main.js', files: { 'b.bin': { base64: '/w==' }, 'main.js': 'x' } },
    });
    for (const plain of ['', 'agon bundle 2\n{}', ` ${good}`, '{"entry":"main.js"}']) {
      expect(bootCode(plain)).toEqual({ source: plain });
    }
  });

  it.each([
    ['CORRUPT', 'agon bundle 1\n'],
    ['CORRUPT', `${good} `],
    ['CORRUPT', good.replace('/w==', '/w')],
    ['CORRUPT', json({ files: { 'main.js': 'x' }, entry: 'main.js' })],
    ['CORRUPT', json({ entry: 'main.js', files: { 'main.js': { base64: 'eA==' } } })],
    ['CORRUPT', json({ entry: 'main.js', files: { 'main.js': 'x' }, more: 1 })],
    ['CORRUPT', json({ entry: 'main.js', files: { 'main.js': 1 } })],
    ['NO_ENTRY', json({ entry: 'toString', files: { 'main.js': 'x' } })],
    ['UNSAFE_NAME', json({ entry: '../main.js', files: { '../main.js': 'x' } })],
    ['UNSAFE_NAME', json({ entry: '/tmp/x.js', files: { '/tmp/x.js': 'x' } })],
    ['NAME_TWICE', json({ entry: 'a', files: { A: 'x', a: 'x' } })],
    ['TOO_MANY_FILES', json({ entry: 'a', files: Object.fromEntries([...Array(300)].map((_, i) => [`a${i}`, ''])) })],
  ])('is refused as %s otherwise: %s', (code, source) => {
    expect(codeOf(() => bundleOf(source))).toBe(`AGENTS.BUNDLE_${code}`);
  });

  it('may hold no half of a character', () => {
    expect(codeOf(() => bundleOf('agon bundle 1\n{"entry":"a","files":{"a":"\\ud800"}}'))).not.toBe('accepted');
  });
});
