import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { afterAll, describe, expect, it } from 'vitest';
import { packageRoot, version } from '../../services/runtime/package.js';

const agon = join(packageRoot, 'ops', 'cli', 'agon.js');
const folder = mkdtempSync(join(tmpdir(), 'agon-node-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the command line on this Node, which says that it is another one. */
function agonOn(node: string) {
  const disguise = join(folder, `${node}.cjs`);
  const own = `{ ...process.versions, node: '${node}' }`;
  writeFileSync(disguise, `Object.defineProperty(process, 'versions', { value: ${own} });`);
  const { status, stdout, stderr } = spawnSync(execPath, ['--require', disguise, agon, '--version'], {
    encoding: 'utf8',
    env: {},
  });
  return { status, stdout, stderr };
}

describe('the agon command', () => {
  it.each(['12.22.12', '18.20.8', '20.18.3', '21.7.3', '22.11.0'])('refuses Node %s in one line', (node) => {
    const { status, stdout, stderr } = agonOn(node);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^error NODE\.TOO_OLD: .*\n$/);
    expect(stderr).toContain(`this is Node ${node}.`);
  });

  it.each(['20.19.0', '22.12.0', '24.0.0', '26.10.0'])('says nothing of Node %s', (node) => {
    expect(agonOn(node)).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
  });

  it.each(['23.11.1', '25.9.0', '28.0.0'])('warns of Node %s, which is not tried, and goes on', (node) => {
    const warning = `warning: Agon is tried on Node 20, 22, 24, 26, and this is Node ${node}.\n`;
    expect(agonOn(node)).toEqual({ status: 0, stdout: `${version}\n`, stderr: warning });
  });

  it('can be read by a Node that is too old to run it', () => {
    // Top-level await, and imports of node:, would end with a SyntaxError or a stack instead of that one line.
    expect(readFileSync(agon, 'utf8')).not.toMatch(/^(import\b|export\b|await\b)|\?\.|\?\?/m);
  });
});
