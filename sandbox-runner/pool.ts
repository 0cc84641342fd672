import { availableParallelism } from 'node:os';
import { type AgentRuntime, AgonError, invariant } from '../services/kernel/index.js';
import { CellProcess } from './cell-process.js';
import type { SourceCheck } from './drivers/driver.js';
import { assertSeats, gameNamed } from './games/index.js';
import { type Limits, limitsFrom } from './limits.js';
import {
  assertDigest,
  driverNames,
  type FromCell,
  type MatchJob,
  type Progress,
  runtimesOf,
  type ToCell,
} from './protocol.js';
import { forfeit, type MatchRecord } from './referee.js';

export interface PoolOptions {
  /** Cells kept warm, each playing one match at a time. Defaults to one a core. */
  readonly size?: number;
  /** Jobs that may wait for a cell before `play` refuses more. */
  readonly queueLength?: number;
  readonly heapMegabytes?: number;
  /** Open cells can play agents of every runtime, and have one wall less for those that need none. */
  readonly open?: boolean;
  readonly cellFile?: string;
}

type Work =
  | {
      readonly kind: 'play';
      readonly job: MatchJob;
      readonly limits: Limits;
      readonly onProgress?: ((progress: Progress) => void) | undefined;
    }
  | { readonly kind: 'check'; readonly source: string; readonly runtime: AgentRuntime; readonly limits: Limits };

interface Task {
  readonly work: Work;
  /** The seat in whose turn a cell died while it played this match, if one did. */
  suspect: number | undefined;
  readonly resolve: (value: MatchRecord | SourceCheck) => void;
  readonly reject: (error: AgonError) => void;
}

interface Cell {
  readonly process: CellProcess;
  ready: boolean;
  running: { readonly task: Task; readonly order: number; readonly watchdog: NodeJS.Timeout } | undefined;
  timedOut: boolean;
}

/** A cell that cannot even start several times in a row will not start the next time either. */
const startAttempts = 3;

/**
 * Keeps cells warm and gives each one match at a time. The promise of `play` always settles: with a record, or with an
 * AgonError. `SANDBOX.CELL_DIED` means that nobody is to blame and the match may be played again.
 *
 * @example const record = await pool.play({ matchId, game: 'connect-four', seed, agents });
 */
export class CellPool {
  private readonly options: PoolOptions & Required<Pick<PoolOptions, 'size' | 'queueLength' | 'open'>>;
  private readonly cells = new Set<Cell>();
  private readonly queue: Task[] = [];
  private orders = 0;
  private failedStarts = 0;
  private closed = false;
  private killing = false;
  private readonly whenChanged: (() => void)[] = [];

  constructor(options: PoolOptions = {}) {
    this.options = { size: availableParallelism(), queueLength: 10_000, open: false, ...options };
    invariant(this.options.size > 0, 'A pool has at least one cell.');
    this.fill();
  }

  /** Process ids of the cells, for operators. */
  get pids(): readonly number[] {
    return [...this.cells].flatMap((cell) => cell.process.pid ?? []);
  }

  get waiting(): number {
    return this.queue.length;
  }

  /** A match that has to be played again from the start says its turns again. */
  async play(job: MatchJob, onProgress?: (progress: Progress) => void): Promise<MatchRecord> {
    assertSeats(gameNamed(job.game), job.agents.length);
    for (const { source, codeDigest } of job.agents) assertDigest(source, codeDigest, { matchId: job.matchId });
    return (await this.submit({ kind: 'play', job, limits: limitsFrom(job.limits), onProgress })) as MatchRecord;
  }

  /** Says at submission whether a source could play at all. */
  async check(
    source: string,
    runtime: AgentRuntime = 'javascript',
    limits: Partial<Limits> = {},
  ): Promise<SourceCheck> {
    return (await this.submit({ kind: 'check', source, runtime, limits: limitsFrom(limits) })) as SourceCheck;
  }

  /** Waits for the matches under way, or with `kill` gives them up. No cell is left behind either way. */
  async close({ kill = false }: { readonly kill?: boolean } = {}): Promise<void> {
    this.closed = true;
    this.killing ||= kill;
    if (kill) for (const task of this.queue.splice(0)) task.reject(poolClosed());
    while (this.cells.size > 0) {
      // A match under way may still have to be played again, so no cell leaves before all of them are done.
      const busy = this.queue.length > 0 || [...this.cells].some((cell) => cell.running);
      for (const cell of this.cells) {
        if (kill || (!busy && !cell.ready)) cell.process.kill();
        else if (!busy) cell.process.release();
      }
      await new Promise<void>((resolve) => this.whenChanged.push(resolve));
    }
  }

  private submit(work: Work): Promise<MatchRecord | SourceCheck> {
    if (this.closed) throw poolClosed();
    if (this.queue.length >= this.options.queueLength) {
      throw new AgonError('SANDBOX.QUEUE_FULL', `${this.queue.length} jobs are waiting for a cell already.`);
    }
    return new Promise((resolve, reject) => {
      this.queue.push({ work, suspect: undefined, resolve, reject });
      this.fill();
      this.dispatch();
    });
  }

  /** Starts what is missing of the cells. While closing, only as long as somebody still waits for one. */
  private fill(): void {
    while (this.cells.size < this.options.size && (!this.closed || this.queue.length > 0)) this.start();
  }

  private start(): void {
    const { cellFile: file, heapMegabytes, open } = this.options;
    const process = new CellProcess(
      { file, heapMegabytes, open },
      {
        ready: () => {
          this.failedStarts = 0;
          cell.ready = true;
          this.dispatch();
          this.changed();
        },
        message: (message) => this.finish(cell, message),
        gone: (how) => this.bury(cell, how),
      },
    );
    const cell: Cell = { process, ready: false, running: undefined, timedOut: false };
    this.cells.add(cell);
  }

  private dispatch(): void {
    for (const cell of this.cells) {
      if (!cell.ready || cell.running !== undefined) continue;
      const task = this.queue.shift();
      if (task === undefined) return;
      const order = ++this.orders;
      const watchdog = setTimeout(() => {
        cell.timedOut = true;
        cell.process.kill();
      }, task.work.limits.wallMs);
      cell.running = { task, order, watchdog };
      cell.process.send(messageOf(task.work, order));
    }
  }

  private finish(cell: Cell, message: FromCell): void {
    const running = cell.running;
    if (running === undefined || message.kind === 'ready' || message.order !== running.order) return;
    if (message.kind === 'progress') {
      if (running.task.work.kind === 'play') running.task.work.onProgress?.(message.progress);
      return;
    }
    clearTimeout(running.watchdog);
    // The verdict is already here; that the watchdog fired in the same moment no longer matters to this match.
    cell.running = undefined;
    if (cell.timedOut) cell.ready = false;
    this.dispatch();
    if (message.kind === 'played') running.task.resolve(message.record);
    else if (message.kind === 'checked') running.task.resolve(message.check);
    else if (message.kind === 'failed') running.task.reject(new AgonError(message.code, message.message));
    this.changed();
  }

  private bury(cell: Cell, how: string): void {
    this.cells.delete(cell);
    if (cell.running) {
      clearTimeout(cell.running.watchdog);
      this.judge(cell, cell.running, how);
    }
    this.failedStarts = cell.ready || cell.timedOut ? 0 : this.failedStarts + 1;
    if (this.failedStarts >= startAttempts) {
      const error = new AgonError('SANDBOX.CELL_START_FAILED', `Cells do not start: ${how}.`, {
        output: cell.process.lastWords,
      });
      this.failedStarts = 0;
      for (const task of this.queue.splice(0)) task.reject(error);
    } else {
      this.fill();
    }
    this.changed();
  }

  /** Decides what the death of a cell means for the match it was playing. */
  private judge(cell: Cell, { task, order }: NonNullable<Cell['running']>, how: string): void {
    const { seat, turns } = cell.process.markers(order);
    const { work } = task;
    if (this.killing && !cell.timedOut) {
      task.reject(poolClosed());
    } else if (seat === undefined) {
      // No agent's code has run yet, so the failure is the arena's own.
      task.reject(cellDied(how, cell));
    } else if (cell.timedOut) {
      task.resolve(lost(work, turns, seat, 'timeout', `stopped by the watchdog after ${work.limits.wallMs} ms`));
    } else if (task.suspect === undefined) {
      // Once may be an accident of the machine. The match is played again from the start, ahead of the others.
      task.suspect = seat;
      this.queue.unshift(task);
    } else if (task.suspect !== seat) {
      task.reject(cellDied(how, cell));
    } else {
      task.resolve(lost(work, turns, seat, 'crash', `the cell died twice in this seat's turn (${how})`));
    }
  }

  private changed(): void {
    for (const wake of this.whenChanged.splice(0)) wake();
  }
}

function messageOf(work: Work, order: number): ToCell {
  if (work.kind === 'check') return { ...work, order };
  return { kind: 'play', order, job: work.job, limits: work.limits, live: work.onProgress !== undefined };
}

function lost(
  work: Work,
  turns: MatchRecord['turns'],
  seat: number,
  reason: 'timeout' | 'crash',
  detail: string,
): MatchRecord | SourceCheck {
  if (work.kind === 'check') return { ok: false, rule: reason, detail };
  const { job, limits } = work;
  return forfeit({
    game: gameNamed(job.game),
    seed: job.seed,
    driver: driverNames(runtimesOf(job)),
    agents: job.agents.map((agent) => agent.codeDigest),
    turns,
    limits,
    seat,
    reason,
    detail,
  });
}

const poolClosed = (): AgonError => new AgonError('SANDBOX.CLOSED', 'The pool of cells has been closed.');

const cellDied = (how: string, cell: Cell): AgonError =>
  new AgonError('SANDBOX.CELL_DIED', `A cell died (${how}); the match may be played again.`, {
    retryable: true,
    output: cell.process.lastWords,
  });
