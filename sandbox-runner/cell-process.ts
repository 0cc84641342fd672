import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compiledCell, root } from './paths.js';
import { type FromCell, type Markers, readMarkers, type ToCell } from './protocol.js';

interface CellOptions {
  /** For specs that need a cell which misbehaves. */
  readonly file?: string | undefined;
  /** An open cell starts processes, which Node's permissions would not let it. Its agents have walls of their own. */
  readonly open: boolean;
  /** Heap of the cell's own JavaScript; agents' memory is WebAssembly memory and has its own cap. */
  readonly heapMegabytes?: number | undefined;
}

interface CellEvents {
  ready(): void;
  message(message: FromCell): void;
  /** The process is gone and everything it wrote has been read. */
  gone(how: string): void;
}

const heapMegabytes = 128;
const startMs = 30_000;

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

const environment = (names: readonly string[]): NodeJS.ProcessEnv =>
  Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));

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

/** The host's side of one cell: starts it, talks to it, kills it, and knows who was on the move when it died. */
export class CellProcess {
  private readonly child: ChildProcess;
  private readonly markersFd = openMarkers();
  private written = '';
  private errors = '';
  private released = false;

  constructor(options: CellOptions, events: CellEvents) {
    this.child = fork(options.file ?? compiledCell(), [], {
      execArgv: [
        `--max-old-space-size=${options.heapMegabytes ?? heapMegabytes}`,
        `--stack-size=${nativeStackKilobytes}`,
        ...(options.file === undefined && !options.open ? permissionFlags() : []),
      ],
      // Local time must be the same everywhere; nothing else of the host's environment is a cell's business.
      env: { TZ: 'UTC', ...environment(options.open ? ['PATH', 'HOME', 'SystemRoot'] : ['SystemRoot']) },
      // The fourth place is `markerFd` on the other side.
      stdio: ['ignore', 'ignore', 'pipe', this.markersFd, 'ipc'],
      // In a process group of its own: Ctrl-C and a terminal that closes are ours to hear. The match in hand is played on.
      detached: true,
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.errors = (this.errors + text).slice(-2_000);
    });
    const watchdog = setTimeout(() => this.kill(), startMs);
    this.child.on('message', (message: FromCell) => {
      if (message.kind !== 'ready') return events.message(message);
      clearTimeout(watchdog);
      events.ready();
    });
    // A failed send is followed by the exit, which is where the failure is handled.
    this.child.on('error', () => {});
    let closed = false;
    const gone = (how: string): void => {
      if (closed) return;
      closed = true;
      clearTimeout(watchdog);
      this.written = readWhole(this.markersFd);
      closeSync(this.markersFd);
      events.gone(how);
    };
    this.child.on('close', (code, signal) => gone(signal ?? `exit code ${code}`));
    if (this.child.pid === undefined) setImmediate(() => gone('could not be started'));
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** The last lines of what the process printed before it died. */
  get lastWords(): string {
    return this.errors.trim();
  }

  send(message: ToCell): void {
    this.child.send(message);
  }

  /** Only known after the process is gone. */
  markers(order: number): Markers {
    return readMarkers(this.written, order);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  /** Asks an idle cell to leave. Cutting the channel instead can swallow the event that tells of the exit. */
  release(): void {
    if (!this.released && this.child.connected) this.child.send({ kind: 'leave' } satisfies ToCell);
    this.released = true;
  }
}
