import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { whyNoProcessSandboxes } from '../../sandbox-runner/index.js';
import { whyNoChdb } from '../engines/chdb.js';
import { temporaryFolder } from './agon.contract.js';
import { type Block, guides, isRun, type Page } from './guides.js';
import { clone, goOnFrom, Terminal } from './terminal.contract.js';

/** What a block can be marked to need, and why it is not here, if it is not. */
const NEEDS: Readonly<Record<string, () => string | undefined>> = {
  python: () =>
    spawnSync('python3', ['-c', 'import ensurepip, venv']).status === 0 ? undefined : 'There is no python3 with venv.',
  bubblewrap: whyNoProcessSandboxes,
  clickhouse: whyNoChdb,
};

function whyNot({ page, line, marks }: Block): string | undefined {
  if (marks.needs === undefined) return undefined;
  const why = NEEDS[marks.needs];
  if (!why) throw new Error(`${page}:${line}: nobody knows what ${marks.needs} is`);
  return why();
}

const folder = temporaryFolder();
// PostgreSQL, which is not root where root starts it, runs from there.
chmodSync(folder.path, 0o755);
afterAll(folder.remove);

const readme = join(folder.path, 'readme');
let readmeDone = false;

/** README.md is for a clone, CONTRIBUTING.md for one that was installed and built, and docs/ goes on where README.md ends. */
function begin({ path }: Page): string {
  const place = join(folder.path, path.replace(/\W+/g, '-').toLowerCase());
  if (path === 'README.md') clone(readme);
  else if (!readmeDone) throw new Error(`README.md, which ${path} goes on from, did not come to its end.`);
  else goOnFrom(readme, place, path === 'CONTRIBUTING.md' ? 'build' : 'all');
  return path === 'README.md' ? readme : place;
}

describe.each(guides().filter(({ blocks }) => blocks.some(isRun)))('$path', { timeout: 600_000 }, (page) => {
  let terminal: Terminal | undefined;
  let failed: string | undefined;

  beforeAll(async () => {
    terminal = await Terminal.open(page, begin(page));
  }, 600_000);

  afterAll(async () => {
    await terminal?.close();
    readmeDone ||= failed === undefined;
  }, 120_000);

  for (const block of page.blocks.filter(isRun)) {
    const why = whyNot(block);
    const command = block.marks.file ?? block.text.split('\n', 1)[0];
    it.skipIf(why !== undefined)(`line ${block.line}: ${command}${why ? ` (${why})` : ''}`, async ({ skip }) => {
      if (failed) return skip(`${failed} failed, and what follows builds on it`);
      failed = `line ${block.line}`;
      await terminal?.do(block);
      failed = undefined;
    });
  }
});
