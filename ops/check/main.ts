import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../services/runtime/package.js';
import { unfit } from './faults/index.js';
import { protoFaults } from './proto.js';
import { schemaDrift } from './schemas.js';
import { untidy } from './tidy.js';

const folders = ['services', 'projections', 'sandbox-runner', 'gateway', 'proto', 'sdk', 'ops'];

/** A tool from node_modules; its output is the problem if it fails. */
const tool =
  (...command: string[]) =>
  () => {
    const [name = '', ...args] = command;
    const file = join(packageRoot, 'node_modules', '.bin', name);
    const { status, stdout: out, stderr: err, error } = spawnSync(file, args, { cwd: packageRoot, encoding: 'utf8' });
    return status === 0 ? [] : [`${out}${err}`.trim() || `${name} did not run: ${error?.message}`];
  };

/** Each says what is wrong: nothing when all is well. */
const gates: Readonly<Record<string, () => string[]>> = {
  'format and lint': tool('biome', 'ci', '--colors=off', '.'),
  types: tool('tsc', '--noEmit', '-p', 'tsconfig.json'),
  'dependency rules': tool('depcruise', '--config', '.dependency-cruiser.cjs', ...folders),
  'interface definitions': protoFaults,
  'event schemas': schemaDrift,
  tidy: () => untidy(),
  'deliberate faults': unfit,
};

/** Runs every gate, also after one has failed, so that one run tells all. */
export function check(): boolean {
  let good = true;
  for (const [name, problemsOf] of Object.entries(gates)) {
    const problems = problemsOf();
    stdout.write(`${problems.length === 0 ? 'ok  ' : 'FAIL'} ${name}\n`);
    for (const problem of problems) stdout.write(`${problem.replace(/^/gm, '     ')}\n`);
    good &&= problems.length === 0;
  }
  return good;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) exit(check() ? 0 : 1);
