import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { bundleCode } from '../../sandbox-runner/index.js';
import { type ArchiveEntry, tarOf, zipOf } from './archives.js';
import type { Attack } from './attack.js';
import { attemptOf, python, writesOutside } from './common.js';
import type { Facts } from './world.js';

/** As many steps up as it takes to reach the root from anywhere. */
const up = '../'.repeat(20);
const below = (path: string): string => up + path.slice(1);

/** An agent that finds what is in a file beside it, and one that succeeds where that has 20 million bytes. */
const scripts = {
  javascript: {
    // Whatever the folders above it say of their modules.
    entry: 'main.cjs',
    reader: `module.exports = { act: () => ({ worked: false, found: require('node:fs').readFileSync('found', 'utf8') }) };`,
    weigher: `module.exports = { act: () => ({ worked: require('node:fs').statSync('big').size === 2e7 }) };`,
  },
  python: {
    entry: 'main.py',
    reader: python('return open("found").read()'),
    weigher: python('return os.stat("big").st_size == 20_000_000'),
  },
};

/** Whatever such an archive would do, it is refused before there is an agent at all. */
function archives({ entry, reader, weigher }: (typeof scripts)['javascript' | 'python']): Attack[] {
  const refused = (packs: Readonly<Record<string, (facts: Facts) => Buffer>>, rest: Partial<Attack> = {}) =>
    Object.entries(packs).map(
      ([name, pack]): Attack => ({
        name: `a bundle: ${name}`,
        source: '',
        archive: { entry, pack },
        stopped: ['refused'],
        ...rest,
      }),
    );
  const idle: ArchiveEntry = { name: entry, content: reader };
  const heavy: ArchiveEntry = { name: entry, content: weigher };
  const big: ArchiveEntry = { name: 'big', content: Buffer.alloc(2e7) };
  const taken = (name: string): ArchiveEntry => ({ name, content: 'x' });
  const out = (linkTo: string): ArchiveEntry => ({ name: 'out', type: '2', linkTo });
  const found = (type: string, linkTo: string): ArchiveEntry => ({ name: 'found', type, linkTo });
  return [
    ...refused(
      {
        'zip-slip': ({ outsideFile }) => zipOf([idle, taken(below(outsideFile))]),
        'zip-slip by an absolute name': ({ outsideFile }) => zipOf([idle, taken(outsideFile)]),
        'tar-slip': ({ outsideFile }) => tarOf([idle, { name: below(outsideFile) }]),
        'writing through a symlink': ({ outsideFile }) => tarOf([idle, out(dirname(outsideFile)), taken('out/taken')]),
      },
      writesOutside,
    ),
    ...refused({
      'reading through a symlink': ({ secretFile }) => tarOf([idle, found('2', secretFile)]),
      'reading through a symlink of a zip': ({ secretFile }) =>
        zipOf([idle, { name: 'found', mode: 0o120777, content: secretFile }]),
      'reading through a hard link': ({ secretFile }) => tarOf([idle, found('1', secretFile)]),
      'a bomb': () => zipOf([heavy, big]),
      'a bomb that says it is small': () => zipOf([heavy, { ...big, bytes: 9 }]),
    }),
  ];
}

const bundled = (
  name: string,
  files: (facts: Facts) => Record<string, string>,
  rest: Partial<Attack> = {},
): Attack => ({
  name: `a bundle: ${name}`,
  source: (facts) =>
    bundleCode(new Map(Object.entries(files(facts)).map(([path, text]) => [path, Buffer.from(text)]))).source,
  ...rest,
});

const hostModule = ({ moduleFolder }: Facts): string => join(moduleFolder, 'host_secret.mjs');
const placesOfModules: Readonly<Record<string, (facts: Facts) => string>> = {
  'import of a file of the host': hostModule,
  'import of a file of the host, with dots': (facts) => below(hostModule(facts)),
  'import of a file of the host, with dots after a folder': (facts) => `./lib/${below(hostModule(facts))}`,
  'import of a file of the host, by URL': (facts) => `file://${hostModule(facts)}`,
};
const later = (from: string) => () => ({
  'main.js': `${attemptOf(`return (await import(${from})).default;`)}\nexport { act };`,
});

/** Files of the host that could be code, by every way of naming them that Node's loader follows. */
const imports: readonly Attack[] = [
  ...Object.entries(placesOfModules).map(([name, from]) => {
    const main = (facts: Facts) =>
      `import found from '${from(facts)}'; export const act = () => ({ worked: false, found });`;
    return bundled(name, (facts) => ({ 'main.js': main(facts) }), { stopped: ['crash', 'syntax_error'] });
  }),
  bundled('import() of a file of the host', later('o.moduleFolder + "/host_secret.mjs"')),
  bundled('import() of a file of the host, with dots', later(`"${up}" + o.moduleFolder + "/host_secret.mjs"`)),
  bundled('import() of code in a URL', later('"data:text/javascript,export default " + JSON.stringify(o.mark)'), {
    worked: ({ reply }, world) => (reply as { found?: unknown } | undefined)?.found === world.facts.mark,
  }),
];

const inNode = imports
  .filter(({ name }) => !name.includes('code in a URL'))
  .concat(
    ...['require', 'require("node:module").createRequire("/x.js")'].map((loader) =>
      bundled(`${loader} of a file of the host`, () => ({
        'agent.json': '{"entry":"main.cjs","runtime":"node"}',
        'main.cjs': `${attemptOf(`return ${loader}(o.moduleFolder + '/host_secret.cjs');`)}\nmodule.exports = { act };`,
      })),
    ),
  );

const inPython: readonly Attack[] = (
  [
    ['the path of modules', 'sys.path.insert(0, o["moduleFolder"])'],
    ['the path of modules, with dots', `sys.path.insert(0, "${up}" + o["moduleFolder"])`],
    ['a symlink beside its modules', 'os.symlink(o["moduleFolder"], "linked")\nsys.path.insert(0, "linked")'],
    ['the path of a package', 'import lib\nlib.__path__.append(o["moduleFolder"])\nsys.path = lib.__path__'],
  ] as const
).map(([name, body]) =>
  bundled(`import by ${name}`, () => ({
    'main.py': python(`${body}\nimport host_secret\nreturn host_secret.SECRET`),
    'lib/__init__.py': '',
  })),
);

export const bundleAttacks = {
  wasm: [...archives(scripts.javascript), ...imports],
  node: [...archives(scripts.javascript), ...inNode],
  python: [...archives(scripts.python), ...inPython],
} as const;

/** How a careless host unpacks: it believes every name, every size and every link. For the controls alone. */
export function unpackCarelessly(archive: Buffer, folder: string): void {
  const put = (name: string, type: string, content: Buffer, linkTo: string): void => {
    const path = resolve(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    if (type === '2') symlinkSync(linkTo, path);
    else if (type === '1') linkSync(linkTo, path);
    else writeFileSync(path, content);
  };
  if (archive.toString('latin1', 0, 2) !== 'PK') {
    const text = (at: number, length: number) => archive.toString('latin1', at, at + length).replace(/\0.*$/s, '');
    for (let at = 0; archive[at]; ) {
      const bytes = Number.parseInt(text(at + 124, 12), 8);
      const start = at + 512;
      put(text(at, 100), text(at + 156, 1), archive.subarray(start, start + bytes), text(at + 157, 100));
      at = start + Math.ceil(bytes / 512) * 512;
    }
    return;
  }
  for (let at = archive.readUInt32LE(archive.length - 6); archive.readUInt32LE(at) === 0x02014b50; ) {
    const nameBytes = archive.readUInt16LE(at + 28);
    const name = archive.toString('utf8', at + 46, at + 46 + nameBytes);
    const start = archive.readUInt32LE(at + 42) + 30 + nameBytes;
    const content = inflateRawSync(archive.subarray(start, start + archive.readUInt32LE(at + 20)));
    const isLink = archive.readUInt16LE(at + 40) >> 12 === 0o12;
    put(name, isLink ? '2' : '0', content, content.toString('utf8', 0, 200));
    at += 46 + nameBytes;
  }
}
