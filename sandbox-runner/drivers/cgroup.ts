import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError } from '../../services/kernel/index.js';
import { unavailable } from './driver.js';
import type { Account } from './sandbox.js';

export interface GroupLimits {
  readonly memoryBytes: number;
  /** Processes and threads together. */
  readonly tasks: number;
}

/** The kernel's account of one sandbox, and the hold on all that runs in it. */
interface Cgroup extends Account {
  /** A process that writes 0 into each of these is inside, with all that it starts. */
  readonly entrances: readonly string[];
}

export interface CgroupTree {
  /** Recorded with the driver's version, because the two generations do not count alike. */
  readonly version: 'v1' | 'v2';
  create(name: string): Cgroup;
}

/** One core's worth of time, in each tenth of a second: no agent thinks with more cores than its opponent. */
const periodUs = 100_000;
const parentName = 'agon';
const destroyMs = 20_000;
/** All sandboxes together weigh as much as a busy process on every core; a group's default is that of a single one. */
const weight = { v1: 1_024 * cpus().length, v2: Math.min(100 * cpus().length, 10_000) };
const controllers = ['memory', 'pids', 'cpu'] as const;

const unheld = (reason: string): AgonError => unavailable(reason, 'The process driver cannot hold its limits here');

const put = (folder: string, file: string, value: number | string): void =>
  writeFileSync(join(folder, file), String(value));

const ensureFolder = (folder: string): void => {
  if (!existsSync(folder)) mkdirSync(folder);
};

/** A counter that is read on every turn: the file stays open, and a read is one system call. */
class Counter {
  private readonly fd: number;
  private readonly bytes = Buffer.alloc(4_096);

  constructor(file: string) {
    this.fd = openSync(file, 'r');
  }

  text(): string {
    return this.bytes.toString('latin1', 0, readSync(this.fd, this.bytes, 0, this.bytes.length, 0));
  }

  close(): void {
    closeSync(this.fd);
  }
}

const field = (text: string, name: string): number =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN);

const readNumber = (folder: string, file: string): number => Number(readFileSync(join(folder, file), 'latin1'));

/** Both generations kill alike: until nobody is left, since a process that forks can be quicker than one round. */
async function destroy(folders: readonly string[], kill: () => void): Promise<void> {
  const deadlineMs = performance.now() + destroyMs;
  for (let waitMs = 1; ; waitMs = Math.min(2 * waitMs, 50)) {
    kill();
    const left = folders.filter((folder) => !removed(folder));
    if (left.length === 0) return;
    if (performance.now() > deadlineMs) {
      throw new AgonError('SANDBOX.NOT_DESTROYED', `${left.join(' and ')} cannot be emptied.`, { left });
    }
    await sleep(waitMs);
  }
}

function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return !existsSync(folder);
  }
}

function killListed(folder: string): void {
  let listed: string;
  try {
    listed = readFileSync(join(folder, 'cgroup.procs'), 'latin1');
  } catch {
    return;
  }
  for (const pid of listed.split('\n').map(Number)) {
    try {
      if (pid > 0) process.kill(pid, 'SIGKILL');
    } catch {
      // It ended by itself.
    }
  }
}

/** One folder a controller; two of them may share one. */
type Folders = Readonly<Record<(typeof controllers)[number] | 'cpuacct', string>>;

class CgroupV1 implements Cgroup {
  readonly clock = 'cpu';
  readonly entrances: readonly string[];
  private readonly cpu: Counter;

  constructor(private readonly folders: Folders) {
    const all = [...new Set(Object.values(folders))];
    for (const folder of all) mkdirSync(folder);
    this.entrances = all.map((folder) => join(folder, 'cgroup.procs'));
    put(folders.cpu, 'cpu.cfs_period_us', periodUs);
    put(folders.cpu, 'cpu.cfs_quota_us', periodUs);
    this.cpu = new Counter(join(folders.cpuacct, 'cpuacct.usage'));
  }

  limit({ memoryBytes, tasks }: GroupLimits): void {
    const { memory, pids } = this.folders;
    const file = join(memory, 'memory.memsw.limit_in_bytes');
    const swap = existsSync(file);
    // The limit with swap can never be below the one without, so lowering and raising go in opposite orders.
    const names = ['memory.limit_in_bytes', ...(swap ? ['memory.memsw.limit_in_bytes'] : [])];
    const raising = memoryBytes > readNumber(memory, 'memory.limit_in_bytes');
    for (const name of raising ? names.reverse() : names) put(memory, name, memoryBytes);
    put(memory, 'memory.max_usage_in_bytes', 0);
    put(pids, 'pids.max', tasks);
  }

  spentMs(): number {
    return Number(this.cpu.text()) / 1e6;
  }

  memoryBytes(): number {
    return readNumber(this.folders.memory, 'memory.usage_in_bytes');
  }

  peakMemoryBytes(): number {
    return readNumber(this.folders.memory, 'memory.max_usage_in_bytes');
  }

  oomKills(): number {
    return field(readFileSync(join(this.folders.memory, 'memory.oom_control'), 'latin1'), 'oom_kill');
  }

  async destroy(): Promise<void> {
    this.cpu.close();
    await destroy([...new Set(Object.values(this.folders))], () => killListed(this.folders.pids));
  }
}

class CgroupV2 implements Cgroup {
  readonly clock = 'cpu';
  readonly entrances: readonly string[];
  private readonly cpu: Counter;

  constructor(private readonly folder: string) {
    ensureFolder(folder);
    this.entrances = [join(folder, 'cgroup.procs')];
    put(folder, 'cpu.max', `${periodUs} ${periodUs}`);
    put(folder, 'memory.oom.group', 1);
    this.cpu = new Counter(join(folder, 'cpu.stat'));
  }

  limit({ memoryBytes, tasks }: GroupLimits): void {
    put(this.folder, 'memory.max', memoryBytes);
    if (existsSync(join(this.folder, 'memory.swap.max'))) put(this.folder, 'memory.swap.max', 0);
    put(this.folder, 'pids.max', tasks);
  }

  spentMs(): number {
    return field(this.cpu.text(), 'usage_usec') / 1e3;
  }

  memoryBytes(): number {
    return readNumber(this.folder, 'memory.current');
  }

  /** Kernels before 5.19 keep no peak; what is in use now is then the best that is known. */
  peakMemoryBytes(): number {
    const kept = existsSync(join(this.folder, 'memory.peak'));
    return readNumber(this.folder, kept ? 'memory.peak' : 'memory.current');
  }

  oomKills(): number {
    return field(readFileSync(join(this.folder, 'memory.events'), 'latin1'), 'oom_kill');
  }

  async destroy(): Promise<void> {
    this.cpu.close();
    await destroy([this.folder], () => {
      if (existsSync(join(this.folder, 'cgroup.kill'))) put(this.folder, 'cgroup.kill', 1);
      else killListed(this.folder);
    });
  }
}

interface Mount {
  readonly folder: string;
  readonly kind: string;
  readonly options: readonly string[];
}

const mountsOf = (text: string): Mount[] =>
  text.split('\n').flatMap((line) => {
    const [, folder, kind, options] = line.split(' ');
    return folder && kind?.startsWith('cgroup') ? [{ folder, kind, options: options?.split(',') ?? [] }] : [];
  });

/** Groups of a host that was killed stay behind, empty. Their names begin with the host's process id. */
function sweep(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = Number(/^(\d+)-/.exec(name)?.[1]);
    if (pid > 0 && !existsSync(`/proc/${pid}`)) removed(join(parent, name));
  }
}

/** `mounts` and `own` are /proc/mounts and /proc/self/cgroup. */
export function findCgroups(mounts: string, own: string): CgroupTree {
  const all = mountsOf(mounts);
  const holding = (controller: string) =>
    all.find(({ kind, options }) => kind === 'cgroup' && options.includes(controller))?.folder;
  const v1 = [...controllers, 'cpuacct'].map((name) => [name, holding(name)] as const);
  if (v1.some(([, folder]) => folder !== undefined)) {
    const missing = v1.filter(([, folder]) => folder === undefined).map(([name]) => name);
    if (missing.length > 0) throw unheld(`the cgroup controllers ${missing.join(', ')} are not mounted`);
    return treeV1(v1 as readonly (readonly [string, string])[]);
  }
  const unified = all.find(({ kind }) => kind === 'cgroup2')?.folder;
  if (unified === undefined) throw unheld('no cgroup hierarchy is mounted');
  return treeV2(join(unified, /^0::(.*)$/m.exec(own)?.[1] ?? '/'));
}

function treeV1(mounted: readonly (readonly [string, string])[]): CgroupTree {
  const parents = mounted.map(([name, folder]) => [name, join(folder, parentName)] as const);
  for (const [name, parent] of parents) {
    try {
      ensureFolder(parent);
      sweep(parent);
      if (name === 'cpu') put(parent, 'cpu.shares', weight.v1);
    } catch (error) {
      throw unheld(`the ${name} cgroup cannot be written (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  return {
    version: 'v1',
    create: (name) =>
      new CgroupV1(Object.fromEntries(parents.map(([of, parent]) => [of, join(parent, name)])) as Folders),
  };
}

/** Below our own group: whoever set limits on the arena as a whole keeps them. */
function treeV2(own: string): CgroupTree {
  const parent = join(own, parentName);
  try {
    delegate(own);
    ensureFolder(parent);
    delegate(parent);
    put(parent, 'cpu.weight', weight.v2);
    sweep(parent);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw unheld(
      `the cgroup ${own} is not delegated to this user with memory, pids and cpu (${code ?? message}); ` +
        'run the arena as a service with Delegate=yes, or as root',
    );
  }
  return { version: 'v2', create: (name) => new CgroupV2(join(parent, name)) };
}

/** A group that hands out controllers may hold no process itself, so those inside step aside first. */
function delegate(folder: string): void {
  const granted = readFileSync(join(folder, 'cgroup.controllers'), 'latin1').trim().split(' ');
  const missing = controllers.filter((name) => !granted.includes(name));
  if (missing.length > 0) throw new Error(`no ${missing.join(', ')}`);
  const enable = () => put(folder, 'cgroup.subtree_control', controllers.map((name) => `+${name}`).join(' '));
  try {
    enable();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
    const aside = join(folder, 'host');
    ensureFolder(aside);
    for (const pid of readFileSync(join(folder, 'cgroup.procs'), 'latin1').trim().split('\n')) {
      put(aside, 'cgroup.procs', pid);
    }
    enable();
  }
}
