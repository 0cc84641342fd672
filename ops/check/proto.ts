import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { argv, env, exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../version.js';

const FOLDER = join(packageRoot, 'proto');
const BIN = join(packageRoot, 'node_modules', '.bin');

/** What buf has to say about the interface definitions; empty when all is well. Needs no network. */
function buf(...args: string[]): string[] {
  const {
    status,
    stdout: out,
    stderr,
    error,
  } = spawnSync(join(BIN, 'buf'), args, {
    cwd: FOLDER,
    encoding: 'utf8',
    // The plugin that writes TypeScript is found by its name.
    env: { ...env, PATH: `${BIN}${delimiter}${env.PATH ?? ''}` },
  });
  return status === 0 ? [] : [`${out}${stderr}`.trim() || `buf did not run: ${error?.message}`];
}

const filesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));

/** What the SDK for Python makes its messages from: the same definitions, as bytes in a file of Python. */
const DESCRIPTOR = join(packageRoot, 'sdk', 'python', 'agon', '_descriptor.py');

function descriptor(): { text: string; problems: string[] } {
  const work = mkdtempSync(join(tmpdir(), 'agon-descriptor-'));
  try {
    const file = join(work, 'arena.binpb');
    const flags = ['--path', 'agon/arena/v1', '--exclude-source-info', '--as-file-descriptor-set'];
    const problems = buf('build', ...flags, '-o', file);
    if (problems.length > 0) return { text: '', problems };
    const bytes =
      readFileSync(file)
        .toString('base64')
        .match(/.{1,100}/g) ?? [];
    const lines = bytes.map((line) => `    "${line}"\n`).join('');
    return { text: `# Made from proto/agon/arena/v1 by npm run proto.\nDESCRIPTOR = (\n${lines})\n`, problems };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function generate(): string[] {
  const { text, problems } = descriptor();
  if (problems.length === 0) writeFileSync(DESCRIPTOR, text);
  return [...problems, ...buf('generate')];
}

/** Lints the definitions, and compares the committed code with what they give today. */
export function protoFaults(): string[] {
  const lint = buf('lint');
  if (lint.length > 0) return lint;
  const work = mkdtempSync(join(tmpdir(), 'agon-proto-'));
  try {
    const failed = buf('generate', '--output', work);
    if (failed.length > 0) return failed;
    if (descriptor().text !== read(DESCRIPTOR)) return ['sdk/python/agon/_descriptor.py is stale. Run: npm run proto'];
    const [fresh, kept] = [join(work, 'gen'), join(FOLDER, 'gen')];
    return [...new Set([...filesOf(fresh), ...filesOf(kept)])]
      .filter((path) => read(join(fresh, path)) !== read(join(kept, path)))
      .map((path) => `proto/gen/${path} is not what the definitions give. Run: npm run proto`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

if (argv[1] === fileURLToPath(import.meta.url)) {
  const problems = argv.includes('--write') ? generate() : protoFaults();
  for (const problem of problems) stdout.write(`${problem}\n`);
  exit(problems.length > 0 ? 1 : 0);
}
