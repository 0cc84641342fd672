import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunnerServiceClient, type StreamLogsResponse } from '../../proto/gen/agon/runner/v1/runner.js';
import { HealthClient } from '../../proto/gen/grpc/health/v1/health.js';
import { errorOf } from '../../proto/status.js';
import { packageRoot } from '../../services/runtime/package.js';
import { run, type Served, serve, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const data = join(folder.path, 'arena');
const agon = join(packageRoot, 'ops', 'cli', 'agon.js');
const quick = 'const act = ({ legal }) => { console.log("mine"); return legal[0]; }';
/** A match of these outlives a third of its lease, which is when the first heartbeat is due. */
const slow =
  'const act = ({ legal }) => { for (let i = 0; i < 700000; i++); return legal[Math.floor(Math.random() * legal.length)]; }';

let arena: Served;
let grpc: string;
let operator: Record<string, string>;
const children: ChildProcess[] = [];

beforeAll(async () => {
  arena = await serve(data, '--grpc-port', '0', '--no-runner', '--no-ladder', '--lease-ms', '1000', '--cells', '1');
  grpc = arena.grpc ?? '';
  operator = { authorization: `Bearer ${readFileSync(join(data, 'operator.token'), 'utf8')}` };
  for (const [owner, source] of [
    ['ada', quick],
    ['bob', quick],
    ['cyd', slow],
    ['dan', slow],
  ] as const) {
    await command(`registerOwner(accountId: "${owner}", displayName: "${owner}") { id }`);
    const games = '["tic-tac-toe", "connect-four"]';
    await command(
      `submitAgent(ownerId: "${owner}", name: "bot", games: ${games}, source: ${JSON.stringify(source)}) { id }`,
    );
  }
});

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await arena?.stop('SIGKILL');
  folder.remove();
});

async function command(mutation: string): Promise<Record<string, { id: string }>> {
  const { data: answer, errors } = await arena.graphql<never>(`mutation { ${mutation} }`, {}, operator);
  expect(errors ?? []).toEqual([]);
  return answer;
}

const propose = async (game: string, agents: string, seed = 's') =>
  (await command(`proposeMatch(game: "${game}", agents: ${agents}, seed: "${seed}") { id }`)).proposeMatch?.id ?? '';

const statusOf = async (matchId: string) => {
  const { data: found } = await arena.graphql<{ match: { status: string; attempts: number; detail: string } }>(
    `{ match(matchId: "${matchId}") { status attempts detail } }`,
  );
  return found.match;
};

const historyOf = async (matchId: string) => {
  const { stdout } = await run('log', 'tail', '--data', data, '--stream', `match-${matchId}`, '-n', '500', '--json');
  return stdout.match(/(?<="type":")(?:Match|Lease)\w+(?=")/g) ?? [];
};

interface RunnerProcess {
  readonly child: ChildProcess;
  readonly ready: { runnerId: string; address: string; concurrency: number };
  readonly ended: Promise<number | null>;
}

async function startRunner(name: string, ...flags: string[]): Promise<RunnerProcess> {
  const args = ['runner', '--data', data, '--arena', grpc, '--key-dir', join(folder.path, name), '--json', ...flags];
  const child = spawn(execPath, [agon, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
  });
  children.push(child);
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const line = await Promise.race([
    new Promise<string>((resolve) => createInterface(child.stdout).once('line', resolve)),
    ended.then((code) => Promise.reject(new Error(`agon runner ended with ${code}: ${errors}`))),
  ]);
  return { child, ready: JSON.parse(line), ended };
}

describe('runners as processes of their own', { timeout: 240_000 }, () => {
  it('play side by side, each match once, and drain when asked', async () => {
    const runners = [await startRunner('one', '--concurrency', '1'), await startRunner('two', '--concurrency', '2')];
    expect(runners.map(({ ready }) => ready.concurrency)).toEqual([1, 2]);
    const matches = await Promise.all(
      Array.from({ length: 12 }, (_, i) => propose('tic-tac-toe', '["ada.bot", "bob.bot"]', `s${i}`)),
    );
    for (const matchId of matches) {
      await expect.poll(() => statusOf(matchId), { timeout: 60_000 }).toMatchObject({ status: 'settled', attempts: 1 });
    }
    for (const { child } of runners) child.kill('SIGTERM');
    expect(await Promise.all(runners.map(({ ended }) => ended))).toEqual([0, 0]);
  });

  it('keep their lease for as long as a match takes, and are the same runner after a restart', async () => {
    const { child, ready, ended } = await startRunner('one');
    expect(statSync(join(folder.path, 'one', 'runner.key')).mode & 0o777).toBe(0o600);
    const matchId = await propose('connect-four', '["cyd.bot", "dan.bot"]');
    await expect.poll(() => statusOf(matchId), { timeout: 60_000 }).toMatchObject({ status: 'settled', attempts: 1 });
    expect(await historyOf(matchId)).toContain('LeaseExtended');
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    const again = await startRunner('one');
    expect(again.ready.runnerId).toBe(ready.runnerId);
    again.child.kill('SIGTERM');
    expect(await again.ended).toBe(0);
  });

  it('hand back what they cannot finish in time, and it costs no attempt', async () => {
    const first = await startRunner('one', '--grace-ms', '0');
    const matchId = await propose('connect-four', '["cyd.bot", "dan.bot"]', 'handed');
    await expect.poll(() => statusOf(matchId), { timeout: 30_000 }).toMatchObject({ status: 'playing' });
    first.child.kill('SIGTERM');
    expect(await first.ended).toBe(0);
    await expect
      .poll(() => statusOf(matchId))
      .toMatchObject({ status: 'ready', attempts: 0, detail: 'The runner is stopping and hands the match back.' });
    const second = await startRunner('two');
    await expect.poll(() => statusOf(matchId), { timeout: 60_000 }).toMatchObject({ status: 'settled', attempts: 1 });
    second.child.kill('SIGTERM');
    expect(await second.ended).toBe(0);
  });

  it('serve dry runs, their log and their health', async () => {
    const { child, ready, ended } = await startRunner('one', '--concurrency', '1');
    const client = new RunnerServiceClient(ready.address, credentials.createInsecure());
    const health = new HealthClient(ready.address, credentials.createInsecure());
    const execute = (change: object = {}) =>
      new Promise<string>((resolve, reject) => {
        const request = {
          game: 'tic-tac-toe',
          seed: 'dry',
          sources: [quick, quick],
          runtimes: [],
          limitsJson: '',
          ...change,
        };
        client.execute(request, (error, response) => (error ? reject(errorOf(error)) : resolve(response.record)));
      });
    const logs: StreamLogsResponse[] = [];
    const stream = client.streamLogs({ matchId: '' });
    stream.on('data', (line: StreamLogsResponse) => logs.push(line)).on('error', () => {});

    const record = await execute();
    expect(JSON.parse(record)).toMatchObject({
      game: 'tic-tac-toe',
      seed: 'dry',
      outcome: { reason: 'line', winner: 0 },
    });
    expect(await execute()).toBe(record);
    expect(JSON.parse(await execute({ limitsJson: '{"turnFuel":300}' })).limits.turnFuel).toBe(300);
    await expect(execute({ game: 'go' })).rejects.toMatchObject({ code: 'SANDBOX.UNKNOWN_GAME' });
    await expect(execute({ sources: [quick] })).rejects.toMatchObject({ code: 'SANDBOX.WRONG_SEATS' });
    await expect(execute({ limitsJson: '{' })).rejects.toMatchObject({ code: 'SANDBOX.BAD_LIMITS' });

    const matchId = await propose('tic-tac-toe', '["ada.bot", "bob.bot"]', 'logged');
    const texts = () => logs.filter((line) => line.matchId === matchId).map((line) => line.text);
    await expect.poll(() => texts().at(-1), { timeout: 30_000 }).toBe('attempt 1 ended by line');
    expect(texts()[0]).toBe('attempt 1 of tic-tac-toe begins');
    expect(texts().some((text) => /^seat [01]: mine/.test(text))).toBe(true);
    const serving = await new Promise((resolve) => {
      health.check({ service: 'agon.runner.v1.RunnerService' }, (_error, response) => resolve(response.status));
    });
    expect(serving).toBe(1);
    for (const each of [client, health]) each.close();
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it('say what is wrong, and end', async () => {
    const base = ['runner', '--data', data, '--key-dir', join(folder.path, 'three'), '--json'];
    const nobody = await run(...base, '--arena', '127.0.0.1:1');
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toMatch(/NET\.UNAVAILABLE/);
    const stranger = await run(...base, '--arena', grpc, '--token-file', join(data, 'operator.token'));
    expect(stranger.stderr).toMatch(/AUTH\.UNAUTHENTICATED/);
    const without = await run(...base, '--arena', grpc, '--token-file', join(data, 'missing'));
    expect(without.stderr).toMatch(/RUNNERS\.NO_TOKEN/);
    expect((await run('runner')).code).toBe(2);
  });
});
