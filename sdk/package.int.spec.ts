import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execPath } from 'node:process';
import { afterAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../ops/e2e/agon.contract.js';
import { packageRoot } from '../services/runtime/package.js';
import { pythonWithSdk, sdkFolder, whyNoPython } from './python/python.contract.js';

const folder = temporaryFolder();
afterAll(folder.remove);

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Record<string, string>;
}

const npmFolder = join(packageRoot, 'sdk', 'typescript');
const manifestIn = (path: string) => JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as Manifest;

/** What a command says, once it has ended well. */
function told(cwd: string, file: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(file, args, { cwd, encoding: 'utf8' });
  expect({ status, stderr: status === 0 ? '' : `${stdout}${stderr}` }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

/** An agent for each game, by the package's types; the lines that no compiler may let through are marked. */
const AGENT = `
import { type Actions, Decision, type Observations, play, practise } from 'agon-sdk';
const where = { arena: '127.0.0.1:1', key: '', agent: 'ada.mine' };
const move = ({ history, legal }: Observations['chess']): Actions['chess'] => legal[history.length] ?? '';
export const right = () => [
  play({ ...where, games: ['chess'], act: move }),
  play({ ...where, games: ['leduc-holdem'], act: ({ board }) => new Decision('call', { reasoning: board.card }) }),
  play({ ...where, games: ['chess', 'prisoners'], act: (seen) => (seen.game === 'chess' ? move(seen) : ['C']) }),
];
export const notRight = () => [
  play({ ...where, games: ['tic-tac-toe'], act: () => 'centre' }), // wrong
  play({ ...where, games: ['connect-four'], act: ({ history }) => history.length }), // wrong
  play({ ...where, games: ['go'], act: () => 0 }), // wrong
];
const { reason } = await practise({ game: 'tic-tac-toe', act: ({ legal }) => legal[0] ?? 0 });
console.log(reason);
`;

describe('the package for npm', () => {
  const installed = join(folder.path, 'node_modules', 'agon-sdk');

  it('is packed with all that its agents need, and no more', () => {
    const [packed] = JSON.parse(told(npmFolder, 'npm', 'pack', '--json', '--pack-destination', folder.path)) as [
      { filename: string; files: { path: string }[] },
    ];
    rmSync(join(npmFolder, 'dist'), { recursive: true });
    const files = packed.files.map(({ path }) => path);
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']));
    expect(files).toContain('dist/sdk/typescript/index.d.ts');
    expect(files.filter((path) => /spec|actor|contract|\.map$|(?<!\.d)\.ts$/.test(path))).toEqual([]);
    // What travels is the SDK, the messages and the rules of the games: nothing of the arena's own.
    const others = files.filter((path) => !/^(LICENSE|README\.md|package\.json|dist\/(sdk|proto\/gen)\/)/.test(path));
    expect(others.filter((path) => !path.startsWith('dist/sandbox-runner/games/')).sort()).toEqual([
      'dist/services/kernel/errors.d.ts',
      'dist/services/kernel/errors.js',
    ]);
    mkdirSync(installed, { recursive: true });
    told(installed, 'tar', '-xzf', join(folder.path, packed.filename), '--strip-components=1');
  });

  it('compiles and runs where nothing is but what it asks for', () => {
    // No registry is asked: the versions that it names are those that the arena itself is built with.
    const { dependencies } = manifestIn(installed);
    const ours = manifestIn(packageRoot).dependencies;
    expect(dependencies).toEqual(Object.fromEntries(Object.keys(dependencies).map((name) => [name, ours[name]])));
    for (const name of [...Object.keys(dependencies), '@types/node']) {
      const link = join(folder.path, 'node_modules', name);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(join(packageRoot, 'node_modules', name), link);
    }
    writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder.path, 'agent.ts'), AGENT);
    const tsc = join(packageRoot, 'node_modules', 'typescript', 'bin', 'tsc');
    const flags = ['--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node', '--skipLibCheck'];
    const { stdout } = spawnSync(execPath, [tsc, ...flags, 'agent.ts'], { cwd: folder.path, encoding: 'utf8' });
    const wrong = AGENT.split('\n').flatMap((line, i) => (line.endsWith('// wrong') ? [`agent.ts(${i + 1}`] : []));
    expect([...new Set(stdout.match(/^\S+?\.ts\(\d+/gm))], stdout).toEqual(wrong);
    expect(['line', 'full_board']).toContain(told(folder.path, execPath, 'agent.js').trim());
  });
});

describe.skipIf(whyNoPython !== undefined)(`the package for PyPI${whyNoPython ? ` (${whyNoPython})` : ''}`, () => {
  it('is built as a wheel and as sources, and installs', () => {
    // A copy, because building leaves folders behind.
    const [source, out, site] = ['source', 'out', 'site'].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    cpSync(sdkFolder, source, { recursive: true, filter: (path) => !path.includes('__pycache__') });
    const build =
      'import sys; from setuptools import build_meta as b; o = sys.argv[1]; b.build_wheel(o); b.build_sdist(o)';
    told(source, pythonWithSdk, '-c', build, out);
    const { version } = manifestIn(npmFolder);
    const wheel = `agon_sdk-${version}-py3-none-any.whl`;
    expect(readdirSync(out).sort()).toEqual([wheel, `agon_sdk-${version}.tar.gz`]);
    told(out, pythonWithSdk, '-m', 'pip', 'install', '-q', '--no-index', '--no-deps', '--target', site, wheel);
    const sources = readdirSync(join(sdkFolder, 'agon')).filter((name) => /^py\.typed$|\.py$/.test(name));
    expect(sources.filter((name) => !existsSync(join(site, 'agon', name)))).toEqual([]);
    const metadata = readFileSync(join(site, `agon_sdk-${version}.dist-info`, 'METADATA'), 'utf8');
    for (const line of [
      'License-Expression: Apache-2.0',
      'License-File: LICENSE',
      'Requires-Dist: grpcio',
      '# agon-sdk',
    ])
      expect(metadata).toContain(line);
    const agent = `import sys; sys.path.insert(0, ${JSON.stringify(site)}); import agon; print(agon.__file__, agon.practise(lambda seen, turn: seen["legal"][0], game="leduc-holdem").reason)`;
    expect(told(folder.path, pythonWithSdk, '-c', agent).trim()).toBe(`${join(site, 'agon', '__init__.py')} chips`);
  });
});

it('both packages carry the licence of the arena', () => {
  const licence = readFileSync(join(packageRoot, 'LICENSE'), 'utf8');
  for (const each of [npmFolder, sdkFolder]) expect(readFileSync(join(each, 'LICENSE'), 'utf8')).toBe(licence);
});
