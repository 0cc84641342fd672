import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { argv, env, execPath, exit, kill, stderr, stdout } from 'node:process';
import { packageRoot } from '../../services/runtime/package.js';
import { missingEngines } from '../engines/at-hand.js';
import { check } from './main.js';
import type { FileReport } from './reporter.js';
import { specFilesOf } from './tidy.js';

/** Where more than a few files fail, something is wrong and not late. */
const LOOKED_AT_AGAIN_MAX = 5;
const SLOWEST_SHOWN = 5;

interface Outcome {
  readonly passed: number;
  readonly failed: readonly string[];
  readonly skipped: readonly string[];
  readonly unstable?: readonly string[];
}
const NOTHING: Outcome = { passed: 0, failed: [], skipped: [] };

/** Whether what cannot be tried here is a failure. */
const required = env.AGON_REQUIRE_ENGINES === '1';
const say = (text: string) => stdout.write(`${text}\n`);
const work = mkdtempSync(join(tmpdir(), 'agon-test-'));

/** Set once somebody wants the run to end; what it has started ends with it, and nothing else begins. */
let endedBy: NodeJS.Signals | undefined;
const children = new Set<ChildProcess>();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    endedBy = signal;
    // Its whole group: vitest ends at once, and not the processes that it runs specs in.
    for (const { pid } of children) if (pid !== undefined) kill(-pid, signal);
  });
}

function run(file: string, args: readonly string[], own: Record<string, string> = {}): Promise<boolean> {
  const child = spawn(execPath, [file, ...args], {
    cwd: packageRoot,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...env, ...own },
    detached: true,
  });
  children.add(child);
  const ended = new Promise<boolean>((resolve, reject) =>
    child.once('error', reject).once('exit', (code) => resolve(code === 0)),
  );
  return ended.finally(() => children.delete(child));
}

const vitest = join(packageRoot, 'node_modules', 'vitest', 'vitest.mjs');
const reporter = join(packageRoot, 'dist', 'ops', 'check', 'reporter.js');

let runs = 0;
async function vitestOf(args: readonly string[]): Promise<readonly FileReport[]> {
  const report = join(work, `${runs++}.json`);
  const own = { TEST_REPORT: report };
  const good = await run(
    vitest,
    ['run', '--allowOnly=false', '--reporter=dot', `--reporter=${reporter}`, ...args],
    own,
  );
  if (!existsSync(report)) return [brokenBy('vitest ended without a word about the specs: see above')];
  const files = JSON.parse(readFileSync(report, 'utf8')) as FileReport[];
  const known = good || files.some(({ failed }) => failed.length > 0);
  return known ? files : [...files, brokenBy('vitest failed, and no spec of it: see above')];
}

const brokenBy = (message: string): FileReport => {
  return { file: '', durationMs: 0, passed: 0, skipped: [], failed: [{ name: 'vitest', message }] };
};

/**
 * The specs of some tiers. Real engines that share a few cores with everything else sometimes come too late for a spec, so
 * files that failed are looked at once more, alone. What fails again is a failure; what does not is named as unstable,
 * for somebody to mend.
 */
async function tier(names: readonly string[], args: readonly string[] = []): Promise<Outcome> {
  const expected = names.flatMap(specFilesOf);
  if (expected.length === 0) {
    say(`there is no spec file of ${names.join(' or ')} yet`);
    return NOTHING;
  }
  const projects = names.flatMap((name) => ['--project', name]);
  const first = await vitestOf([...projects, ...args]);
  const failing = first.filter(({ failed }) => failed.length > 0);
  const again = failing.length <= LOOKED_AT_AGAIN_MAX && failing.every(({ file }) => file !== '');
  let healed = new Set<string>();
  if (failing.length > 0 && again && !endedBy) {
    say(`\n${failing.length} files failed and are looked at again, alone`);
    const second = await vitestOf([...projects, '--maxWorkers=1', ...failing.map(({ file }) => file)]);
    const whole = second.every(({ file }) => file !== '');
    const good = second.filter(({ failed, passed }) => whole && failed.length === 0 && passed > 0);
    healed = new Set(good.map(({ file }) => file));
  }
  const textsOf = (files: readonly FileReport[]) =>
    files.flatMap(({ file, failed }) => failed.map((each) => `${file} ${each.name}: ${each.message}`));
  const unstable = textsOf(failing.filter(({ file }) => healed.has(file)));
  const lost = expected.filter((path) => !first.some(({ file }) => file === path));
  const slow = [...first].sort((a, b) => b.durationMs - a.durationMs).slice(0, SLOWEST_SHOWN);
  say(`slowest: ${slow.map(({ file, durationMs }) => `${file} ${(durationMs / 1000).toFixed(1)} s`).join(', ')}`);
  return {
    passed: first.reduce((sum, { passed }) => sum + passed, 0) + unstable.length,
    failed: [...textsOf(failing.filter(({ file }) => !healed.has(file))), ...lost.map((path) => `${path} was not run`)],
    skipped: first.flatMap(({ file, skipped }) => skipped.map((spec) => `${file} ${spec}`)),
    unstable,
  };
}

/** Another program of this folder, which leaves in TEST_REPORT how many passed, and what failed or was skipped. */
async function program(name: string): Promise<Outcome> {
  const report = join(work, `${name}.json`);
  const good = await run(join(packageRoot, 'dist', 'ops', 'check', `${name}.js`), [], { TEST_REPORT: report });
  const broken = `npm run ${name}: see above`;
  if (!existsSync(report)) return { passed: 0, failed: [broken], skipped: [] };
  const { passed, failed, skipped } = JSON.parse(readFileSync(report, 'utf8')) as Outcome;
  const told = failed.length > 0 || (required && skipped.length > 0);
  return { passed, failed: good || told ? failed : [broken], skipped };
}

async function coverage(): Promise<Outcome> {
  const folder = join(work, 'coverage');
  const outcome = await tier(['specs', 'int'], ['--coverage', `--coverage.reportsDirectory=${folder}`]);
  if (outcome.failed.length === 0) printCoverage(join(folder, 'coverage-summary.json'));
  return outcome;
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

const STEPS: Readonly<Record<string, () => Promise<Outcome>>> = {
  check: async () => (check() ? NOTHING : { ...NOTHING, failed: ['npm run check'] }),
  specs: () => tier(['specs']),
  int: () => tier(['int']),
  // Most of the time they wait for processes of their own.
  e2e: () => tier(['e2e'], [`--maxWorkers=${availableParallelism() + 1}`]),
  peers: () => tier(['peers']),
  faults: () => program('faults'),
  coverage,
};

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !STEPS[name]);
  if (names.length === 0 || unknown.length > 0) {
    stderr.write(`usage: test.js <step>..., of ${Object.keys(STEPS).join(', ')}\n`);
    return 2;
  }
  const outcomes: Outcome[] = [];
  const times: string[] = [];
  for (const name of names) {
    if (endedBy) break;
    say(`\n== ${name}`);
    const startedMs = performance.now();
    const outcome = await STEPS[name]?.().catch((error: Error) => {
      return { ...NOTHING, failed: [`${name} fell over: ${error.stack ?? error}`] };
    });
    if (outcome) outcomes.push(outcome);
    times.push(`${name} ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  }
  return close(outcomes, times);
}

/** Names everything that is not simply good, and closes with one line. */
function close(outcomes: readonly Outcome[], times: readonly string[]): number {
  const failed = outcomes.flatMap((outcome) => outcome.failed);
  if (endedBy) failed.push(`the run was ended by ${endedBy}`);
  const skipped = outcomes.flatMap((outcome) => outcome.skipped);
  const missing = missingEngines();
  say('');
  for (const text of skipped) say(`SKIPPED ${text}`);
  for (const { engine, why } of missing) say(`NOT HERE, and so not tried: ${engine}: ${why}`);
  for (const text of outcomes.flatMap(({ unstable = [] }) => unstable)) say(`UNSTABLE, and passed when alone: ${text}`);
  for (const text of failed) say(`FAILED ${text}`);
  if (required && missing.length + skipped.length > 0) say('AGON_REQUIRE_ENGINES=1: what was not tried is a failure');
  const failures = failed.length + (required ? missing.length + skipped.length : 0);
  const passed = outcomes.reduce((sum, outcome) => sum + outcome.passed, 0);
  say(`times: ${times.join(', ')}`);
  say(`${passed} passed, ${failures} failed, ${skipped.length} skipped`);
  return failures === 0 ? 0 : 1;
}

const code = await main(argv.slice(2));
rmSync(work, { recursive: true, force: true });
exit(code);
