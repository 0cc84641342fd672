import { availableParallelism } from 'node:os';
import type { AgentRuntime } from '../services/kernel/index.js';
import type { AgentInstance, SourceCheck } from './drivers/driver.js';
import type { Egress } from './egress/egress.js';
import type { Limits } from './limits.js';
import { CellPool, type PoolOptions } from './pool.js';
import { hostedRuntime, type MatchJob, type Progress, type SeatOrder } from './protocol.js';
import type { MatchRecord } from './referee.js';
import { SeatCells } from './seat-cells.js';

/** A seat whose opponent thinks far away idles most of the time, so there may be more of them than cells for matches. */
const SEATS_A_CELL = 4;

/**
 * Cells for agents of every runtime. Those in JavaScript get the cells with the most walls around them; open cells, which
 * may start processes, are there from the first match that needs one.
 */
export class Cells {
  private readonly closed: CellPool;
  private open: CellPool | undefined;
  private readonly seats: SeatCells;

  /** Without `egress` no agent gets any. */
  constructor(
    private readonly options: PoolOptions = {},
    private readonly egress?: Egress,
  ) {
    this.closed = new CellPool(options);
    this.seats = new SeatCells({ ...options, max: SEATS_A_CELL * (options.size ?? availableParallelism()) });
  }

  /** Process ids of the cells, for operators. */
  get pids(): readonly number[] {
    return [...this.closed.pids, ...(this.open?.pids ?? []), ...this.seats.pids];
  }

  get waiting(): number {
    return this.closed.waiting + (this.open?.waiting ?? 0);
  }

  /** A match that has to be played again from the start says its turns again. */
  async play(job: MatchJob, onProgress?: (progress: Progress) => void): Promise<MatchRecord> {
    const pool = this.poolFor(job.agents.map(hostedRuntime));
    return this.egress ? this.egress.play(job, onProgress, pool.play.bind(pool)) : pool.play(job, onProgress);
  }

  /** Says at submission whether a source could play at all. */
  check(source: string, runtime: AgentRuntime = 'javascript', limits: Partial<Limits> = {}): Promise<SourceCheck> {
    return this.poolFor([runtime]).check(source, runtime, limits);
  }

  /** One agent alone, for a match that is refereed elsewhere. It has no egress. */
  seat(order: SeatOrder): Promise<AgentInstance> {
    return this.seats.seat(order);
  }

  /** Waits for the matches under way, or with `kill` gives them up. No cell is left behind either way. */
  async close(options: { readonly kill?: boolean } = {}): Promise<void> {
    await Promise.all([this.closed.close(options), this.open?.close(options), this.seats.close()]);
    this.egress?.close();
  }

  private poolFor(runtimes: readonly AgentRuntime[]): CellPool {
    if (runtimes.every((runtime) => runtime === 'javascript')) return this.closed;
    this.open ??= new CellPool({ ...this.options, open: true });
    return this.open;
  }
}
