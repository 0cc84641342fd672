import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../services/runtime/package.js';
import { unfit } from './faults/index.js';
import { protoFaults } from './proto.js';
import { schemaDrift } from './schemas.js';
import { untidy } from './tidy.js';

interface Gate {
  readonly name: string;
  /** What is wrong; empty when all is well. */
  run(): string[];
}

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

const gates: readonly Gate[] = [
  { name: 'format and lint', run: tool('biome', 'ci', '--colors=off', '.') },
  { name: 'types', run: tool('tsc', '--noEmit', '-p', 'tsconfig.json') },
  { name: 'dependency rules', run: tool('depcruise', '--config', '.dependency-cruiser.cjs', ...folders) },
  { name: 'interface definitions', run: protoFaults },
  { name: 'event schemas', run: schemaDrift },
  { name: 'tidy', run: untidy },
  { name: 'deliberate faults', run: unfit },
];

/** Runs every gate, also after one has failed, so that one run tells all. */
export function check(): boolean {
  let good = true;
  for (const gate of gates) {
    const problems = gate.run();
    stdout.write(`${problems.length === 0 ? 'ok  ' : 'FAIL'} ${gate.name}\n`);
    for (const problem of problems) stdout.write(`${problem.replace(/^/gm, '     ')}\n`);
    good &&= problems.length === 0;
  }
  return good;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) exit(check() ? 0 : 1);
