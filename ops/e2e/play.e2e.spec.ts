import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run, type Served, serve, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const data = join(folder.path, 'arena');
const written = (name: string, source: string) => {
  const path = join(folder.path, name);
  writeFileSync(path, source);
  return path;
};

let arena: Served;
let endpoint: string[];
let key: string;

beforeAll(async () => {
  arena = await serve(data, '--play-port', '0', '--no-ladder', '--cells', '1');
  endpoint = ['--arena', arena.play ?? '', '--data', data, '--json'];
  for (const owner of ['ada', 'bob', 'bronze']) await run('owner', 'register', owner, '--data', data);
  const house = written('first.js', 'export const act = ({ legal }) => legal[0]');
  await run('agent', 'submit', house, '--owner', 'bronze', '--games', 'tic-tac-toe', '--data', data);
  key = (await run('apikey', 'create', 'ada', '--data', data)).stdout.trim();
});

afterAll(async () => {
  await arena?.stop();
  folder.remove();
});

const answer = async <T>(...args: string[]): Promise<T> => {
  const { code, stdout, stderr } = await run(...args);
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
};

describe('the command line for agents from outside', { timeout: 240_000 }, () => {
  it('plays with a file of JavaScript and one of Python', async () => {
    const files = [
      written('mine.js', 'export const act = ({ legal }) => legal.at(-1)'),
      written('mine.py', 'def act(observation):\n    print("thinking")\n    return observation["legal"][-1]\n'),
    ];
    for (const [at, file] of files.entries()) {
      const flags = ['--agent', `ada.mine-${at}`, '--game', 'tic-tac-toe', '--against', 'bronze.first', '--key', key];
      const played = await answer<{ results: { matchId: string; reason: string }[] }>(
        'agent',
        'play',
        file,
        ...flags,
        '--matches',
        '1',
        ...endpoint,
      );
      expect(played.results).toMatchObject([{ reason: 'line' }]);
    }
  });

  it('joins queues, and says when nobody came', async () => {
    const agent = 'ada.mine-0';
    const game = ['--game', 'tic-tac-toe', '--key', key];
    const joined = await answer<{ agents: string[] }>(
      'queue',
      'join',
      agent,
      ...game,
      '--against',
      'house',
      ...endpoint,
    );
    expect([...joined.agents].sort()).toEqual(['ada.mine-0', 'bronze.first']);
    const alone = await run('queue', 'join', agent, ...game, '--wait-ms', '50', ...endpoint);
    expect(alone).toMatchObject({ code: 1, stdout: '{"matchId":null}\n' });
    const foreign = await run('queue', 'join', 'bob.mine', ...game, ...endpoint);
    expect(foreign.code).toBe(1);
    expect(foreign.stderr).toMatch(/AUTH\.FORBIDDEN/);
    expect((await run('queue', 'join', agent, '--game', 'go')).code).toBe(2);
  });

  it('makes keys that are shown once and kept as a hash, and revokes them', async () => {
    const made = await answer<{ keyId: string; key: string }>(
      'apikey',
      'create',
      'bob',
      '--scopes',
      'read',
      '--data',
      data,
      '--json',
    );
    const secret = made.key.split('_')[3] ?? '';
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    expect(readFileSync(join(data, 'log', 'events.mdb')).includes(secret)).toBe(false);
    const listed = await answer<{ keyId: string; scopes: string[]; revoked: boolean }[]>(
      'apikey',
      'list',
      'bob',
      '--data',
      data,
      '--json',
    );
    expect(listed).toMatchObject([{ keyId: made.keyId, scopes: ['read'], revoked: false }]);
    const queue = () => run('queue', 'join', 'bob.bot', '--key', made.key, ...endpoint);
    expect((await queue()).stderr).toMatch(/AUTH\.SCOPE/);
    expect(await answer('apikey', 'revoke', 'bob', made.keyId, '--data', data, '--json')).toMatchObject({
      already: false,
    });
    expect(await answer('apikey', 'revoke', 'bob', made.keyId, '--data', data, '--json')).toMatchObject({
      already: true,
    });
    expect((await queue()).stderr).toMatch(/AUTH\.UNAUTHENTICATED/);
    expect((await run('apikey', 'revoke', 'bob', '0'.repeat(12), '--data', data)).code).toBe(1);
    expect((await run('apikey', 'create', 'nobody', '--data', data)).code).toBe(1);
  });

  it('says what is wrong', async () => {
    const flags = ['--agent', 'ada.mine-0', '--matches', '1', '--key', key, ...endpoint];
    expect((await run('agent', 'play', 'nowhere.js', ...flags)).stderr).toMatch(/FILE\.UNREADABLE/);
    expect((await run('agent', 'play', written('mine.txt', ''), ...flags)).stderr).toMatch(/FILE\.UNKNOWN_LANGUAGE/);
    expect((await run('agent', 'play', written('empty.js', ''), ...flags)).stderr).toMatch(/AGENTS\.BROKEN_CODE/);
    expect((await run('agent', 'play', 'x.js')).code).toBe(2);
    for (const of of [
      ['agent', 'play'],
      ['queue', 'join'],
      ['apikey', 'create'],
      ['apikey', 'list'],
      ['apikey', 'revoke'],
    ]) {
      expect((await run(...of, '--help')).code).toBe(0);
    }
  });
});
