import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { compiled } from '../../services/runtime/package.js';
import { freePort } from '../engines/server.js';
import { processNames } from './names.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-processes-'));
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) await ended(child, 'SIGKILL');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }
  return child.exitCode;
}

interface Ready {
  readonly status: string;
  readonly parts: readonly { readonly part: string; readonly ready: boolean; readonly detail: string }[];
}

/** A process as it runs in a cluster, and how to ask it how it is. */

async function start(settings: Record<string, string>, ...names: string[]) {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, AGON_HEALTH_PORT: '0', ...settings };
  const file = compiled(import.meta.url, './main.js');
  const child = spawn(execPath, [file, ...names], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  children.push(child);
  const said: string[] = [];
  const health = await new Promise<string>((resolve) => {
    createInterface(child.stderr as NodeJS.ReadableStream).on('line', (line) => {
      said.push(line);
      const { health: at } = line.startsWith('{') ? (JSON.parse(line) as { health?: string }) : {};
      if (at) resolve(at);
    });
    child.once('exit', () => resolve(''));
  });
  const ready = async (): Promise<Ready & { code: number }> => {
    const response = await fetch(`${health}/readyz`);
    return { ...((await response.json()) as Ready), code: response.status };
  };
  return { child, health, said, ready };
}

const nobody = async () => `127.0.0.1:${await freePort()}`;

describe('a process of a cluster', () => {
  it('says what it waits for, goes on when it is there, and drains by SIGTERM', async () => {
    const port = await freePort();
    const log = join(folder, 'log');
    const { eventstoreCert, token } = folderLayout(log);
    const serveLog = () => start({ AGON_DATA: log, AGON_EVENTSTORE_PORT: `${port}` }, 'eventstore');
    // Once before, for its key and its certificate.
    const first = await serveLog();
    await expect.poll(async () => (await first.ready()).status, { timeout: 60_000 }).toBe('ready');
    const key = readFileSync(token, 'utf8').trim();
    expect(await ended(first.child, 'SIGTERM')).toBe(0);

    const relay = await start(
      {
        AGON_STORE: `esdb://agon:${key}@127.0.0.1:${port}?tlsCAFile=${eventstoreCert}`,
        KAFKA_BROKERS: await nobody(),
        REDIS_URL: `redis://${await nobody()}`,
        AGON_DATA: folder,
      },
      'relay',
    );
    await expect
      .poll(async () => (await relay.ready()).parts.find(({ part }) => part === 'log'), { timeout: 60_000 })
      .toMatchObject({ ready: false, detail: expect.stringMatching(/^STORE\./) });
    expect((await relay.ready()).code).toBe(503);

    await serveLog();
    await expect
      .poll(async () => (await relay.ready()).parts.find(({ part }) => part === 'log'), { timeout: 60_000 })
      .toMatchObject({ ready: true, detail: 'at position 0' });
    // A relay that can reach neither Kafka nor Redis publishes nothing, whatever else it has.
    const { code, parts } = await relay.ready();
    expect(code).toBe(503);
    const missing = parts.filter(({ ready }) => !ready).map(({ part }) => part);
    expect(missing.sort()).toEqual(['kafka', 'redis for lease', 'relay']);
    expect(await ended(relay.child, 'SIGTERM')).toBe(0);
  });

  it('ends by SIGTERM also while it waits', async () => {
    const wallet = await start(
      {
        AGON_STORE: `esdb://agon:key@${await nobody()}?tls=false`,
        KAFKA_BROKERS: await nobody(),
        DATABASE_URL: `postgres://agon:agon@${await nobody()}/agon`,
        AGON_DATA: folder,
      },
      'wallet',
      'payments',
    );
    const { parts } = await wallet.ready();
    expect(parts.filter(({ ready }) => !ready).map(({ part }) => part)).toEqual(
      expect.arrayContaining(['log', 'write side', 'hold expiry', 'payments']),
    );
    expect(await (await fetch(`${wallet.health}/healthz`)).json()).toMatchObject({ processes: ['wallet', 'payments'] });
    expect(await ended(wallet.child, 'SIGTERM')).toBe(0);
  });

  it('runs by its name alone', async () => {
    for (const name of processNames) {
      const { child, health } = await start({ AGON_DATA: join(folder, name), AGON_EVENTSTORE_PORT: '0' }, name);
      // Who lacks something has said so and ended; the others say who they are.
      const told = health === '' ? undefined : await fetch(`${health}/healthz`).catch(() => undefined);
      if (told) expect(await told.json()).toMatchObject({ processes: [name] });
      else expect(child.exitCode ?? 2).toBe(2);
      await ended(child, 'SIGKILL');
    }
  }, 120_000);

  it.each([
    ['a process that there is not', {}, 'brewer', 'There is no process brewer'],
    ['a process without its log', { KAFKA_BROKERS: 'k:9092' }, 'wallet', 'AGON_STORE is missing'],
    ['a runner without an arena', {}, 'runner', 'AGON_ARENA is missing'],
    ['a broker that is none', { KAFKA_BROKERS: 'kafka' }, 'relay', 'must be host:port'],
  ])('refuses %s at once', async (_what, settings, name, why) => {
    const { child, said } = await start({ AGON_DATA: folder, ...settings }, name);
    if (child.exitCode === null) await once(child, 'exit');
    expect(child.exitCode).toBe(2);
    expect(said.join('\n')).toContain(why);
  });
});
