import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { env, exit, stdout } from 'node:process';
import { packageRoot } from '../version.js';
import { check } from './main.js';
import { type Mutant, mutants } from './mutants/index.js';

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

const say = (text: string) => stdout.write(`${text}\n`);
const work = mkdtempSync(join(tmpdir(), 'agon-test-'));

function vitest(args: readonly string[], options: { quiet?: boolean; mutant?: string } = {}): boolean {
  const { status } = spawnSync(join(packageRoot, 'node_modules', '.bin', 'vitest'), ['run', ...args], {
    cwd: packageRoot,
    stdio: ['ignore', options.quiet ? 'ignore' : 'inherit', options.quiet ? 'ignore' : 'inherit'],
    env: { ...env, ...(options.mutant ? { AGON_MUTANT: options.mutant } : {}) },
  });
  return status === 0;
}

/** The specs themselves, with coverage by folder. */
function specs(): { passed: number; failed: number; skipped: string[] } {
  const file = join(work, 'report.json');
  const coverage = join(work, 'coverage');
  const good = vitest([
    '--reporter=default',
    '--reporter=json',
    `--outputFile=${file}`,
    '--coverage',
    `--coverage.reportsDirectory=${coverage}`,
  ]);
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report;
  const tests = report.testResults.flatMap((result) => result.assertionResults);
  const skipped = tests
    .filter(({ status }) => status === 'pending' || status === 'skipped')
    .map((test) => test.fullName);
  if (good) printCoverage(join(coverage, 'coverage-summary.json'));
  return { passed: report.numPassedTests, failed: report.numFailedTests + (good ? 0 : 1), skipped };
}

function printCoverage(file: string): void {
  const summary = JSON.parse(readFileSync(file, 'utf8')) as Record<
    string,
    { lines: { total: number; covered: number } }
  >;
  const folders = new Map<string, { total: number; covered: number }>();
  for (const [path, { lines }] of Object.entries(summary)) {
    const folder = path === 'total' ? 'all' : relative(packageRoot, path).split('/').slice(0, 2).join('/');
    const sum = folders.get(folder) ?? { total: 0, covered: 0 };
    folders.set(folder, { total: sum.total + lines.total, covered: sum.covered + lines.covered });
  }
  say('\ncoverage of lines');
  for (const [folder, { total, covered }] of [...folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
    say(`  ${folder.padEnd(28)} ${((100 * covered) / Math.max(1, total)).toFixed(1).padStart(5)} %  of ${total}`);
  }
}

/** Each deliberate fault must make some spec fail. */
function survivors(): Mutant[] {
  say(`\nmutants: ${mutants.length} deliberate faults, ${availableParallelism()} cores`);
  return mutants.filter((mutant) => {
    // A fault that cannot be planted would make every spec fail to load, and look as if it had been noticed.
    const places = readFileSync(join(packageRoot, mutant.file), 'utf8').split(mutant.find).length - 1;
    if (places !== 1) throw new Error(`The fault "${mutant.name}" fits ${places} places of ${mutant.file}, not one.`);
    const survived = vitest(['--bail=1', '--reporter=dot', ...mutant.specs.split(' ')], {
      quiet: true,
      mutant: mutant.name,
    });
    say(`  ${survived ? 'SURVIVED' : 'killed  '} ${mutant.name}`);
    return survived;
  });
}

const gates = check();
const { passed, failed, skipped } = specs();
const alive = survivors();
rmSync(work, { recursive: true, force: true });

const required = env.AGON_REQUIRE_ENGINES === '1';
say('');
for (const name of skipped) say(`SKIPPED ${name}${required ? ' (AGON_REQUIRE_ENGINES=1: this is a failure)' : ''}`);
if (!gates) say('FAILED npm run check');
for (const { name } of alive) say(`FAILED no test noticed the fault "${name}"`);
const failures = failed + alive.length + (gates ? 0 : 1) + (required ? skipped.length : 0);
say(`${passed} passed, ${failures} failed, ${skipped.length} skipped`);
exit(failures === 0 ? 0 : 1);
