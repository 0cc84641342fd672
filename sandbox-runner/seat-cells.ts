import { AgonError, invariant } from '../services/kernel/index.js';
import { CellProcess } from './cell-process.js';
import { type AgentInstance, type Completion, type Fault, fault, type Reply, type Usage } from './drivers/driver.js';
import type { Limits } from './limits.js';
import { assertDigest, type SeatCall, type SeatDriver, type SeatOrder } from './protocol.js';

interface SeatCellsOptions {
  /** Cells at a time; whoever comes later waits for one. */
  readonly max: number;
  readonly cellFile?: string;
}

/** For a cell to let its agent go. */
const STAND_MS = 30_000;

/**
 * Cells for single agents whose match is refereed elsewhere, because they meet somebody from outside. A cell holds one
 * agent at a time, so when it dies in a call there is no doubt whose code was running. Started when first needed.
 */
export class SeatCells {
  private readonly cells = new Set<CellProcess>();
  private readonly free = new Set<CellProcess>();
  private readonly waiting: (() => void)[] = [];
  private closed = false;

  constructor(private readonly options: SeatCellsOptions) {}

  get pids(): readonly number[] {
    return [...this.cells].flatMap(({ pid }) => pid ?? []);
  }

  async seat(order: SeatOrder): Promise<AgentInstance> {
    assertDigest(order.source, order.codeDigest);
    const cell = await this.take(order.runtime !== 'javascript');
    try {
      await cell.started;
      if (cell.killed) throw closed();
      if (!cell.idle) throw new AgonError('SANDBOX.CELL_START_FAILED', `A cell did not start: ${cell.how}.`);
      const answer = await cell.ask({ ...order, kind: 'seat' }, order.limits.wallMs);
      if (answer.kind === 'seated') return new HostedSeat(cell, answer.at, order.limits, () => this.stand(cell));
      if (answer.kind === 'failed') throw new AgonError(answer.code, answer.message);
      throw new AgonError('SANDBOX.CELL_DIED', 'A cell did not take its agent; the match may be played again.');
    } catch (error) {
      void cell.kill();
      throw error;
    }
  }

  /** Agents that are still seated answer their next call with SANDBOX.CLOSED. */
  async close(): Promise<void> {
    this.closed = true;
    for (const wake of this.waiting.splice(0)) wake();
    await Promise.all([...this.cells].map((cell) => cell.kill()));
  }

  private async take(open: boolean): Promise<CellProcess> {
    for (;;) {
      if (this.closed) throw closed();
      const idle = [...this.free];
      const cell = idle.find((each) => each.open === open);
      if (cell) {
        this.free.delete(cell);
        return cell;
      }
      if (this.cells.size < this.options.max) return this.start(open);
      const [other] = idle;
      if (other) {
        // A cell of the other kind makes room.
        this.free.delete(other);
        await other.kill();
      } else {
        await new Promise<void>((resolve) => this.waiting.push(resolve));
      }
    }
  }

  private start(open: boolean): CellProcess {
    const cell = new CellProcess({ open, cellFile: this.options.cellFile });
    this.cells.add(cell);
    void cell.gone.then(() => {
      this.cells.delete(cell);
      this.free.delete(cell);
      this.waiting.shift()?.();
    });
    return cell;
  }

  /** Lets the next agent have the cell; one that is caught in a call is ended instead. */
  private async stand(cell: CellProcess): Promise<void> {
    if (!cell.idle) return cell.kill();
    const answer = await cell.ask({ kind: 'stand' }, STAND_MS);
    if (answer.kind !== 'stood') return;
    this.free.add(cell);
    this.waiting.shift()?.();
  }
}

/** An agent in a cell of its own, as a referee in another process sees it. */
class HostedSeat implements AgentInstance {
  readonly driver: string;
  readonly driverVersion: string;
  readonly meter;
  usage: Usage = { fuel: 0, peakMemoryBytes: 0 };
  private printed = '';
  private fault: Fault | undefined;
  private stood = false;

  constructor(
    private readonly cell: CellProcess,
    { driver, driverVersion, meter }: SeatDriver,
    private readonly limits: Limits,
    private readonly stand: () => void,
  ) {
    this.driver = driver;
    this.driverVersion = driverVersion;
    this.meter = meter;
  }

  init(argument: unknown, fuel: number): Promise<Completion | Fault> {
    return this.call({ method: 'init', argument, fuel }) as Promise<Completion | Fault>;
  }

  act(argument: unknown, fuel: number): Promise<Reply | Fault> {
    return this.call({ method: 'act', argument, fuel }) as Promise<Reply | Fault>;
  }

  onResult(argument: unknown, fuel: number): Promise<Completion | Fault> {
    return this.call({ method: 'onResult', argument, fuel }) as Promise<Completion | Fault>;
  }

  log(): string {
    return this.printed;
  }

  dispose(): void {
    if (!this.stood) this.stand();
    this.stood = true;
  }

  private async call(call: SeatCall): Promise<Completion | Reply | Fault> {
    if (this.fault) return this.fault;
    const { cell, limits } = this;
    if (cell.killed) throw closed();
    if (cell.how !== undefined) {
      // Between calls none of the agent's code runs: whatever ended the cell then was not the agent.
      const message = `A cell died between turns (${cell.how}); the match may be played again.`;
      throw new AgonError('SANDBOX.CELL_DIED', message, { retryable: true });
    }
    const answer = await cell.ask({ ...call, kind: 'call' }, limits.wallMs);
    if (answer.kind === 'answered') {
      this.usage = answer.usage;
      this.printed += answer.printed;
      if (answer.answer.kind === 'fault') this.fault = answer.answer;
      return answer.answer;
    }
    if (cell.killed) throw closed();
    invariant(answer.kind === 'died', `A seat answers its calls, not with ${answer.kind}.`);
    this.fault = answer.timedOut
      ? fault('timeout', `stopped by the watchdog after ${limits.wallMs} ms`, call.fuel)
      : fault('crash', `the cell died in this seat's turn (${answer.how})`, call.fuel);
    return this.fault;
  }
}

const closed = (): AgonError => new AgonError('SANDBOX.CLOSED', 'The cells have been closed.');
