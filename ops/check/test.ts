import { spawn } from 'node:child_process';
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

function vitest(args: readonly string[], options: { quiet?: boolean; mutant?: string } = {}): Promise<boolean> {
  const output = options.quiet ? 'ignore' : 'inherit';
  const child = spawn(join(packageRoot, 'node_modules', '.bin', 'vitest'), ['run', ...args], {
    cwd: packageRoot,
    stdio: ['ignore', output, output],
    env: { ...env, ...(options.mutant ? { AGON_MUTANT: options.mutant } : {}) },
  });
  return new Promise((resolve, reject) => child.once('error', reject).once('exit', (status) => resolve(status === 0)));
}

/** The specs themselves, with coverage by folder. */
async function specs(): Promise<{ passed: number; failed: number; skipped: string[] }> {
  const file = join(work, 'report.json');
  const coverage = join(work, 'coverage');
  const good = await vitest([
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

/** Each deliberate fault must make some spec fail. As many at a time as there are cores, each with one worker. */
async function survivors(): Promise<Mutant[]> {
  for (const { file, find, name } of mutants) {
    // A fault that cannot be planted would make every spec fail to load, and look as if it had been noticed.
    const places = readFileSync(join(packageRoot, file), 'utf8').split(find).length - 1;
    if (places !== 1) throw new Error(`The fault "${name}" fits ${places} places of ${file}, not one.`);
  }
  const lanes = availableParallelism();
  say(`\nmutants: ${mutants.length} deliberate faults, ${lanes} at a time`);
  const waiting = [...mutants];
  const alive: Mutant[] = [];
  const lane = async () => {
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      const args = ['--bail=1', '--maxWorkers=1', '--passWithNoTests', '--reporter=dot', ...mutant.specs.split(' ')];
      const survived = await vitest(args, { quiet: true, mutant: mutant.name });
      say(`  ${survived ? 'SURVIVED' : 'killed  '} ${mutant.name}`);
      if (survived) alive.push(mutant);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return alive;
}

const gates = check();
const { passed, failed, skipped } = await specs();
const alive = await survivors();
rmSync(work, { recursive: true, force: true });

const required = env.AGON_REQUIRE_ENGINES === '1';
say('');
for (const name of skipped) say(`SKIPPED ${name}${required ? ' (AGON_REQUIRE_ENGINES=1: this is a failure)' : ''}`);
if (!gates) say('FAILED npm run check');
for (const { name } of alive) say(`FAILED no test noticed the fault "${name}"`);
const failures = failed + alive.length + (gates ? 0 : 1) + (required ? skipped.length : 0);
say(`${passed} passed, ${failures} failed, ${skipped.length} skipped`);
exit(failures === 0 ? 0 : 1);
