import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { argv, env, exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../services/runtime/package.js';

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
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && path !== 'descriptors.ts',
  );

/** The definitions as bytes, in files of the languages that need them so: for the SDK in Python, and for reflection. */
const DESCRIPTORS = [
  {
    path: 'sdk/python/agon/_descriptor.py',
    paths: ['agon/arena/v1', 'google/rpc'],
    text: (lines: readonly string[]) =>
      `# Made from proto/agon/arena/v1 and proto/google/rpc by npm run proto.\nDESCRIPTOR = (\n${lines.map((line) => `    "${line}"\n`).join('')})\n`,
  },
  {
    path: 'proto/gen/descriptors.ts',
    paths: ['agon', 'grpc/health'],
    text: (lines: readonly string[]) =>
      `// Made from proto/ by npm run proto.\nexport const DESCRIPTORS =\n${lines.map((line) => `  '${line}'`).join(' +\n')};\n`,
  },
];

function descriptors(): { files: Map<string, string>; problems: string[] } {
  const work = mkdtempSync(join(tmpdir(), 'agon-descriptors-'));
  const files = new Map<string, string>();
  try {
    for (const { path, paths, text } of DESCRIPTORS) {
      const file = join(work, 'set.binpb');
      const only = paths.flatMap((each) => ['--path', each]);
      const problems = buf('build', ...only, '--exclude-source-info', '--as-file-descriptor-set', '-o', file);
      if (problems.length > 0) return { files, problems };
      files.set(
        path,
        text(
          readFileSync(file)
            .toString('base64')
            .match(/.{1,100}/g) ?? [],
        ),
      );
    }
    return { files, problems: [] };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function generate(): string[] {
  const { files, problems } = descriptors();
  for (const [path, text] of files) writeFileSync(join(packageRoot, path), text);
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
    const { files, problems } = descriptors();
    const stale = [...files].filter(([path, text]) => read(join(packageRoot, path)) !== text).map(([path]) => path);
    if (problems.length > 0) return problems;
    if (stale.length > 0) return [`${stale.join(' and ')} are not what the definitions give. Run: npm run proto`];
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
