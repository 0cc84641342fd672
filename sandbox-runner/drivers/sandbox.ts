import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { AgonError } from '../../services/kernel/index.js';
import type { GroupLimits } from './cgroup.js';

/** What holds a sandbox and keeps its accounts: a cgroup, or the engine of a container. */
export interface Account {
  /** Whether `spentMs` is CPU time, which runs on between the turns too, or only the time on the wall. */
  readonly clock: 'cpu' | 'wall';
  limit(limits: GroupLimits): void;
  spentMs(): number;
  memoryBytes(): number;
  /** The most since the limits were set, where that can be known; otherwise ever. */
  peakMemoryBytes(): number;
  oomKills(): number;
  /** Kills everything inside, and takes the sandbox away once nothing is left. */
  destroy(): Promise<void>;
}

/** The program to start, and the descriptors on which it is spoken to. */
export interface Launch {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly requestFd: number;
  readonly replyFd: number;
  readonly printFds: readonly number[];
  /** Whose rights the program starts with; ours, if left out. */
  readonly userId?: number | undefined;
  /** Files that are opened for writing with our rights; their descriptors follow the others. */
  readonly opened?: readonly string[];
  /** The program first waits for a line on `requestFd`, in its limits and without rights, and only then makes walls. */
  readonly waits?: boolean;
  /** Read once, at the start. */
  readonly given?: { readonly fd: number; readonly bytes: Buffer };
}

/** @example options({ name: 'one', interactive: true }) // ['--name', 'one', '--interactive'] */
export const options = (given: Readonly<Record<string, string | number | true>>): string[] =>
  Object.entries(given).flatMap(([name, value]) => (value === true ? [`--${name}`] : [`--${name}`, `${value}`]));

/** Whoever uses a sandbox hears of these. */
interface SandboxEvents {
  line(text: string): void;
  /** A line is longer than any that was asked for. */
  overlong(): void;
  flood(): void;
  gone(how: string): void;
}

/** While the interpreter starts; an agent's own limits are set before its code arrives. */
const startLimits: GroupLimits = { memoryBytes: 512 * 1024 * 1024, tasks: 64 };
const startMs = 20_000;
const startLineBytes = 64;
/** All that is inside ends with the first process; if it does not, the account has to see to it. */
const endMs = 100;

/**
 * One sandbox: an account with a launcher in it, and once it is started an interpreter in its namespaces, which waits for
 * code. It serves one agent in one match and is then destroyed. The host speaks to it by pipes alone, and never looks at a
 * path that an agent could have made.
 */
export class Sandbox {
  private readonly child: ChildProcess;
  private readonly requests: Duplex;
  /** Memory of the empty sandbox, which is not the agent's to pay for. */
  baseMemoryBytes = 0;
  private readonly waits: boolean;
  private readonly closed: Promise<void>;
  private events: SandboxEvents | undefined;
  private line: Buffer[] = [];
  private lineBytes = 0;
  private maxLineBytes = startLineBytes;
  private output: Buffer[] = [];
  private keptBytes = 0;
  private printedBytes = 0;
  private logBytes = 4_096;
  private outputBytes = 65_536;
  private how: string | undefined;
  private destroyed: Promise<void> | undefined;

  constructor(
    launch: Launch,
    readonly account: Account,
  ) {
    const { requestFd, replyFd, printFds, given } = launch;
    this.waits = launch.waits === true;
    account.limit(startLimits);
    const used = [requestFd, replyFd, ...printFds, ...(given ? [given.fd] : [])];
    this.child = spawnWith(launch, used);
    const pipe = (fd: number): Duplex => this.child.stdio[fd] as Duplex;
    this.requests = pipe(requestFd);
    // Writing to a sandbox that has just died is no news: its end is heard of by `close`.
    for (const fd of used) pipe(fd)?.on('error', () => {});
    if (given) pipe(given.fd)?.end(given.bytes);
    for (const fd of printFds) pipe(fd)?.on('data', (chunk: Buffer) => this.print(chunk));
    pipe(replyFd)?.on('data', (chunk: Buffer) => this.read(chunk));
    this.child.on('error', (error) => this.gone(error.message));
    // By then all that it wrote has been read: with the first process ends its whole pid namespace.
    this.closed = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        this.gone(signal ?? exitText(code ?? 0));
        resolve();
      });
    });
  }

  /** Lets the launcher make the sandbox, and answers when the interpreter in it is ready for code. */
  async start(): Promise<this> {
    let watchdog: NodeJS.Timeout | undefined;
    const how = await new Promise<string | undefined>((resolve) => {
      watchdog = setTimeout(() => resolve(`not ready after ${startMs} ms`), startMs);
      this.events = {
        line: (text) => resolve(text === 'ready' ? undefined : `said ${JSON.stringify(text)}`),
        overlong: () => resolve('said too much'),
        flood: () => resolve('printed too much'),
        gone: resolve,
      };
      if (this.waits) this.send('start');
      if (this.how !== undefined) resolve(this.how);
    });
    clearTimeout(watchdog);
    this.events = undefined;
    if (how === undefined) {
      this.baseMemoryBytes = this.account.memoryBytes();
      return this;
    }
    const output = this.log().trim();
    await this.destroy();
    throw new AgonError('SANDBOX.START_FAILED', `A sandbox does not start: ${how}. ${output}`.trim(), { how, output });
  }

  /** The limits of one agent, and how much of it is listened to. */
  assign(
    events: SandboxEvents,
    limits: { memoryBytes: number; tasks: number; logBytes: number; outputBytes: number; lineBytes: number },
  ): void {
    const { memoryBytes, tasks } = limits;
    this.account.limit({ memoryBytes: this.baseMemoryBytes + memoryBytes, tasks });
    this.logBytes = limits.logBytes;
    this.outputBytes = limits.outputBytes;
    this.maxLineBytes = limits.lineBytes;
    this.events = events;
    if (this.how !== undefined) events.gone(this.how);
  }

  send(line: string): void {
    this.requests.write(`${line}\n`);
  }

  log(): string {
    return Buffer.concat(this.output).toString();
  }

  /** Safe to call at any time and more than once. */
  destroy(): Promise<void> {
    this.destroyed ??= this.destroyNow();
    return this.destroyed;
  }

  private async destroyNow(): Promise<void> {
    this.child.kill('SIGKILL');
    let patience: NodeJS.Timeout | undefined;
    const lost = new Promise<void>((resolve) => {
      patience = setTimeout(resolve, endMs);
    });
    await Promise.race([this.closed, lost]);
    clearTimeout(patience);
    await this.account.destroy();
  }

  private gone(how: string): void {
    this.how ??= how;
    this.events?.gone(this.how);
  }

  private read(chunk: Buffer): void {
    let rest = chunk;
    // An answer is mostly one piece, and nothing but it.
    if (this.lineBytes === 0 && rest.length <= this.maxLineBytes && rest.indexOf(10) === rest.length - 1) {
      this.events?.line(rest.toString('utf8', 0, rest.length - 1));
      return;
    }
    for (;;) {
      const end = rest.indexOf(10);
      this.lineBytes += end < 0 ? rest.length : end;
      if (this.lineBytes > this.maxLineBytes) {
        this.line = [];
        this.events?.overlong();
        return;
      }
      if (end < 0) {
        this.line.push(rest);
        return;
      }
      const line = Buffer.concat([...this.line, rest.subarray(0, end)]).toString();
      this.line = [];
      this.lineBytes = 0;
      rest = rest.subarray(end + 1);
      this.events?.line(line);
    }
  }

  private print(chunk: Buffer): void {
    const kept = chunk.subarray(0, Math.max(0, this.logBytes - this.keptBytes));
    if (kept.length > 0) this.output.push(kept);
    this.keptBytes += kept.length;
    this.printedBytes += chunk.length;
    if (this.printedBytes > this.outputBytes) this.events?.flood();
  }
}

function spawnWith(
  { program, args, environment = {}, userId, opened = [] }: Launch,
  piped: readonly number[],
): ChildProcess {
  const files = opened.map((file) => openSync(file, 'w'));
  const places = Array.from({ length: Math.max(...piped) + 1 }, (_, fd) => (piped.includes(fd) ? 'pipe' : 'ignore'));
  try {
    return spawn(program, args, {
      cwd: '/',
      env: { ...environment },
      ...(userId === undefined ? {} : { uid: userId, gid: userId }),
      // Descriptors that are not listed here are closed in the child.
      stdio: [...places, ...files],
    });
  } finally {
    for (const fd of files) closeSync(fd);
  }
}

/** Bubblewrap reports a signal as a shell does. */
const exitText = (code: number): string => (code > 128 ? `killed by signal ${code - 128}` : `exit code ${code}`);
