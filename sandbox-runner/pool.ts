import { availableParallelism } from 'node:os';
import { type AgentRuntime, AgonError, invariant } from '../services/kernel/index.js';
import { type CellDeath, CellProcess } from './cell-process.js';
import type { SourceCheck } from './drivers/driver.js';
import { assertSeats, gameNamed } from './games/index.js';
import { type Limits, limitsFrom } from './limits.js';
import { assertDigest, type CellWork, type MatchJob, type Progress, setupOf } from './protocol.js';
import { forfeit, type MatchRecord } from './referee.js';

export interface PoolOptions {
  /** Cells kept warm, each playing one match at a time. Defaults to one a core. */
  readonly size?: number;
  /** Jobs that may wait for a cell before `play` refuses more. */
  readonly queueLength?: number;
  /** Open cells can play agents of every runtime, and have one wall less for those that need none. */
  readonly open?: boolean;
  readonly cellFile?: string;
}

type Work = Extract<CellWork, { kind: 'play' | 'check' }>;

interface Task {
  readonly work: Work;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  /** The seat in whose turn a cell died while it played this match, if one did. */
  readonly suspect: number | undefined;
  readonly resolve: (value: MatchRecord | SourceCheck) => void;
  readonly reject: (error: AgonError) => void;
}

/** A cell that cannot even start several times in a row will not start the next time either. */
const startAttempts = 3;

/**
 * Keeps cells warm and gives each one match at a time. The promise of `play` always settles: with a record, or with an
 * AgonError. `SANDBOX.CELL_DIED` means that nobody is to blame and the match may be played again.
 */
export class CellPool {
  private readonly options: PoolOptions & Required<Pick<PoolOptions, 'size' | 'queueLength' | 'open'>>;
  private readonly cells = new Set<CellProcess>();
  private readonly queue: Task[] = [];
  private readonly unsettled = new Set<Promise<unknown>>();
  private failedStarts = 0;
  private closed = false;
  private killing = false;

  constructor(options: PoolOptions = {}) {
    this.options = { size: availableParallelism(), queueLength: 10_000, open: false, ...options };
    invariant(this.options.size > 0, 'A pool has at least one cell.');
    this.dispatch();
  }

  /** Process ids of the cells, for operators. */
  get pids(): readonly number[] {
    return [...this.cells].flatMap(({ pid }) => pid ?? []);
  }

  get waiting(): number {
    return this.queue.length;
  }

  /** A match that has to be played again from the start says its turns again. */
  async play(job: MatchJob, onProgress?: (progress: Progress) => void): Promise<MatchRecord> {
    assertSeats(gameNamed(job.game), job.agents.length);
    for (const { source, codeDigest } of job.agents) assertDigest(source, codeDigest, { matchId: job.matchId });
    const work = { kind: 'play', job, limits: limitsFrom(job.limits), live: onProgress !== undefined } as const;
    return (await this.submit(work, onProgress)) as MatchRecord;
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
    // A match under way may still have to be played again, so no cell leaves before all of them are done.
    else await Promise.allSettled(this.unsettled);
    await Promise.all([...this.cells].map((cell) => (kill || !cell.ready ? cell.kill() : cell.release())));
  }

  private submit(work: Work, onProgress?: (progress: Progress) => void): Promise<MatchRecord | SourceCheck> {
    if (this.closed) throw poolClosed();
    if (this.queue.length >= this.options.queueLength) {
      throw new AgonError('SANDBOX.QUEUE_FULL', `${this.queue.length} jobs are waiting for a cell already.`);
    }
    const submitted = new Promise<MatchRecord | SourceCheck>((resolve, reject) => {
      this.queue.push({ work, onProgress, suspect: undefined, resolve, reject });
    }).finally(() => this.unsettled.delete(submitted));
    this.unsettled.add(submitted);
    this.dispatch();
    return submitted;
  }

  /**
   * Gives waiting tasks to idle cells, and starts what is missing of cells: while closing, only as long as somebody still
   * waits for one.
   */
  private dispatch(): void {
    while (this.cells.size < this.options.size && (!this.closed || this.queue.length > 0)) {
      void this.tend(new CellProcess(this.options));
    }
    for (const cell of this.cells) {
      const task = cell.idle ? this.queue.shift() : undefined;
      if (task) void this.carryOut(task, cell);
    }
  }

  /** The life of a cell. */
  private async tend(cell: CellProcess): Promise<void> {
    this.cells.add(cell);
    await cell.started;
    if (cell.ready) this.failedStarts = 0;
    this.dispatch();
    await cell.gone;
    this.cells.delete(cell);
    this.failedStarts = cell.ready ? 0 : this.failedStarts + 1;
    if (this.failedStarts >= startAttempts) {
      const message = `Cells do not start: ${cell.how}.`;
      const error = new AgonError('SANDBOX.CELL_START_FAILED', message, { output: cell.lastWords });
      this.failedStarts = 0;
      for (const task of this.queue.splice(0)) task.reject(error);
    } else {
      this.dispatch();
    }
  }

  private async carryOut(task: Task, cell: CellProcess): Promise<void> {
    const answer = await cell.ask(task.work, task.work.limits.wallMs, task.onProgress);
    if (answer.kind === 'played') task.resolve(answer.record);
    else if (answer.kind === 'checked') task.resolve(answer.check);
    else if (answer.kind === 'failed') task.reject(new AgonError(answer.code, answer.message));
    else if (answer.kind === 'died') this.judge(task, cell, answer);
    this.dispatch();
  }

  /** Decides what the death of a cell means for the match it was playing. */
  private judge(task: Task, { lastWords: output }: CellProcess, { how, timedOut, markers }: CellDeath): void {
    const { work, suspect } = task;
    const { seat, turns } = markers;
    const died = `A cell died (${how}); the match may be played again.`;
    if (this.killing && !timedOut) {
      task.reject(poolClosed());
    } else if (seat === undefined) {
      // No agent's code has run yet, so the failure is the arena's own.
      task.reject(new AgonError('SANDBOX.CELL_DIED', died, { retryable: true, output }));
    } else if (timedOut) {
      task.resolve(lost(work, turns, seat, 'timeout', `stopped by the watchdog after ${work.limits.wallMs} ms`));
    } else if (suspect === undefined) {
      // Once may be an accident of the machine. The match is played again from the start, ahead of the others.
      this.queue.unshift({ ...task, suspect: seat });
    } else if (suspect !== seat) {
      task.reject(new AgonError('SANDBOX.CELL_DIED', died, { retryable: true, output }));
    } else {
      task.resolve(lost(work, turns, seat, 'crash', `the cell died twice in this seat's turn (${how})`));
    }
  }
}

function lost(
  work: Work,
  turns: MatchRecord['turns'],
  seat: number,
  reason: 'timeout' | 'crash',
  detail: string,
): MatchRecord | SourceCheck {
  if (work.kind === 'check') return { ok: false, rule: reason, detail };
  return forfeit({ ...setupOf(work.job, work.limits), turns, seat, reason, detail });
}

const poolClosed = (): AgonError => new AgonError('SANDBOX.CLOSED', 'The pool of cells has been closed.');
