import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { keyIn } from '../../sandbox-runner/index.js';
import { DataFolder, folderLayout } from '../../services/runtime/data-folder.js';
import { Season } from '../chaos/season.js';
import { startCluster, whyNoCluster } from '../engines/cluster.js';
import { runWith, serveWith, temporaryFolder } from './agon.contract.js';

const missing = whyNoCluster();
const { path: folder, remove } = temporaryFolder();
afterAll(remove);

/** Time stands still, and runner and operator are the same, so that whatever differs comes from the deployment. */
const NOW = '2026-03-01T12:00:00.000Z';
const OWNERS = 20;
const ROUNDS = 10;
const runnerKey = join(folder, 'runner.key');
keyIn(runnerKey);
const operator = DataFolder.beside(folder).operatorToken();

/** A data folder that knows the operator already. */
function dataFolder(...path: string[]): string {
  const data = join(folder, ...path);
  mkdirSync(data, { recursive: true });
  writeFileSync(folderLayout(data).token, operator, { mode: 0o600 });
  return data;
}

async function playSeason(arena: { url: string; token: string }) {
  const season = new Season(arena, 'season', OWNERS, 300_000);
  await season.open();
  for (let round = 0; round < ROUNDS; round++) {
    await season.propose(round);
    await season.paid();
  }
  expect(new Set(season.matchIds).size).toBe((OWNERS / 2) * ROUNDS);
  return season.outcome();
}

async function embedded() {
  const data = dataFolder('embedded');
  copyFileSync(runnerKey, folderLayout(data).runnerKey);
  const arena = await serveWith({ AGON_NOW: NOW }, data, '--no-ladder');
  try {
    const outcome = await playSeason({ url: arena.url, token: operator });
    return { ...outcome, log: await verified({}, data) };
  } finally {
    await arena.stop();
  }
}

async function clustered() {
  const data = dataFolder('cluster', 'data');
  const cluster = await startCluster({
    folder: join(folder, 'cluster'),
    runnerKey,
    // Its table would be a runner more in the log.
    play: false,
    settings: { AGON_NOW: NOW, AGON_WEBHOOK_PRIVATE: 'true' },
  });
  try {
    const pids = cluster.processes.map(({ pid }) => pid);
    const outcome = await playSeason({ url: cluster.url, token: cluster.operatorToken });
    const { AGON_STORE = '', DATABASE_URL = '' } = cluster.settings;
    const log = await verified({ AGON_STORE }, data);
    await rebuildsBoards({ url: cluster.url, token: cluster.operatorToken }, { AGON_STORE, DATABASE_URL });
    const told = await toldBy({ url: cluster.url, token: cluster.operatorToken });
    return { pids, told, status: await cluster.status(), outcome: { ...outcome, log } };
  } finally {
    await cluster.stop();
  }
}

/** Asked for at the endpoint, and by the command line on the cluster's own database; Redis shows the new rows either way. */
async function rebuildsBoards(arena: { url: string; token: string }, env: Record<string, string>): Promise<void> {
  const ask = async <T>(query: string): Promise<T> => {
    const headers = { authorization: `Bearer ${arena.token}`, 'content-type': 'application/json' };
    const response = await fetch(`${arena.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
    expect(errors).toBeUndefined();
    return data;
  };
  const board = () => ask('{ leaderboard(game: "tic-tac-toe", first: 50) { agentId rating rank } }');
  const before = await board();
  type Status = { view: string; build: { phase: string; trouble: string | null } | null };
  const asked = await ask<{ rebuildProjection: Status }>(
    'mutation { rebuildProjection(view: "leaderboards") { view build { phase trouble } } }',
  );
  expect(asked.rebuildProjection.build).not.toBeNull();
  const builds = async () => {
    const { projections } = await ask<{ projections: Status[] }>('{ projections { view build { phase trouble } } }');
    return projections.filter(({ build }) => build !== null);
  };
  await expect.poll(builds, { timeout: 60_000 }).toEqual([]);
  const data = join(folder, 'nothing-here');
  const rebuilt = await runWith(env, 'projections', 'rebuild', 'leaderboards', '--data', data, '--json');
  expect(JSON.parse(rebuilt.stdout)).toMatchObject({ rebuilt: true, deadLetters: 0, build: null });
  const checked = await runWith(env, 'ledger', 'check', '--data', data, '--json');
  expect(JSON.parse(checked.stdout)).toMatchObject({ good: true });
  await expect.poll(board, { timeout: 20_000 }).toEqual(before);
}

/** What a webhook hears of credits that are granted after it was added. */
async function toldBy({ url, token }: { url: string; token: string }): Promise<unknown> {
  const receiver = createServer();
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const heard = new Promise<unknown>((resolve) => {
    receiver.on('request', async (request, response) => {
      resolve(await json(request));
      response.end();
    });
  });
  const call = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const answer = (await response.json()) as { errors?: unknown };
    expect({ ok: response.ok, ...answer }).toMatchObject({ ok: true });
    expect(answer.errors).toBeUndefined();
  };
  try {
    const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    await call('/v1/accounts/*/webhooks', { url: hook, types: ['CreditsGranted'] });
    await call('/graphql', { query: 'mutation { registerOwner(accountId: "late", displayName: "Late") { id } }' });
    await call('/graphql', { query: 'mutation { grantCredits(accountId: "late", amountCents: "700") { id } }' });
    return await heard;
  } finally {
    receiver.close();
  }
}

async function verified(env: Record<string, string>, data: string) {
  const { stdout } = await runWith(env, 'log', 'verify', '--data', data, '--json');
  const { verified: holds, events, streams, streamsHash } = JSON.parse(stdout) as Record<string, unknown>;
  return { holds, events, streams, streamsHash };
}

describe.skipIf(missing !== undefined)(`a cluster${missing ? ` (${missing})` : ''}`, () => {
  it('comes to the same ratings, balances and log as the embedded arena, by the same commands', async () => {
    const alone = await embedded();
    const { pids, status, outcome, told } = await clustered();
    expect(new Set(pids).size).toBeGreaterThanOrEqual(8);
    expect(pids.every((pid) => pid !== undefined)).toBe(true);
    expect(status.filter(({ ready }) => !ready)).toEqual([]);
    expect(alone.log.holds).toBe(true);
    expect(outcome).toEqual(alone);
    expect(told).toMatchObject({ type: 'CreditsGranted', data: { accountId: 'late', amountCents: '700' } });
  }, 900_000);
});
