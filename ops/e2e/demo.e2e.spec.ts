import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath, getuid } from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../services/runtime/package.js';
import { type Ran, run, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const data = join(folder.path, 'demo');
let demo: Ran;

beforeAll(async () => {
  demo = await run('demo', '--matches', '30', '--seed', 'spec', '--data', data, '--json');
});
afterAll(() => folder.remove());

describe('the demo', () => {
  it('plays every match, balances the books and verifies the log', () => {
    expect(demo.code, demo.stderr).toBe(0);
    expect(demo.stdout.trim().split('\n')).toHaveLength(1);
    const result = JSON.parse(demo.stdout);
    expect(result).toMatchObject({ matches: 30, settled: 30, voided: 0, ledgerSum: 0, dataDir: data });
    expect(result.log).toMatchObject({ verified: true });
    expect(result.log.events).toBeGreaterThan(400);
    expect(Object.keys(result.leaderboard)).toEqual(['tic-tac-toe', 'connect-four']);
  });

  it('takes up its own folder again and plays only what is missing', async () => {
    const again = await run('demo', '--matches', '30', '--seed', 'spec', '--data', data, '--json');
    expect(JSON.parse(again.stdout).log.events).toBe(JSON.parse(demo.stdout).log.events);
  });

  const reachable = spawnSync('setpriv', [
    '--reuid',
    '65534',
    '--regid',
    '65534',
    '--clear-groups',
    'test',
    '-r',
    packageRoot,
  ]);
  it.runIf(getuid?.() === 0 && reachable.status === 0)('runs as an ordinary user', () => {
    const home = spawnSync('setpriv', ['--reuid', '65534', '--regid', '65534', '--clear-groups', 'mktemp', '-d'], {
      encoding: 'utf8',
    });
    const path = home.stdout.trim();
    const args = [
      '--reuid',
      '65534',
      '--regid',
      '65534',
      '--clear-groups',
      execPath,
      join(packageRoot, 'ops/cli/agon.js'),
    ];
    const options = { encoding: 'utf8', env: { PATH: process.env.PATH, HOME: path }, cwd: path } as const;
    const ran = spawnSync('setpriv', [...args, 'demo', '--matches', '4', '--data', join(path, 'd'), '--json'], options);
    expect(ran.stderr).not.toMatch(/error/);
    expect(JSON.parse(ran.stdout)).toMatchObject({ settled: 4, ledgerSum: 0 });
    spawnSync('rm', ['-rf', path]);
  });
});

describe('reading the data without a server', () => {
  it('shows matches, boards, ratings and events', async () => {
    const list = JSON.parse((await run('match', 'list', '-n', '3', '--data', data, '--json')).stdout);
    expect(list).toHaveLength(3);
    const shown = await run('match', 'show', list[0].matchId.slice(0, 8), '--data', data);
    expect(shown.stdout).toMatch(/turn 1 {2}seat 0 plays/);
    expect(shown.stdout).toMatch(/settled: (line|full_board)/);
    expect(
      JSON.parse((await run('match', 'show', 'latest', '--data', data, '--json')).stdout).transcript.length,
    ).toBeGreaterThan(4);
    const board = JSON.parse((await run('leaderboard', '--data', data, '--json')).stdout);
    expect(board).toEqual(JSON.parse(demo.stdout).leaderboard);
    const tail = await run('log', 'tail', '-n', '2', '--type', 'MatchSettled', '--data', data, '--json');
    expect(
      tail.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).type),
    ).toEqual(['MatchSettled', 'MatchSettled']);
  });

  it('checks the ledger, and shows wallets, statements and the trial balance', async () => {
    const checked = await run('ledger', 'check', '--data', data, '--json');
    expect(checked.code, checked.stderr).toBe(0);
    expect(JSON.parse(checked.stdout)).toMatchObject({ good: true, balanced: true, differences: [] });
    const trial = await run('ledger', 'trial-balance', '--data', data);
    expect(trial.code).toBe(0);
    expect(trial.stdout).toMatch(/house:rake .*\n[\s\S]*PLAY sums to 0\.00/);
    const shown = JSON.parse((await run('wallet', 'show', 'gold', '--data', data, '--json')).stdout);
    const [purse] = shown.purses;
    const table = (await run('wallet', 'statement', 'gold', '--csv', '--data', data)).stdout.trimEnd().split('\r\n');
    expect(table[0]).toBe('position,at,event,currency,amount,balance,match');
    expect(table.at(-1)?.split(',')[5]).toBe(`${Number(purse.availableCents) / 100}`.replace(/(\.\d)$/, '$10'));
    const missing = await run('wallet', 'show', 'nobody', '--data', data);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringMatching(/WALLET\.EMPTY/)]);
  });

  it('verifies the log, and names the event of which one byte was changed', async () => {
    const whole = await run('log', 'verify', '--data', data, '--json');
    expect(whole.code).toBe(0);
    expect(JSON.parse(whole.stdout)).toMatchObject({ verified: true });

    const copy = join(folder.path, 'changed');
    cpSync(data, copy, { recursive: true });
    const file = join(copy, 'log', 'events.mdb');
    const bytes = readFileSync(file);
    const at = bytes.indexOf('Silver Stable');
    expect(at).toBeGreaterThan(0);
    bytes[at] = 'G'.charCodeAt(0);
    writeFileSync(file, bytes);
    const changed = await run('log', 'verify', '--data', copy, '--json');
    expect(changed.code).toBe(1);
    const { verified, fault } = JSON.parse(changed.stdout);
    expect(verified).toBe(false);
    expect(fault).toMatchObject({ type: 'OwnerRegistered', stream: 'account-silver', revision: 0 });
    expect(fault.eventId).toMatch(/^[0-9a-f-]{36}$/);

    const started = await run('start', '--data', copy, '--port', '0');
    expect(started.code).toBe(1);
    expect(started.stderr).toMatch(/STORE\.CORRUPT/);
    expect(started.stderr).not.toMatch(/\n\s+at /);
  });
});

describe('bad input on the command line', () => {
  it.each([
    { args: ['nonsense'], code: 2, says: /unknown command/ },
    { args: ['start', '--bogus'], code: 2, says: /unknown option '--bogus'/ },
    { args: ['start', '--port', 'abc'], code: 2, says: /CONFIG\.INVALID.*port/ },
    { args: ['start', '--port', '70000'], code: 2, says: /CONFIG\.INVALID.*0 to 65535/ },
    { args: ['start', '--rake-bps', '50'], code: 2, says: /CONFIG\.INVALID.*500 to 1500/ },
    { args: ['demo', '--matches', '0'], code: 2, says: /1 to 100000/ },
    { args: ['demo', '--matches', 'many'], code: 2, says: /1 to 100000/ },
    { args: ['match', 'show'], code: 2, says: /missing required argument/ },
    { args: ['match', 'show', 'zzzz', '--data', data], code: 1, says: /ARENA\.UNKNOWN_MATCH/ },
    { args: ['leaderboard', 'go', '--data', data], code: 2, says: /SANDBOX\.UNKNOWN_GAME/ },
    { args: ['leaderboard', '--data', join(folder.path, 'nothing')], code: 1, says: /DATA\.EMPTY/ },
    { args: ['agent', 'submit', 'x.js', '--owner', 'me', '--data', data], code: 1, says: /FILE\.UNREADABLE/ },
    { args: ['status', '--data', join(folder.path, 'nothing')], code: 1, says: /^$/ },
    { args: ['start', '--data', '/dev/null/x'], code: 1, says: /DATA\.UNUSABLE/ },
  ])('agon $args exits $code', async ({ args, code, says }) => {
    const ran = await run(...args);
    expect(ran.code).toBe(code);
    expect(ran.stderr).toMatch(says);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });

  it.each([[[]], [['start']], [['log', 'verify']], [['agent', 'submit']], [['demo']]])(
    'agon %s --help explains',
    async (args) => {
      const { code, stdout } = await run(...args, '--help');
      expect(code).toBe(0);
      expect(stdout).toMatch(/Usage: agon/);
    },
  );
});
