import { AgonError, invariant } from '../services/kernel/index.js';
import { CellProcess } from './cell-process.js';
import { type AgentInstance, type Completion, type Fault, fault, type Reply, type Usage } from './drivers/driver.js';
import type { Limits } from './limits.js';
import {
  assertDigest,
  type FromCell,
  type SeatAnswer,
  type SeatCall,
  type SeatDriver,
  type SeatOrder,
  type ToCell,
} from './protocol.js';

interface SeatCellsOptions {
  /** Cells at a time; whoever comes later waits for one. */
  readonly max: number;
  readonly heapMegabytes?: number;
  readonly cellFile?: string;
}

/** For a cell to let its agent go. */
const STAND_MS = 30_000;

/**
 * Cells for single agents whose match is refereed elsewhere, because they meet somebody from outside. A cell holds one
 * agent at a time, so when it dies in a call there is no doubt whose code was running. Started when first needed.
 */
export class SeatCells {
  private readonly cells = new Set<SeatCell>();
  private readonly waiting: (() => void)[] = [];
  private closed = false;

  constructor(private readonly options: SeatCellsOptions) {}

  get pids(): readonly number[] {
    return [...this.cells].flatMap((cell) => cell.pid ?? []);
  }

  async seat(order: SeatOrder): Promise<AgentInstance> {
    assertDigest(order.source, order.codeDigest);
    const cell = await this.take(order.runtime !== 'javascript');
    try {
      const at = await cell.sit(order);
      return new HostedSeat(cell, at, order.limits);
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

  private async take(open: boolean): Promise<SeatCell> {
    for (;;) {
      if (this.closed) throw closed();
      const idle = [...this.cells].find((cell) => cell.idle);
      if (idle?.open === open) return idle.taken();
      // A cell of the other kind makes room.
      if (this.cells.size >= this.options.max && idle) await idle.kill();
      else if (this.cells.size < this.options.max) return this.start(open).taken();
      else await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  private start(open: boolean): SeatCell {
    const { heapMegabytes, cellFile: file } = this.options;
    const cell = new SeatCell({ open, heapMegabytes, file }, () => {
      if (!cell.alive) this.cells.delete(cell);
      this.waiting.shift()?.();
    });
    this.cells.add(cell);
    return cell;
  }
}

/** One process. It is asked one thing at a time. */
class SeatCell {
  readonly open: boolean;
  private readonly process: CellProcess;
  private readonly ready: Promise<void>;
  private readonly gone: Promise<void>;
  private asked: { readonly answer: (message: FromCell) => void; readonly died: (how: string) => void } | undefined;
  private how: string | undefined;
  private order = 0;
  private free = true;
  private ended = false;

  /** `changed` is called when the cell is free again, or gone. */
  constructor(
    options: ConstructorParameters<typeof CellProcess>[0],
    readonly changed: () => void,
  ) {
    this.open = options.open;
    let started = () => {};
    let gone = () => {};
    this.ready = new Promise((resolve) => {
      started = resolve;
    });
    this.gone = new Promise((resolve) => {
      gone = resolve;
    });
    this.process = new CellProcess(options, {
      ready: () => started(),
      message: (message) => {
        const asked = this.asked;
        this.asked = undefined;
        asked?.answer(message);
      },
      gone: (how) => {
        this.how = how;
        started();
        this.asked?.died(how);
        gone();
        this.changed();
      },
    });
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  get alive(): boolean {
    return this.how === undefined;
  }

  get idle(): boolean {
    return this.free && this.alive;
  }

  taken(): this {
    this.free = false;
    return this;
  }

  async sit(order: SeatOrder): Promise<SeatDriver> {
    await this.ready;
    if (this.ended) throw closed();
    if (!this.alive) throw new AgonError('SANDBOX.CELL_START_FAILED', `A cell did not start: ${this.how}.`);
    this.order += 1;
    const answer = await this.ask({ ...order, kind: 'seat', order: this.order }, order.limits.wallMs);
    if (answer.kind === 'seated') return answer.at;
    if (answer.kind === 'failed') throw new AgonError(answer.code, answer.message);
    throw new AgonError('SANDBOX.CELL_DIED', 'A cell did not take its agent; the match may be played again.');
  }

  /** The answer, or how the cell ended in the middle of the call. */
  async call(
    call: SeatCall,
    wallMs: number,
  ): Promise<SeatAnswer | { readonly died: string; readonly timedOut: boolean }> {
    const answer = await this.ask({ kind: 'call', order: this.order, call }, wallMs);
    if (answer.kind === 'answered') return answer.answered;
    if (this.ended) throw closed();
    invariant(answer.kind === 'died', `A seat answers its calls, not with ${answer.kind}.`);
    return answer;
  }

  /** Lets the next agent have the cell; one that is caught in a call is ended instead. */
  stand(): void {
    if (this.asked || !this.alive) {
      void this.kill();
      return;
    }
    void this.ask({ kind: 'stand', order: this.order }, STAND_MS).then((answer) => {
      if (answer.kind !== 'stood') return;
      this.free = true;
      this.changed();
    });
  }

  /** Ended by us, which is no agent's fault. */
  async kill(): Promise<void> {
    this.ended = true;
    this.process.kill();
    await this.gone;
  }

  whyGone(): AgonError {
    if (this.ended) return closed();
    const message = `A cell died between turns (${this.how}); the match may be played again.`;
    return new AgonError('SANDBOX.CELL_DIED', message, { retryable: true });
  }

  private ask(message: ToCell, wallMs: number) {
    type CellDeath = { readonly kind: 'died'; readonly died: string; readonly timedOut: boolean };
    return new Promise<FromCell | CellDeath>((resolve) => {
      let timedOut = false;
      const watchdog = setTimeout(() => {
        timedOut = true;
        this.process.kill();
      }, wallMs);
      const end = (answer: FromCell | CellDeath) => {
        clearTimeout(watchdog);
        resolve(answer);
      };
      this.asked = { answer: end, died: (how) => end({ kind: 'died', died: how, timedOut }) };
      if (this.alive) this.process.send(message);
      else this.asked.died(this.how ?? 'gone');
    });
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
    readonly cell: SeatCell,
    { driver, driverVersion, meter }: SeatDriver,
    readonly limits: Limits,
  ) {
    this.driver = driver;
    this.driverVersion = driverVersion;
    this.meter = meter;
  }

  init(config: unknown, fuel: number): Promise<Completion | Fault> {
    return this.call('init', config, fuel) as Promise<Completion | Fault>;
  }

  act(observation: unknown, fuel: number): Promise<Reply | Fault> {
    return this.call('act', observation, fuel) as Promise<Reply | Fault>;
  }

  onResult(result: unknown, fuel: number): Promise<Completion | Fault> {
    return this.call('onResult', result, fuel) as Promise<Completion | Fault>;
  }

  log(): string {
    return this.printed;
  }

  dispose(): void {
    if (this.stood) return;
    this.stood = true;
    this.cell.stand();
  }

  private async call(method: SeatCall['method'], argument: unknown, fuel: number): Promise<Completion | Reply | Fault> {
    if (this.fault) return this.fault;
    // Between calls none of the agent's code runs: whatever ended the cell then was not the agent.
    if (!this.cell.alive) throw this.cell.whyGone();
    const answered = await this.cell.call({ method, argument, fuel }, this.limits.wallMs);
    if (!('died' in answered)) {
      this.usage = answered.usage;
      this.printed += answered.printed;
      if (answered.answer.kind === 'fault') this.fault = answered.answer;
      return answered.answer;
    }
    this.fault = answered.timedOut
      ? fault('timeout', `stopped by the watchdog after ${this.limits.wallMs} ms`, fuel)
      : fault('crash', `the cell died in this seat's turn (${answered.died})`, fuel);
    return this.fault;
  }
}

const closed = (): AgonError => new AgonError('SANDBOX.CLOSED', 'The cells have been closed.');
