import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import db, { type EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../services/adapters/store/subscription.contract.js';
import { packageRoot } from '../../services/runtime/package.js';
import { pythonWithClient, whyNoPythonClient } from '../engines/tools.js';
import { run, type Served, serve, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const data = join(folder.path, 'arena');
const target = join(folder.path, 'target');
const secret = (dataDir: string, name: string) => readFileSync(join(dataDir, name), 'utf8').trim();
const children: ChildProcess[] = [];
const clients: EventStoreDBClient[] = [];
let arena: Served;

afterAll(async () => {
  for (const client of clients) await client.dispose();
  for (const child of children) child.kill('SIGKILL');
  await arena?.stop('SIGKILL');
  folder.remove();
});

const addressIn = (url: string) => /@([^?]+)/.exec(url)?.[1] ?? '';
const urlFor = (address: string, dataDir: string, token: string) =>
  `esdb://any:${secret(dataDir, token)}@${address}?tlsCAFile=${join(dataDir, 'eventstore.crt')}`;
const connect = (url: string) => {
  const client = db.EventStoreDBClient.connectionString(url);
  clients.push(client);
  return client;
};
const register = (name: string) => run('owner', 'register', name, '--data', data, '--json');

/** Runs `agon eventstore serve` and resolves with what it says of itself. */
async function serveLog(dataDir: string, ...args: string[]) {
  const agon = join(packageRoot, 'ops', 'cli', 'agon.js');
  const options = ['eventstore', 'serve', '--data', dataDir, '--port', '0', '--json', ...args];
  const child = spawn(execPath, [agon, ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const line = await new Promise<string>((resolve) => createInterface(child.stdout).once('line', resolve));
  const { address, events } = JSON.parse(line) as { address: string; events: number };
  const stop = () => {
    child.kill('SIGINT');
    return ended;
  };
  return { address, events, stop };
}

describe("an arena's log at EventStoreDB's protocol", () => {
  beforeAll(async () => {
    arena = await serve(data, '--no-ladder', '--eventstore-port', '0');
    expect((await register('ada')).code).toBe(0);
  });

  it('is followed by the official client while the arena works', async () => {
    const reader = connect(urlFor(addressIn(arena.eventstore ?? ''), data, 'reader.token'));
    const seen: unknown[] = [];
    const subscription = reader.subscribeToAll({ filter: db.streamNameFilter({ prefixes: ['account-'] }) });
    subscription.on('data', ({ event }) =>
      seen.push([event?.type, (event?.data as { accountId: string } | undefined)?.accountId]),
    );
    await until(() => seen.length === 1);
    await register('grace');
    await until(() => seen.length === 2);
    expect(seen).toEqual([
      ['OwnerRegistered', 'ada'],
      ['OwnerRegistered', 'grace'],
    ]);
    await subscription.unsubscribe();
  });

  it('takes events of others beside its own, and none that are its own business', async () => {
    const writer = connect(urlFor(addressIn(arena.eventstore ?? ''), data, 'operator.token'));
    await writer.appendToStream('order-1', db.jsonEvent({ type: 'OrderPlaced', data: { total: 3 } }));
    const forged = db.jsonEvent({ type: 'OwnerRegistered', data: { accountId: 'eve', displayName: 'Eve' } });
    for (const stream of ['account-eve', 'order-2']) {
      await expect(writer.appendToStream(stream, forged)).rejects.toThrow(/EVENT\.NOT_SEALED/);
    }
    expect(await register('barbara')).toMatchObject({ code: 0 });
    expect(await (await fetch(`${arena.url}/readyz`)).json()).toMatchObject({ status: 'ready' });
    expect(JSON.parse((await run('log', 'verify', '--data', data, '--json')).stdout)).toMatchObject({ verified: true });
  });

  it('is read, filtered, followed and written by a client for Python', async (context) => {
    const missing = whyNoPythonClient();
    if (missing) return context.skip(missing);
    const keys = [secret(data, 'reader.token'), secret(data, 'operator.token')];
    const program = join(packageRoot, 'ops', 'e2e', 'follow.py');
    const args = [program, addressIn(arena.eventstore ?? ''), join(data, 'eventstore.crt'), ...keys];
    const { stdout } = await promisify(execFile)(pythonWithClient(), args);
    expect(JSON.parse(stdout)).toMatchObject({
      ordered: true,
      counted: 5,
      accounts: ['ada', 'grace', 'barbara'],
      read: [0, 1, 2, 3, 4],
      ids: true,
      metadata: 'python',
      sealed: true,
      backwards: [4, 3],
      followed: [0, 1, 2, 3, 4, 5],
      caught: [4, 5],
      repeated: true,
      conflict: true,
      missing: true,
      denied: true,
      immutable: true,
    });
    expect(JSON.parse((await run('log', 'verify', '--data', data, '--json')).stdout)).toMatchObject({ verified: true });
  });

  it('is served for reading by another process, beside the arena', async () => {
    const beside = await serveLog(data, '--read-only');
    const client = connect(urlFor(beside.address, data, 'operator.token'));
    const types: string[] = [];
    for await (const { event } of client.readStream('account-ada')) types.push(event?.type ?? '');
    expect(types).toEqual(['OwnerRegistered']);
    const append = client.appendToStream('order-9', db.jsonEvent({ type: 'OrderPlaced', data: {} }));
    await expect(append).rejects.toMatchObject({ type: 'access-denied' });
    expect(await beside.stop()).toBe(0);
  });

  it('is not served without TLS to other machines', async () => {
    const args = ['--data', join(folder.path, 'open'), '--port', '0', '--insecure', '--host', '0.0.0.0'];
    expect(await run('eventstore', 'serve', ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/this machine alone/),
    });
  });
});

describe('moving up', () => {
  it('does not move a log that somebody is writing to', async () => {
    const moving = await run('migrate', '--data', data, '--to', 'esdb://127.0.0.1:1?tls=false');
    expect(moving).toMatchObject({ code: 1, stderr: expect.stringMatching(/DATA\.IN_USE/) });
  });

  it.each([
    ['to nowhere', ['--to', 'somewhere'], /CONFIG\.INVALID/, 2],
    ['to a cluster that is not named', ['--to', 'cluster'], /CONFIG\.INVALID.*AGON_STORE/, 2],
  ])('is refused %s', async (_what, args, message, code) => {
    expect(await run('migrate', '--data', data, ...args)).toMatchObject({
      code,
      stderr: expect.stringMatching(message),
    });
  });

  it('is refused from a folder without a log', async () => {
    const nothing = await run('migrate', '--data', join(folder.path, 'nothing'), '--to', 'esdb://127.0.0.1:1');
    expect(nothing).toMatchObject({ code: 1, stderr: expect.stringMatching(/DATA\.EMPTY/) });
  });

  it('copies the log, verifies it, and goes on there with the same arena', async () => {
    await arena.stop();
    const before = JSON.parse((await run('log', 'verify', '--data', data, '--json')).stdout) as {
      logHash: string;
      events: number;
    };
    const server = await serveLog(target);
    const to = urlFor(server.address, target, 'operator.token');
    const moved = await run('migrate', '--data', data, '--to', to, '--json');
    expect(moved).toMatchObject({ code: 0 });
    const { logHash, events } = before;
    expect(JSON.parse(moved.stdout)).toMatchObject({ verified: true, events, logHash, resumedAt: 0 });
    expect(moved.stdout).not.toContain(secret(target, 'operator.token'));

    const here = await run('start', '--data', data, '--port', '0', '--no-ladder');
    expect(here).toMatchObject({ code: 1, stderr: expect.stringMatching(/DATA\.MOVED.*AGON_STORE/) });

    arena = await serve(data, '--no-ladder', '--store-url', to);
    expect(arena.position).toBe(events);
    expect((await register('ada')).stdout + (await register('edsger')).stdout).toMatch(/edsger/);
    await arena.stop();
    expect(await server.stop()).toBe(0);
    const after = JSON.parse((await run('log', 'verify', '--data', target, '--json')).stdout);
    expect(after).toMatchObject({ verified: true, events: events + 1 });
  });
});
