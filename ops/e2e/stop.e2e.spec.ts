import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath, kill, platform } from 'node:process';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { chdbInstalled } from '../../projections/analytics/installed.contract.js';
import { packageRoot } from '../../services/runtime/package.js';
import { serve, temporaryFolder } from './agon.contract.js';

/** Nothing here is about time: whatever is there after a minute hangs. */
const HANGS_MS = 60_000;
const agon = join(packageRoot, 'ops', 'cli', 'agon.js');

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** With the number, the process and no later one: when it started, by the system. */
  readonly started: string;
  readonly command: string;
}

function processOf(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    // One that has ended and was not waited for runs no more.
    return fields[0] === 'Z' ? undefined : { pid, parent: Number(fields[1]), started: `${fields[19]}`, command };
  } catch {
    return undefined;
  }
}

const processes = (): Process[] =>
  readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (processOf(Number(name)) ?? []) : []));

/** A process and all that came of it. */
function familyOf(pid: number): Process[] {
  const all = processes();
  const family = all.filter((each) => each.pid === pid);
  for (const each of family) family.push(...all.filter(({ parent }) => parent === each.pid));
  return family;
}

const folder = temporaryFolder();
const data = join(folder.path, 'arena');
const env = { PATH: process.env.PATH, HOME: process.env.HOME, AGON_DATA: data };
const flags = ['--port', '0', '--stripe-sandbox', '0', '--json'];
const typed = ['npm', '--silent', 'start', '--', ...flags];

/** What of a family runs still, and whatever else holds the folder. */
const leftOf = (family: readonly Process[]): string[] => {
  const known = new Map(family.map((each) => [each.pid, each.started]));
  return processes()
    .filter(({ pid, started, command }) => known.get(pid) === started || command.includes(data))
    .map(({ pid, command }) => `${pid} ${command}`);
};

let started: { family: Process[] } | undefined;
afterEach(() => {
  for (const { pid } of (started?.family ?? []).filter((each) => processOf(each.pid)?.started === each.started)) {
    kill(pid, 'SIGKILL');
  }
  started = undefined;
});
afterAll(() => folder.remove());

/** Starts an arena as a session of its own, as a terminal does, and waits until it is ready. */
async function startBy(file: string, ...args: string[]) {
  const child = spawn(file, args, { cwd: packageRoot, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  let output = '';
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      output += chunk;
      if (output.includes('"dataDir"')) resolve();
    });
    void ended.then((how) => reject(new Error(`It ended with ${how}: ${output}`)));
  });
  const family = familyOf(child.pid as number);
  started = { family };
  const named = (pattern: RegExp): number => {
    const found = family.find(({ command }) => pattern.test(command));
    if (!found) throw new Error(`No process of it is ${pattern}: ${family.map(({ command }) => command).join('\n')}`);
    return found.pid;
  };
  // So that it is known of each kind of child what becomes of it.
  for (const kind of [/postgres -D/, /sandbox-runner\/cell/, ...(chdbInstalled ? [/chdb-child/] : [])]) named(kind);
  const arena = named(/^\S*node \S+ \S*agon\.js start|^\S*node \S*agon\.js start/);
  return { child, ended, family, arena, postgres: named(/postgres -D/) };
}

const gone = (family: readonly Process[]) =>
  expect.poll(() => leftOf(family), { timeout: HANGS_MS, interval: 200 }).toEqual([]);

type Started = Awaited<ReturnType<typeof startBy>>;
const top = ({ child }: Started) => child.pid as number;

describe.skipIf(platform !== 'linux')('an arena ends with all that it started', { timeout: 5 * HANGS_MS }, () => {
  it.each<[how: string, stop: (started: Started) => void]>([
    ['Ctrl-C in its terminal', (it) => kill(-top(it), 'SIGINT')],
    ['SIGTERM to npm', (it) => kill(top(it), 'SIGTERM')],
    ['SIGKILL of npm', (it) => kill(top(it), 'SIGKILL')],
    ['SIGTERM to the shell between npm and it', ({ family }) => kill(family[1]?.pid as number, 'SIGTERM')],
    ['SIGHUP to all of its terminal', (it) => kill(-top(it), 'SIGHUP')],
    ['SIGTERM to itself', ({ arena }) => kill(arena, 'SIGTERM')],
    ['SIGHUP to itself', ({ arena }) => kill(arena, 'SIGHUP')],
    ['SIGKILL of itself', ({ arena }) => kill(arena, 'SIGKILL')],
  ])('started by npm, by %s', async (_how, stop) => {
    const arena = await startBy(...(typed as [string, ...string[]]));
    stop(arena);
    await arena.ended;
    await gone(arena.family);
  });

  it('by the closing of its terminal, which then takes no word of it any more', async () => {
    const arena = await startBy('script', '-qefc', typed.join(' '), '/dev/null');
    kill(top(arena), 'SIGKILL');
    await arena.ended;
    await gone(arena.family);
  });

  it('by a second Ctrl-C, which does not wait for what the first one waits for', async () => {
    const arena = await startBy(execPath, agon, 'start', ...flags);
    kill(arena.postgres, 'SIGSTOP');
    const again = setInterval(() => kill(arena.arena, 'SIGINT'), 100);
    const [code] = await arena.ended.finally(() => clearInterval(again));
    expect(code).toBe(130);
    kill(arena.postgres, 'SIGCONT');
    await gone(arena.family);
  });
});

describe.skipIf(platform !== 'linux')('a terminal that closes', { timeout: 5 * HANGS_MS }, () => {
  const children: ChildProcess[] = [];
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL');
  });
  const begin = (...args: string[]) => {
    const child = spawn(execPath, [agon, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    return { child, ended: once(child, 'exit') };
  };

  it('drains a runner', async () => {
    const arena = await serve(data, '--grpc-port', '0', '--no-runner', '--no-ladder');
    const own = ['--key-dir', join(folder.path, 'key'), '--data', data, '--json'];
    const { child, ended } = begin('runner', '--arena', `${arena.grpc}`, ...own);
    await once(child.stdout, 'data');
    const family = familyOf(child.pid as number);
    child.kill('SIGHUP');
    expect(await ended).toEqual([0, null]);
    expect(await arena.stop()).toBe(0);
    await gone(family);
  });

  it('ends a demo, and takes its folder away', async () => {
    const { child, ended } = begin('demo', '--matches', '5000', '--json');
    const postgres = () => familyOf(child.pid as number).find(({ command }) => command.includes('postgres -D'));
    await expect.poll(postgres, { timeout: HANGS_MS }).toBeDefined();
    const family = familyOf(child.pid as number);
    child.kill('SIGHUP');
    expect(await ended).toEqual([130, null]);
    await gone(family);
  });
});
