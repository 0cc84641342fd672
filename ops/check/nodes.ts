import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv, env, exit, stdout } from 'node:process';
import { createInterface } from 'node:readline';
import { nodeFlags, packageRoot } from '../../services/runtime/package.js';

/** The lines of Node that Agon runs on, besides the oldest, which everything else is tried with. */
const LINES = ['22', '24', '26'] as const;
/** Whatever is not ready by then hangs. */
const START_MS = 120_000;
const OUTPUT_MAX = 20_000;

const folder = join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'agon');
const nodeOf = (line: string) => join(folder, `node-${line}`, 'node_modules', 'node', 'bin', 'node');
const work = mkdtempSync(join(tmpdir(), 'agon-nodes-'));
const say = (text: string) => void stdout.write(`${text}\n`);

/** Sandboxes run Node as a user of their own, who may not look into anybody's home. */
function readableByAll(node: string, copy: string): string {
  chmodSync(work, 0o755);
  copyFileSync(node, copy);
  chmodSync(copy, 0o755);
  return copy;
}

/** Each says why it failed: nothing when all is well. */
const STEPS = Object.entries({ specs, 'start and stop': startAndStop });

/** All that a program says, its end kept. */
function outputOf(child: ChildProcess): { text: string } {
  const output = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output.text = (output.text + chunk).slice(-OUTPUT_MAX);
    });
  }
  return output;
}

async function specs(node: string): Promise<string | undefined> {
  const vitest = join(packageRoot, 'node_modules', 'vitest', 'vitest.mjs');
  const child = spawn(node, [vitest, 'run', '--project', 'specs', '--reporter=dot'], {
    cwd: packageRoot,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = outputOf(child);
  const [code] = await once(child, 'close');
  return code === 0 ? undefined : output.text;
}

/** An arena that serves, ends by SIGTERM, and says nothing of Node's that somebody should mend. */
async function startAndStop(node: string): Promise<string | undefined> {
  const data = mkdtempSync(join(work, 'data-'));
  const agon = join(packageRoot, 'ops', 'cli', 'agon.js');
  const child = spawn(node, [...nodeFlags, agon, 'start', '--data', data, '--port', '0', '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = outputOf(child);
  const ended = once(child, 'close');
  const late = setTimeout(() => child.kill('SIGKILL'), START_MS);
  try {
    const ready = await Promise.race([once(createInterface(child.stdout), 'line'), ended.then(() => undefined)]);
    const served = ready !== undefined && (await fetch(`${JSON.parse(ready[0]).url}/readyz`)).ok;
    child.kill('SIGTERM');
    const [code, signal] = await ended;
    if (!served) return `It did not get ready.\n${output.text}`;
    if (code !== 0) return `It ended with ${signal ?? code}.\n${output.text}`;
    return /Warning:|^warning:/m.test(output.text) ? output.text : undefined;
  } finally {
    clearTimeout(late);
    rmSync(data, { recursive: true, force: true });
  }
}

async function main(lines: readonly string[]): Promise<number> {
  const unknown = lines.filter((line) => !/^\d+$/.test(line));
  if (unknown.length > 0) {
    say(`usage: nodes.js [line]..., such as ${LINES.join(' ')}`);
    return 2;
  }
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const line of lines) {
    const node = nodeOf(line);
    if (!existsSync(node)) {
      say(`SKIPPED Node ${line}: ${node} is missing; ops/engines/nodes.sh puts it there`);
      counts.skipped += STEPS.length;
      continue;
    }
    const readable = readableByAll(node, join(work, line));
    const version = spawnSync(readable, ['--version'], { encoding: 'utf8' }).stdout.trim();
    for (const [name, run] of STEPS) {
      const startedMs = performance.now();
      const wrong = await run(readable);
      counts[wrong === undefined ? 'passed' : 'failed'] += 1;
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
      say(`${wrong === undefined ? 'ok  ' : 'FAIL'} Node ${version}: ${name}, ${seconds} s`);
      if (wrong !== undefined) say(wrong.replace(/^/gm, '     '));
    }
  }
  const required = env.AGON_REQUIRE_ENGINES === '1';
  if (required && counts.skipped > 0) say('AGON_REQUIRE_ENGINES=1: what was not tried is a failure');
  const failed = counts.failed + (required ? counts.skipped : 0);
  say(`${counts.passed} passed, ${failed} failed, ${counts.skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

const code = await main(argv.length > 2 ? argv.slice(2) : LINES);
rmSync(work, { recursive: true, force: true });
exit(code);
