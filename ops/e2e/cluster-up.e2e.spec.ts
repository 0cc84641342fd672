import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pid as own } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { startOf } from '../../services/runtime/data-folder.js';
import { readNote, whyNoCluster, writeNote } from '../engines/cluster.js';
import { run, temporaryFolder } from './agon.contract.js';

const missing = whyNoCluster();
const { path, remove } = temporaryFolder();
const folder = join(path, 'cluster');
const flags = ['--folder', folder, '--json'];

/** Every process whose command line or settings name the folder, or that listens where it was told to. */
function processesOf(words: readonly string[]): { pid: number; line: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== own)
    .flatMap((name) => {
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
        const about = `${line} ${readFileSync(`/proc/${name}/environ`, 'utf8')}`;
        return words.some((word) => about.includes(word)) ? [{ pid: Number(name), line }] : [];
      } catch {
        return [];
      }
    });
}

interface Engine {
  readonly name: string;
  readonly address: string;
}

/** What names a process of the cluster: the folder, and for Redis, which writes over its settings, where it listens. */
function wordsOf(engines: readonly Engine[]): string[] {
  const redis = engines.find(({ name }) => name === 'Redis');
  return [folder, `redis-server 127.0.0.1:${new URL(redis?.address ?? '').port}`];
}

const stateOf = async () => {
  const { code, stdout } = await run('cluster', 'status', ...flags);
  return { code, ...(JSON.parse(stdout) as { running: boolean; ready?: boolean; processes?: { process: string }[] }) };
};

async function readyAgain(): Promise<void> {
  while (!(await stateOf()).ready) await sleep(500);
}

describe('agon cluster', () => {
  afterAll(async () => {
    await run('cluster', 'down', ...flags);
    remove();
  });

  it('leaves a stranger alone whose number a cluster had before', async () => {
    writeNote(folder, { pid: own, started: 'long ago', state: 'ready', step: 'ready' });
    expect(await stateOf()).toEqual({ code: 1, running: false });
    const { code, stdout } = await run('cluster', 'down', ...flags);
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, stopped: false });
    expect(existsSync(folder)).toBe(false);
  });

  it('comes up, stays up, and leaves nothing behind', async (context) => {
    if (missing) context.skip(`${missing}.`);
    const first = await run('cluster', 'up', '--port', '0', '--no-analytics', ...flags);
    expect(first.code, first.stderr).toBe(0);
    const { url, engines } = JSON.parse(first.stdout) as { url: string; engines: Engine[] };
    expect(engines.map(({ name }) => name)).toEqual(['Kafka', 'PostgreSQL', 'Redis', 'Chain']);
    const note = readNote(folder);
    expect(note).toMatchObject({ state: 'ready', started: startOf(note?.pid ?? 0) });

    const again = await run('cluster', 'up', '--port', '0', '--no-analytics', ...flags);
    expect(JSON.parse(again.stdout)).toEqual(JSON.parse(first.stdout));
    expect(readNote(folder)).toEqual(note);

    const state = await stateOf();
    expect(state).toMatchObject({ code: 0, running: true, ready: true });
    expect(state.processes?.map(({ process }) => process)).toContain('relay-2');
    expect((await fetch(`${url}/healthz`)).status).toBe(200);

    // What ends by itself is started again, engines as well as processes.
    const words = wordsOf(engines);
    const before = processesOf(words);
    for (const kind of ['redis-server', 'kafka.Kafka']) {
      const victim = before.find(({ line }) => line.includes(kind) && !line.startsWith('bash'));
      expect(victim, kind).toBeDefined();
      process.kill(victim?.pid ?? 0, 'SIGKILL');
      while (!processesOf(words).some(({ pid, line }) => pid !== victim?.pid && line.includes(kind))) await sleep(100);
    }
    await readyAgain();

    expect(await run('cluster', 'down', ...flags)).toMatchObject({ code: 0 });
    expect(existsSync(folder)).toBe(false);
    while (processesOf(words).length > 0) await sleep(100);
    expect(await stateOf()).toEqual({ code: 1, running: false });
  });

  it('takes everything along when whoever keeps it is killed, and keeps what it knew for the next', async (context) => {
    if (missing) context.skip(`${missing}.`);
    const { stdout } = await run('cluster', 'up', '--port', '0', '--no-analytics', ...flags);
    const words = wordsOf((JSON.parse(stdout) as { engines: Engine[] }).engines);
    expect(processesOf(words).length).toBeGreaterThan(10);
    process.kill(readNote(folder)?.pid ?? 0, 'SIGKILL');
    while (processesOf(words).length > 0) await sleep(100);
    expect(await stateOf()).toEqual({ code: 1, running: false });
    const down = await run('cluster', 'down', '--keep-data', ...flags);
    expect(down.code).toBe(0);
    expect(readdirSync(folder).sort()).toEqual(['chain', 'data', 'log', 'postgres', 'runner']);
    expect(await run('cluster', 'down', ...flags)).toMatchObject({ code: 0 });
  });
});
