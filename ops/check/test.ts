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
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

const say = (text: string) => stdout.write(`${text}\n`);
const work = mkdtempSync(join(tmpdir(), 'agon-test-'));
/** Where more than a few files fail, something is wrong and not late. */
const LOOKED_AT_AGAIN_MAX = 5;
const FAULT_TIMEOUT_MS = 45_000;

function vitest(args: readonly string[], options: { quiet?: boolean; mutant?: string } = {}): Promise<boolean> {
  const output = options.quiet ? 'ignore' : 'inherit';
  const child = spawn(join(packageRoot, 'node_modules', '.bin', 'vitest'), ['run', ...args], {
    cwd: packageRoot,
    stdio: ['ignore', output, output],
    env: { ...env, ...(options.mutant ? { AGON_MUTANT: options.mutant } : {}) },
  });
  return new Promise((resolve, reject) => child.once('error', reject).once('exit', (status) => resolve(status === 0)));
}

interface Fault {
  readonly file: string;
  readonly text: string;
}

interface Outcome {
  readonly passed: number;
  readonly faults: readonly Fault[];
  readonly skipped: readonly string[];
}

async function outcomeOf(name: string, args: readonly string[]): Promise<Outcome> {
  const file = join(work, `${name}.json`);
  const good = await vitest(['--reporter=default', '--reporter=json', `--outputFile=${file}`, ...args]);
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report;
  const tests = report.testResults.flatMap((result) => result.assertionResults);
  const skipped = tests
    .filter(({ status }) => status === 'pending' || status === 'skipped')
    .map((test) => test.fullName);
  // A file that cannot be loaded or set up fails without any test of it having failed.
  const faults = report.testResults.flatMap(({ name: path, status, message, assertionResults }) => {
    const spec = relative(packageRoot, path);
    const failures = assertionResults.filter((test) => test.status === 'failed');
    const each = failures.map((test) => `${test.fullName}: ${firstLine(test.failureMessages[0] ?? '')}`);
    const texts = status === 'failed' && each.length === 0 ? [`${spec}: ${firstLine(message)}`] : each;
    return texts.map((text) => ({ file: spec, text }));
  });
  if (!good && faults.length === 0) faults.push({ file: '', text: 'vitest failed, and no test of it: see above' });
  return { passed: report.numPassedTests, faults, skipped };
}

/**
 * The specs themselves, with coverage by folder. Real engines that share a few cores with everything else sometimes come
 * too late for a spec, so files that failed are looked at once more, alone. What fails again is a failure; what does not
 * is named as unstable, for somebody to mend.
 */
async function specs(): Promise<Outcome & { readonly unstable: readonly string[] }> {
  const coverage = join(work, 'coverage');
  const first = await outcomeOf('specs', ['--coverage', `--coverage.reportsDirectory=${coverage}`]);
  if (first.faults.length === 0) printCoverage(join(coverage, 'coverage-summary.json'));
  const files = [...new Set(first.faults.map(({ file }) => file))];
  if (files.length === 0 || files.length > LOOKED_AT_AGAIN_MAX || files.includes('')) return { ...first, unstable: [] };
  say(`\n${files.length} files failed and are looked at again, alone`);
  const second = await outcomeOf('again', ['--maxWorkers=1', ...files]);
  const failing = new Set(second.faults.map(({ file }) => file));
  const faults = first.faults.filter(({ file }) => failing.has(file) || failing.has(''));
  const unstable = first.faults.filter((fault) => !faults.includes(fault)).map(({ text }) => text);
  return { passed: first.passed + unstable.length, faults, skipped: first.skipped, unstable };
}

const firstLine = (text: string) => text.trim().split('\n', 1)[0] ?? '';

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

/**
 * Each deliberate fault must make some spec fail. One more at a time than there are cores, each with one worker: some wait
 * for engines.
 */
async function survivors(): Promise<Mutant[]> {
  const lanes = availableParallelism() + 1;
  say(`\nmutants: ${mutants.length} deliberate faults, ${lanes} at a time`);
  const waiting = [...mutants];
  const alive: Mutant[] = [];
  const lane = async () => {
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      // A fault that makes a spec wait without end is noticed by that, and need not be waited for.
      const limits = ['--bail=1', '--maxWorkers=1', `--testTimeout=${FAULT_TIMEOUT_MS}`];
      const args = [...limits, '--passWithNoTests', '--reporter=dot', ...mutant.specs.split(' ')];
      const startedMs = performance.now();
      const survived = await vitest(args, { quiet: true, mutant: mutant.name });
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
      say(`  ${survived ? 'SURVIVED' : 'killed  '} ${mutant.name} (${seconds} s)`);
      if (survived) alive.push(mutant);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return alive;
}

const gates = check();
const { passed, faults, skipped, unstable } = await specs();
const alive = gates ? await survivors() : [];
rmSync(work, { recursive: true, force: true });

const required = env.AGON_REQUIRE_ENGINES === '1';
say('');
for (const name of skipped) say(`SKIPPED ${name}${required ? ' (AGON_REQUIRE_ENGINES=1: this is a failure)' : ''}`);
for (const text of unstable) say(`UNSTABLE, and passed when it was alone: ${text}`);
for (const { text } of faults) say(`FAILED ${text}`);
if (!gates) say('FAILED npm run check');
for (const { name } of alive) say(`FAILED no test noticed the fault "${name}"`);
const failures = faults.length + alive.length + (gates ? 0 : 1) + (required ? skipped.length : 0);
say(`${passed} passed, ${failures} failed, ${skipped.length} skipped`);
exit(failures === 0 ? 0 : 1);
