import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { gameNamed } from '../games/index.js';
import { allowanceOf, type Limits, limitsFrom } from '../limits.js';
import { root } from '../paths.js';
import { playMatch } from '../referee.js';
import { replay } from '../replay.js';
import { findBubblewrap } from './bubblewrap.js';
import { findCgroups } from './cgroup.js';
import type { Driver } from './driver.js';
import { ProcessDriver, whyNoProcessSandboxes } from './process.js';
import { executable, openToAll } from './runtimes.js';
import { WasmDriver } from './wasm.js';

const why = whyNoProcessSandboxes();

/** The groups of a host's sandboxes, in every hierarchy. */
function groupsOf(host: number): string[] {
  const parents = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .filter((line) => / cgroup2? /.test(line))
    .map((line) => join(line.split(' ')[1] ?? '', 'agon'))
    .filter((folder) => existsSync(folder));
  expect(parents.length).toBeGreaterThan(0);
  return parents.flatMap((parent) =>
    readdirSync(parent)
      .filter((name) => name.startsWith(`${host}-`))
      .map((name) => join(parent, name)),
  );
}

function membersOf(folder: string): string[] {
  return existsSync(folder) ? readFileSync(join(folder, 'cgroup.procs'), 'latin1').split('\n').filter(Boolean) : [];
}

const commandOf = (pid: string): string => readFileSync(`/proc/${pid}/cmdline`, 'latin1');

describe.skipIf(why !== undefined)(`process sandboxes${why ? ` (${why})` : ''}`, () => {
  let python: ProcessDriver;
  let node: ProcessDriver;
  beforeAll(async () => {
    [python, node] = await Promise.all([ProcessDriver.open('python'), ProcessDriver.open('node')]);
  });
  afterAll(async () => {
    await Promise.all([python?.close(), node?.close()]);
  });

  async function ask(driver: Driver, source: string, overrides: Partial<Limits> = {}) {
    const limits = limitsFrom(overrides);
    const agent = await driver.load(source, { seed: 'seed', seat: 0, limits });
    try {
      const started = await agent.init({}, limits.initMs);
      return started.kind === 'fault' ? started : await agent.act({}, limits.turnMs);
    } finally {
      agent.dispose();
    }
  }

  it('show an agent a user without rights, an almost empty root and an environment without news', async () => {
    const source = `import os
def act(o):
    return [os.getuid(), os.getgid(), os.getgroups(), sorted(os.listdir("/")), sorted(os.environ), os.getcwd(), os.listdir("."), os.uname().nodename]
`;
    const { value } = (await ask(python, source)) as unknown as { value: unknown[] };
    const [uid, gid, groups, top, environment, cwd, inside, host] = value;
    expect([uid, gid, groups]).toEqual([65_534, 65_534, []]);
    expect(top).toEqual(expect.not.arrayContaining(['etc', 'home', 'proc', 'root', 'sys', 'var']));
    expect(environment).toEqual(expect.arrayContaining(['HOME', 'PYTHONHASHSEED']));
    expect((environment as string[]).length).toBeLessThan(9);
    expect([cwd, inside, host]).toEqual(['/tmp', [], 'sandbox']);
  });

  it('charge CPU time, in children and between the turns too, and tell it from waiting', async () => {
    const burn = (seconds: number) =>
      `import os, time\ndef act(o):\n    end = time.process_time() + ${seconds}\n    while time.process_time() < end: pass\n    time.sleep(0.2)\n    return 1\n`;
    const limits = limitsFrom({ turnMs: 1_000 });
    const agent = await python.load(burn(0.15), { seed: 's', seat: 0, limits });
    await agent.init({}, limits.initMs);
    const reply = await agent.act({}, limits.turnMs);
    expect(reply).toMatchObject({ kind: 'reply', value: 1 });
    expect(reply.fuel).toBeGreaterThanOrEqual(150);
    expect(reply.fuel).toBeLessThan(1_000);
    const { cpuMs = 0, wallMs = 0 } = agent.usage;
    expect(wallMs - cpuMs).toBeGreaterThanOrEqual(150);
    agent.dispose();
  });

  it('let an agent use what it saved, and no more', async () => {
    const source =
      'import time\ndef act(o):\n    end = time.process_time() + 0.2\n    while time.process_time() < end: pass\n    return 1\n';
    const limits = limitsFrom({});
    const agent = await python.load(source, { seed: 's', seat: 0, limits });
    await agent.init({}, limits.initMs);
    expect(await agent.act({}, 2_000)).toMatchObject({ kind: 'reply' });
    expect(await agent.act({}, 50)).toMatchObject({
      kind: 'fault',
      rule: 'timeout',
      detail: expect.stringContaining('50 are allowed'),
    });
  });

  it('leave nothing behind: no group, no process, no file, whoever was in them', async () => {
    const before = groupsOf(process.pid).length;
    const driver = await ProcessDriver.open('python');
    await driver.warm(2, limitsFrom());
    expect(groupsOf(process.pid).length).toBeGreaterThan(before);
    const source =
      'import os\ndef act(o):\n    seen = os.listdir("/tmp")\n    open("/tmp/mine", "w").write("x")\n    return seen\n';
    for (let match = 0; match < 4; match += 1) expect(await ask(driver, source)).toMatchObject({ value: [] });
    await driver.close();
    await vi.waitFor(() => expect(groupsOf(process.pid).length).toBeLessThanOrEqual(before));
    await expect(driver.load(source, { seed: '', seat: 0, limits: limitsFrom() })).rejects.toMatchObject({
      code: 'SANDBOX.CLOSED',
    });
  });

  it('are made by launchers that wait without rights, inside the limits, and with nothing started', async () => {
    const others = groupsOf(process.pid);
    const driver = await ProcessDriver.open('python');
    const mine = groupsOf(process.pid).filter((folder) => !others.includes(folder));
    const launchers = await vi.waitFor(() => {
      const waiting = mine.flatMap((folder) => membersOf(folder)).filter((pid) => commandOf(pid).startsWith('/bin/sh'));
      expect(new Set(waiting).size).toBe(4);
      // Each is in all of its groups before it waits, so that it never has to be moved again.
      for (const pid of waiting) expect(waiting.filter((each) => each === pid)).toHaveLength(mine.length / 5);
      return [...new Set(waiting)];
    });
    for (const pid of launchers) {
      const status = readFileSync(`/proc/${pid}/status`, 'latin1');
      if (process.getuid?.() === 0) expect(status).not.toMatch(/^[UG]id:.*\t0\b/m);
      expect(status).toMatch(/^CapEff:\t0+$/m);
      await vi.waitFor(() =>
        expect(readdirSync(`/proc/${pid}/fd`).filter((fd) => Number(fd) > 5 && Number(fd) < 10)).toEqual([]),
      );
      expect(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')).toBe('');
    }
    await driver.close();
    for (const pid of launchers) expect(existsSync(`/proc/${pid}`)).toBe(false);
  });

  it('end with a host that is killed, waiting launchers and all', async () => {
    const program = `
      const { ProcessDriver } = await import(${JSON.stringify(join(root, 'dist/sandbox-runner/index.js'))});
      const driver = await ProcessDriver.open('python');
      console.log('open');
      setInterval(() => driver, 1_000);`;
    const host = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(host.stdout, 'data');
    const left = () => groupsOf(host.pid ?? 0).flatMap((folder) => membersOf(folder));
    expect(left().length).toBeGreaterThan(0);
    host.kill('SIGKILL');
    await vi.waitFor(() => expect(left()).toEqual([]), { timeout: 5_000 });
  });

  it('charge nobody for what another match used, and kill nobody for it', async () => {
    const limits = limitsFrom({ turnMs: 2_000 });
    const play = async (source: string) => {
      const agent = await python.load(source, { seed: 's', seat: 0, limits });
      await agent.init({}, limits.initMs);
      const reply = await agent.act({}, limits.turnMs);
      agent.dispose();
      return { reply, usage: agent.usage };
    };
    const heavy =
      'import time\nheld = []\ndef act(o):\n    end = time.process_time() + 0.3\n    while time.process_time() < end: pass\n' +
      '    while True: held.append(b"x" * 1_000_000)\n';
    for (let match = 0; match < 6; match += 1) {
      const first = await play(heavy);
      expect(first.reply).toMatchObject({ kind: 'fault', rule: 'out_of_memory' });
      expect(first.usage.cpuMs).toBeGreaterThanOrEqual(300);
      expect(first.usage.peakMemoryBytes).toBeGreaterThan(30_000_000);
      const second = await play('def act(o):\n    return 1\n');
      expect(second.reply).toMatchObject({ kind: 'reply', value: 1 });
      expect(second.usage.cpuMs).toBeLessThan(300);
      expect(second.usage.peakMemoryBytes).toBeLessThan(8_000_000);
    }
  });

  it('draw random numbers from the seed, whenever and wherever the module is imported', async () => {
    const sources = [
      'import random\ndef act(o):\n    return random.random()\n',
      'def act(o):\n    import random\n    return random.random()\n',
      'import tempfile, random\ndef act(o):\n    return random.random()\n',
      'import importlib\ndef act(o):\n    return importlib.import_module("random").random()\n',
    ];
    const drawn = new Set<unknown>();
    for (const source of sources)
      drawn.add(((await ask(python, source, { turnMs: 2_000 })) as { value?: unknown }).value);
    expect([...drawn]).toEqual([expect.any(Number)]);
  });

  it('take an executable of any kind that speaks the protocol', async () => {
    const script = 'echo ready >&4; while read -r token verb body <&3; do echo "$token R[\\"$verb\\"]" >&4; done';
    const driver = await ProcessDriver.open(await executable('shell', '1', ['/bin/sh', '-c', script]));
    expect(driver.name).toBe('process/shell');
    expect(await ask(driver, 'whatever')).toMatchObject({ kind: 'reply', value: ['act'] });
    await driver.close();
  });

  it('take a stray line for a forgery, also between the turns', async () => {
    const source = `import os, threading, time
def late():
    time.sleep(0.1)
    os.write(4, b"0123456789abcdef R1\\n")
def act(o):
    threading.Thread(target=late).start()
    return 1
`;
    const limits = limitsFrom();
    const agent = await python.load(source, { seed: 's', seat: 0, limits });
    await agent.init({}, limits.initMs);
    expect(await agent.act({}, limits.turnMs)).toMatchObject({ kind: 'reply' });
    await vi.waitFor(async () =>
      expect(await agent.onResult({}, 50)).toMatchObject({ kind: 'fault', rule: 'forged_reply' }),
    );
    agent.dispose();
  });

  it('play a whole match of Python against JavaScript, with a record that replays', async () => {
    const limits = limitsFrom({ turnMs: 500 });
    const wasm = new WasmDriver();
    const first = 'def act(o):\n    return o["legal"][0]\n';
    const last = 'const act = ({ legal }) => legal.at(-1);';
    for (const [a, b] of [
      [python, node],
      [python, wasm],
    ] as const) {
      const seats = [
        await a.load(first, { seed: 'seed', seat: 0, limits }),
        await b.load(last, { seed: 'seed', seat: 1, limits }),
      ];
      const record = await playMatch({
        game: gameNamed('connect-four'),
        seed: 'seed',
        seats,
        limits,
        driver: `${a.name} ${b.name}`,
        agents: ['a', 'b'],
      });
      for (const seat of seats) seat.dispose();
      expect(record.outcome).toMatchObject({ seatAtFault: null });
      expect(record.usage).toMatchObject([
        {
          driver: 'process/python',
          driverVersion: python.version,
          meter: 'time',
          cpuMs: expect.any(Number),
          wallMs: expect.any(Number),
        },
        { driver: b.name, meter: b.meter },
      ]);
      expect(record.limits).toMatchObject({ turnMs: 500, tasks: 64 });
      expect(replay(record)).toMatchObject({ agrees: true });
      const cheat = {
        ...record,
        turns: record.turns.map((turn, index) => (index === 0 ? { ...turn, fuel: 9_999 } : turn)),
      };
      expect(replay(cheat)).toMatchObject({ agrees: false });
    }
    expect(allowanceOf(limits, 'time')).toEqual({ init: 2_000, turn: 500, bank: 1_000 });
  });
});

describe('a machine that cannot hold a sandbox is refused, with the reason', () => {
  const path = process.env.PATH;
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agon-cgroup-'));
  });
  afterEach(() => {
    process.env.PATH = path;
    rmSync(folder, { recursive: true, force: true });
  });

  it('without bubblewrap', async () => {
    process.env.PATH = folder;
    expect(() => findBubblewrap()).toThrow(expect.objectContaining({ code: 'SANDBOX.DRIVER_UNAVAILABLE' }));
    await expect(ProcessDriver.open('python')).rejects.toMatchObject({
      message: expect.stringContaining('not installed'),
    });
  });

  it('with a bubblewrap that cannot switch off nested namespaces', () => {
    writeFileSync(join(folder, 'bwrap'), '#!/bin/sh\necho --unshare-all\n', { mode: 0o755 });
    process.env.PATH = folder;
    expect(() => findBubblewrap()).toThrow(/too old/);
  });

  it('without cgroups, with some controllers only, or with none that may be written', () => {
    expect(() => findCgroups('proc /proc proc rw 0 0\n', '0::/\n')).toThrow(/no cgroup hierarchy/);
    expect(() => findCgroups(`cgroup ${folder} cgroup rw,memory 0 0\n`, '')).toThrow(
      /pids, cpu, cpuacct are not mounted/,
    );
    const closed = ['memory', 'pids', 'cpu', 'cpuacct'].map(
      (name) => `cgroup /proc/none/${name} cgroup rw,${name} 0 0`,
    );
    expect(() => findCgroups(closed.join('\n'), '')).toThrow(/cannot be written/);
    writeFileSync(join(folder, 'cgroup.controllers'), 'cpuset io\n');
    expect(() => findCgroups(`cgroup2 ${folder} cgroup2 rw 0 0\n`, '0::/\n')).toThrow(/Delegate=yes/);
  });

  it('with an interpreter that only some may read', () => {
    mkdirSync(join(folder, 'closed'), { mode: 0o700 });
    expect(openToAll(join(folder, 'closed'))).toBe(false);
    expect(openToAll('/usr')).toBe(true);
  });
});

describe('cgroup v2, on a tree that looks like one', () => {
  it('sets every limit, and reads every account', async () => {
    const folderOfAll = mkdtempSync(join(tmpdir(), 'agon-cgroup2-'));
    const own = join(folderOfAll, 'arena.service');
    for (const folder of [own, join(own, 'agon')]) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'cgroup.controllers'), 'cpuset cpu io memory pids\n');
    }
    const tree = findCgroups(`cgroup2 ${folderOfAll} cgroup2 rw,nosuid 0 0\n`, '0::/arena.service\n');
    expect(tree.version).toBe('v2');
    expect(readFileSync(join(own, 'cgroup.subtree_control'), 'utf8')).toBe('+memory +pids +cpu');
    const folder = join(own, 'agon', '1-1');
    mkdirSync(folder);
    writeFileSync(join(folder, 'cpu.stat'), 'usage_usec 1234567\nuser_usec 1\n');
    for (const [file, text] of Object.entries({
      'memory.current': '4096\n',
      'memory.peak': '8192\n',
      'memory.swap.max': 'max\n',
      'memory.events': 'low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 1\n',
    })) {
      writeFileSync(join(folder, file), text);
    }
    const group = tree.create('1-1');
    group.limit({ memoryBytes: 65_536, tasks: 32 });
    const read = (file: string) => readFileSync(join(folder, file), 'utf8');
    expect([read('memory.max'), read('memory.swap.max'), read('pids.max')]).toEqual(['65536', '0', '32']);
    expect(Number(readFileSync(join(own, 'agon', 'cpu.weight'), 'utf8'))).toBeGreaterThanOrEqual(100);
    expect([read('cpu.max'), read('memory.oom.group')]).toEqual(['100000 100000', '1']);
    expect(group.entrances).toEqual([join(folder, 'cgroup.procs')]);
    expect([group.spentMs(), group.memoryBytes(), group.peakMemoryBytes(), group.oomKills()]).toEqual([
      1234.567, 4096, 8192, 2,
    ]);
    writeFileSync(join(folder, 'cgroup.kill'), '0');
    setTimeout(() => {
      expect(read('cgroup.kill')).toBe('1');
      rmSync(folder, { recursive: true });
    }, 20);
    await group.destroy();
    rmSync(folderOfAll, { recursive: true });
  });
});
