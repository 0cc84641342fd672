import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { gameNames, whyNoProcessSandboxes } from '../../sandbox-runner/index.js';
import { run, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const file = (name: string, text: string) => {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
};
const noSandboxes = whyNoProcessSandboxes();

describe('an author', () => {
  it('gets a first agent that plays, and keeps what is there already', async () => {
    const written = JSON.parse((await run('agent', 'init', 'mine', '--folder', folder.path, '--json')).stdout);
    expect(existsSync(written.file)).toBe(true);
    const tested = await run('agent', 'test', written.file, '--against', 'first,random', '--matches', '4', '--json');
    expect(tested.code, tested.stderr).toBe(0);
    const { results, faults } = JSON.parse(tested.stdout);
    expect(faults).toEqual([]);
    for (const { won, drew, lost } of results) expect(won + drew + lost).toBe(4);

    const before = readFileSync(written.file, 'utf8');
    const again = await run('agent', 'init', 'mine', '--folder', folder.path, '--json');
    expect(again.code).toBe(1);
    expect(JSON.parse(again.stderr).error.code).toBe('FILE.EXISTS');
    expect(readFileSync(written.file, 'utf8')).toBe(before);
  });

  it('learns of a fault with its reason and its seed', async () => {
    const bad = file('bad.js', 'function act() { throw new Error("lost my way"); }');
    const tested = await run('agent', 'test', bad, '--against', 'first', '--matches', '2', '--json');
    expect(tested.code).toBe(1);
    const { results, faults } = JSON.parse(tested.stdout);
    expect(results).toEqual([{ against: 'first', won: 0, drew: 0, lost: 2, faults: 2 }]);
    expect(faults[0]).toMatch(/seed test\/first\/\d: crash: .*lost my way/);
  });

  it.each([
    ['broken code', ['agent', 'test', 'BROKEN'], 1, 'AGENTS.BROKEN_CODE'],
    ['a file that is not there', ['agent', 'test', 'none.js'], 1, 'FILE.UNREADABLE'],
    ['an unknown language', ['agent', 'test', 'mine.cobol'], 1, 'FILE.'],
    ['an unknown house agent', ['match', 'play', 'first', 'nobody'], 1, 'SANDBOX.UNKNOWN_AGENT'],
    ['too few seats', ['match', 'play', 'first'], 1, 'SANDBOX.WRONG_SEATS'],
  ])('is told of %s', async (_what, args, code, expected) => {
    const broken = file('broken.js', 'function act( {');
    const ran = await run(...args.map((arg) => (arg === 'BROKEN' ? broken : arg)), '--json');
    expect(ran.code).toBe(code);
    expect(JSON.parse(ran.stderr).error.code).toContain(expected);
  });

  it('sees a match drawn, the same one for the same seed', async () => {
    const play = ['match', 'play', 'first', 'random', '--game', 'tic-tac-toe', '--seed', 'x'];
    const [one, two] = [await run(...play), await run(...play)];
    expect(one.stdout).toContain('---+---+---');
    expect(one.stdout).toBe(two.stdout);
  });

  it.skipIf(noSandboxes !== undefined).each(gameNames)(
    `lets Python play JavaScript at %s${noSandboxes ? ` (${noSandboxes})` : ''}`,
    async (game) => {
      const python = file(
        'any.py',
        'import random\n\ndef act(observation):\n    return random.choice(observation["legal"])\n',
      );
      const played = await run('match', 'play', python, 'random', '--game', game, '--seed', 'mixed', '--json');
      expect(played.code, played.stderr).toBe(0);
      const { outcome, usage, driver } = JSON.parse(played.stdout);
      expect(driver).toBe('process/python+wasm');
      expect(outcome.seatAtFault, outcome.detail).toBeNull();
      expect(usage.map((seat: { meter: string }) => seat.meter)).toEqual(['time', 'fuel']);
    },
  );
});
