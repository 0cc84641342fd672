import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compiledCell, inherited, root } from './paths.js';
import {
  type CellAnswer,
  type CellWork,
  type FromCell,
  type Markers,
  type Progress,
  readMarkers,
  type ToCell,
} from './protocol.js';

interface CellOptions {
  /** An open cell starts processes, which Node's permissions would not let it. Its agents have walls of their own. */
  readonly open: boolean;
  /** For specs that need a cell which misbehaves. */
  readonly cellFile?: string | undefined;
}

/** How a cell ended in the middle of its work. */
export interface CellDeath {
  readonly kind: 'died';
  readonly how: string;
  readonly timedOut: boolean;
  readonly markers: Markers;
}

/** What a cell is busy with. */
interface Task {
  readonly order: number;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly settle: (answer: CellAnswer | CellDeath) => void;
  readonly watchdog: NodeJS.Timeout;
  timedOut: boolean;
}

/** Of the cell's own JavaScript; agents' memory is WebAssembly memory and has its own cap. */
const heapMegabytes = 128;
const startMs = 30_000;
let orders = 0;

/**
 * The native stack of a cell is made larger than what QuickJS may use, so that QuickJS is always the one to notice an
 * overflow, at the same depth on every run.
 */
const nativeStackKilobytes = 3_900;

/** Node's own permissions are a second fence: even code that got out of WebAssembly could write and start nothing. */
function permissionFlags(): string[] {
  const flag = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
  return [flag, `--allow-fs-read=${join(root, '*')}`, '--allow-worker', '--no-warnings'];
}

/** A file that only its two descriptors know: it has no name any more by the time the cell starts. */
function openMarkers(): number {
  const folder = mkdtempSync(join(tmpdir(), 'agon-cell-'));
  try {
    return openSync(join(folder, 'markers'), 'w+', 0o600);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readWhole(fd: number): string {
  const bytes = Buffer.alloc(fstatSync(fd).size);
  // The descriptor's own offset is shared with the cell, so the position is given.
  const length = readSync(fd, bytes, 0, bytes.length, 0);
  return bytes.toString('latin1', 0, length);
}

/** The host's side of one cell: starts it, gives it work, kills it, and knows who was on the move when it died. */
export class CellProcess {
  readonly open: boolean;
  /** It takes work from now on, or is gone already. */
  readonly started: Promise<void>;
  /** The process is gone and everything it wrote has been read. */
  readonly gone: Promise<void>;
  ready = false;
  /** Ended by us, which is no agent's fault. */
  killed = false;
  /** How it ended, once it has. */
  how: string | undefined;
  private readonly child: ChildProcess;
  private readonly markersFd = openMarkers();
  private task: Task | undefined;
  private ending = false;
  private written = '';
  private errors = '';

  constructor({ open, cellFile }: CellOptions) {
    this.open = open;
    this.child = fork(cellFile ?? compiledCell(), [], {
      execArgv: [
        `--max-old-space-size=${heapMegabytes}`,
        `--stack-size=${nativeStackKilobytes}`,
        ...(cellFile === undefined && !open ? permissionFlags() : []),
      ],
      // Local time must be the same everywhere; nothing else of the host's environment is a cell's business.
      env: { TZ: 'UTC', ...inherited(open ? ['PATH', 'HOME', 'SystemRoot'] : ['SystemRoot']) },
      // The fourth place is `markerFd` on the other side.
      stdio: ['ignore', 'ignore', 'pipe', this.markersFd, 'ipc'],
      // In a process group of its own: Ctrl-C and a terminal that closes are ours to hear. The match in hand is played on.
      detached: true,
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.errors = (this.errors + text).slice(-2_000);
    });
    // A failed send is followed by the exit, which is where the failure is handled.
    this.child.on('error', () => {});
    this.gone = new Promise((resolve) => {
      this.child.on('close', (code, signal) => resolve(this.bury(signal ?? `exit code ${code}`)));
      if (this.child.pid === undefined) setImmediate(() => resolve(this.bury('could not be started')));
    });
    const watchdog = setTimeout(() => this.end(), startMs);
    this.started = new Promise<void>((resolve) => {
      this.child.on('message', (message: FromCell) => {
        if (message.kind !== 'ready') return this.hear(message);
        this.ready = true;
        resolve();
      });
      void this.gone.then(resolve);
    }).finally(() => clearTimeout(watchdog));
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get busy(): boolean {
    return this.task !== undefined;
  }

  /** Whether it can be given work. One that was told to end may not know of it yet. */
  get idle(): boolean {
    return this.ready && !this.busy && !this.ending && this.how === undefined;
  }

  /** The last lines of what the process printed before it died. */
  get lastWords(): string {
    return this.errors.trim();
  }

  /** One thing at a time. There is an answer in any case: the cell's, or how it ended, at the latest after `wallMs`. */
  ask(work: CellWork, wallMs: number, onProgress?: (progress: Progress) => void): Promise<CellAnswer | CellDeath> {
    return new Promise((settle) => {
      const order = ++orders;
      const watchdog = setTimeout(() => {
        task.timedOut = true;
        this.end();
      }, wallMs);
      const task: Task = { order, onProgress, settle, watchdog, timedOut: false };
      this.task = task;
      if (this.how === undefined) this.child.send({ ...work, order } satisfies ToCell);
      else this.fail(this.how);
    });
  }

  async kill(): Promise<void> {
    this.killed = true;
    this.end();
    await this.gone;
  }

  /** Asks an idle cell to leave. Cutting the channel instead can swallow the event that tells of the exit. */
  async release(): Promise<void> {
    if (!this.ending && this.child.connected) this.child.send({ kind: 'leave' } satisfies ToCell);
    this.ending = true;
    await this.gone;
  }

  private end(): void {
    this.ending = true;
    this.child.kill('SIGKILL');
  }

  private hear(message: Exclude<FromCell, { kind: 'ready' }>): void {
    const task = this.task;
    if (message.order !== task?.order) return;
    if (message.kind === 'progress') task.onProgress?.(message.progress);
    else this.settle(message);
  }

  private bury(how: string): void {
    if (this.how !== undefined) return;
    this.how = how;
    this.written = readWhole(this.markersFd);
    closeSync(this.markersFd);
    this.fail(how);
  }

  private fail(how: string): void {
    if (!this.task) return;
    const { order, timedOut } = this.task;
    this.settle({ kind: 'died', how, timedOut, markers: readMarkers(this.written, order) });
  }

  private settle(answer: CellAnswer | CellDeath): void {
    const task = this.task;
    this.task = undefined;
    clearTimeout(task?.watchdog);
    task?.settle(answer);
  }
}
