import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { gameNames, houseAgents, whyNoProcessSandboxes } from '../../sandbox-runner/index.js';
import { tarOf, zipOf } from '../attack/archives.js';
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

  it('sees a match drawn', async () => {
    const drawn = await run('match', 'play', 'first', 'random', '--game', 'tic-tac-toe', '--seed', 'x');
    expect(drawn.stdout).toContain('---+---+---');
  });

  // Two processes that know nothing of each other, each with cells of its own: nothing but the seed can make them agree.
  it.each(gameNames)('gets the same match of %s from the same seed, to the byte', async (game) => {
    const strongest = houseAgents.findLast(({ games, runtime }) => games.includes(game) && runtime === 'javascript');
    const play = ['match', 'play', 'random', strongest?.name ?? '', '--game', game, '--json', '--seed'];
    const [one, two, other] = await Promise.all([run(...play, 'x'), run(...play, 'x'), run(...play, 'y')]);
    expect(one.code, one.stderr).toBe(0);
    expect(JSON.parse(one.stdout).turns.length).toBeGreaterThan(0);
    expect(one.stdout).toBe(two.stdout);
    expect(other.stdout).not.toBe(one.stdout);
  });

  it.skipIf(noSandboxes !== undefined).each(gameNames)(
    `lets Python play JavaScript at %s${noSandboxes ? ` (${noSandboxes})` : ''}`,
    async (game) => {
      const played = await run('match', 'play', 'greedy-py', 'random', '--game', game, '--seed', 'mixed', '--json');
      expect(played.code, played.stderr).toBe(0);
      const { outcome, usage, driver } = JSON.parse(played.stdout);
      expect(driver).toBe('process/python+wasm');
      expect(outcome.seatAtFault, outcome.detail).toBeNull();
      expect(usage.map((seat: { meter: string }) => seat.meter)).toEqual(['time', 'fuel']);
    },
  );
});

describe('an author of several files', () => {
  const scaffold = async (name: string, language: string): Promise<string> => {
    const args = ['--bundle', '--language', language, '--folder', folder.path, '--json'];
    return JSON.parse((await run('agent', 'init', name, ...args)).stdout).file;
  };

  it.each(['javascript', 'node', 'python'])(
    `plays in %s, from a folder and from every archive of it (processes: ${noSandboxes ?? 'yes'})`,
    async (runtime) => {
      const path = await scaffold(`mine-${runtime}`, runtime === 'python' ? 'python' : 'javascript');
      if (runtime === 'node') writeFileSync(join(path, 'agent.json'), '{"runtime":"node"}');
      if (runtime !== 'javascript' && noSandboxes !== undefined) {
        expect(JSON.parse((await run('agent', 'test', path, '--json')).stderr).error.code).toBe(
          'SANDBOX.DRIVER_UNAVAILABLE',
        );
        return;
      }
      const tested = await run('agent', 'test', path, '--against', 'first', '--matches', '2', '--json');
      expect(tested.code, tested.stderr).toBe(0);
      const { codeDigest, results } = JSON.parse(tested.stdout);
      expect(results[0]).toMatchObject({ against: 'first', faults: 0 });

      const archives = ['.tar', '.tar.gz', '.zip'].map((ending) => path + ending);
      const files = readdirSync(path).map((name) => ({ name, content: readFileSync(join(path, name)) }));
      execFileSync('tar', ['cf', `${path}.tar`, '-C', path, '.']);
      execFileSync('tar', ['czf', `${path}.tar.gz`, '-C', folder.path, basename(path)]);
      writeFileSync(`${path}.zip`, zipOf(files.toReversed()));
      const played = await run('match', 'play', path, ...archives, '--game', 'prisoners', '--json');
      expect(played.code, played.stderr).toBe(0);
      const { outcome, agents } = JSON.parse(played.stdout);
      expect(outcome.seatAtFault, outcome.detail).toBeNull();
      expect(agents).toEqual([codeDigest, codeDigest, codeDigest, codeDigest]);
    },
  );

  it.each([
    ['zip-slip', zipOf([{ name: '../../evil.js', content: 'x' }]), 'UNSAFE_NAME'],
    ['a link', tarOf([{ name: 'main.py', type: '2', linkTo: '/etc/passwd' }]), 'LINK'],
    ['a bomb', zipOf([{ name: 'main.js', content: Buffer.alloc(1e8) }]), 'TOO_LARGE'],
    ['no entry', tarOf([{ name: 'other.js' }]), 'NO_ENTRY'],
    ['half of an archive', zipOf([{ name: 'main.js', content: 'x' }]).subarray(0, 50), 'CORRUPT'],
  ])('is told of %s', async (_what, archive, code) => {
    const path = join(folder.path, archive.readUInt16BE(0) === 0x504b ? 'bad.zip' : 'bad.tar');
    writeFileSync(path, archive);
    for (const args of [
      ['agent', 'test', path],
      ['match', 'play', path, 'random'],
      ['agent', 'submit', path, '--owner', 'ada'],
    ]) {
      const ran = await run(...args, '--json');
      expect(ran.code).toBe(1);
      expect(JSON.parse(ran.stderr).error.code).toBe(`AGENTS.BUNDLE_${code}`);
    }
  });

  it('keeps a folder that is there already', async () => {
    const path = await scaffold('kept', 'javascript');
    const again = await run('agent', 'init', 'kept', '--bundle', '--folder', folder.path, '--json');
    expect(JSON.parse(again.stderr).error.code).toBe('FILE.EXISTS');
    expect(readdirSync(path).sort()).toEqual(['agent.json', 'main.js', 'strategy.js']);
  });
});
