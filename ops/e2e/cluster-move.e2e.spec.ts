import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { play } from '../../sdk/typescript/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { whyNoCluster } from '../engines/cluster.js';
import { runWith, serve, temporaryFolder } from './agon.contract.js';

const missing = whyNoCluster();
const folder = temporaryFolder();
const data = join(folder.path, 'arena');
const cluster = join(folder.path, 'cluster');
const agent = join(folder.path, 'bot.js');
const env = { AGON_CREDENTIALS: join(folder.path, 'credentials.json'), AGON_PASSWORD: 'correct horse battery' };

async function agon<T = Record<string, string>>(settings: Record<string, string>, ...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await runWith(settings, ...args, '--json');
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
}

async function ask<T>(url: string, query: string): Promise<T> {
  const token = readFileSync(folderLayout(data).token, 'utf8').trim();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  const { data: found, errors } = (await response.json()) as { data: T; errors?: unknown };
  expect(errors).toBeUndefined();
  return found;
}

/** A match for money between an agent of ada's and one of the house. */
async function playMatch(url: string): Promise<string> {
  const terms = 'game: "tic-tac-toe", agents: ["ada.bot", "bronze.bot"], stakeCents: "10"';
  const { proposeMatch } = await ask<{ proposeMatch: { id: string } }>(
    url,
    `mutation { proposeMatch(${terms}) { id } }`,
  );
  const status = async () =>
    (await ask<{ match: { status: string } | null }>(url, `{ match(matchId: "${proposeMatch.id}") { status } }`)).match;
  await expect.poll(status, { timeout: 60_000 }).toEqual({ status: 'settled' });
  return proposeMatch.id;
}

afterAll(async () => {
  if (existsSync(cluster)) await runWith({}, 'cluster', 'down', '--folder', cluster);
  folder.remove();
});

describe.skipIf(missing !== undefined)(`an embedded arena${missing ? ` (${missing})` : ''}`, () => {
  it('goes on in a cluster, with the same agents, people, keys and money', { timeout: 600_000 }, async () => {
    writeFileSync(agent, 'export const act = ({ legal }) => legal[0];\n');
    const arena = await serve(data, '--no-ladder', '--play-port', '0');
    await agon(env, 'login', 'ada', '--register', '--arena', arena.url);
    const { key = '' } = await agon(env, 'apikey', 'create', 'ada', '--data', data);
    await agon(env, 'logout', '--arena', arena.url);
    await agon({}, 'owner', 'register', 'bronze', '--data', data);
    for (const owner of ['ada', 'bronze']) {
      await agon({}, 'agent', 'submit', agent, '--owner', owner, '--games', 'tic-tac-toe', '--data', data);
      await ask(arena.url, `mutation { grantCredits(accountId: "${owner}", amountCents: "500") { id } }`);
    }
    const before = await playMatch(arena.url);
    await arena.stop();
    const log = await agon<{ events: number }>({}, 'log', 'verify', '--data', data);

    const ports = ['--port', '0', '--play-port', '0', '--no-analytics', '--no-chain'];
    const {
      url,
      play: endpoint,
      env: file,
    } = await agon<{ url: string; play: string; env: string }>(
      ...([{}, 'cluster', 'up', '--folder', cluster, '--from', data, ...ports] as const),
    );
    expect(await runWith({}, 'start', '--data', data, '--port', '0')).toMatchObject({
      stderr: expect.stringMatching(/DATA\.MOVED/),
    });
    expect((await ask<{ match: object }>(url, `{ match(matchId: "${before}") { status } }`)).match).toEqual({
      status: 'settled',
    });
    // Their code is there, and so is their money.
    await playMatch(url);
    // So is whoever had signed up, and the key of that time opens the endpoint for agents.
    await agon(env, 'login', 'ada', '--arena', url);
    const act = ({ legal }: { legal: readonly number[] }) => legal[0] as number;
    const queue = { against: 'bronze.bot' };
    const games = ['tic-tac-toe'] as const;
    expect(await play({ arena: endpoint, key, agent: 'ada.other', games, queue, matches: 1, act })).toHaveLength(1);
    const [, store = ''] = /AGON_STORE='([^']+)'/.exec(readFileSync(file, 'utf8')) ?? [];
    const after = await agon<{ verified: boolean; events: number }>(
      ...([{ AGON_STORE: store }, 'log', 'verify', '--data', join(cluster, 'data')] as const),
    );
    expect(after.verified).toBe(true);
    expect(after.events).toBeGreaterThan(log.events);
  });
});
