import { AgonError } from '../services/kernel/index.js';
import type { Cells } from './cells.js';
import { type AgentInstance, type Completion, type Fault, fault, type Reply, type Usage } from './drivers/driver.js';
import { allowanceOf, type Limits, limitsFrom } from './limits.js';
import { hostedRuntime, liveFeed, type MatchJob, type Progress, setupOf } from './protocol.js';
import { type MatchRecord, playMatch } from './referee.js';

/** Where agents are reached that play from outside. Whoever serves them stands behind it. */
export interface Outside {
  sit(at: {
    readonly matchId: string;
    readonly agentId: string;
    readonly game: string;
    readonly seat: number;
  }): OutsideConnection;
}

/** One agent outside, in one match. */
export interface OutsideConnection {
  /** Waits until the agent is there, and tells it of the match. False if it did not come in time. */
  start(
    terms: { readonly seats: number; readonly turnMs: number; readonly bankMs: number },
    withinMs: number,
  ): Promise<boolean>;
  /** Asks for an action, again and again if the agent comes and goes, until the time is up. */
  ask(observation: { readonly turn: number }, left: { turnMs: number; bankMs: number }): Promise<Answer>;
  tell(result: { winner: number | null; score: number; reason: string }): void;
  /** Whatever it was still asked comes to nothing: SANDBOX.CLOSED. */
  leave(): void;
}

export interface Answer {
  /** Undefined when the time was up. */
  readonly action: { readonly value: unknown; readonly reasoning: string; readonly computeMs: number } | undefined;
  /** From the question to the answer, by the arena's clock. */
  readonly wallMs: number;
}

/**
 * Plays matches in which somebody plays from outside. The referee sits here, in the arena's own process, and is the one
 * of every match; agents whose code we have sit in cells as always.
 */
export class ExternalMatchHost {
  private readonly limits: Limits;
  private readonly connections = new Set<OutsideConnection>();
  private closed = false;

  constructor(
    private readonly outside: Outside,
    private readonly cells: Pick<Cells, 'seat'>,
    limits: Partial<Limits> = {},
  ) {
    this.limits = limitsFrom(limits);
  }

  async play(job: MatchJob, onProgress?: (progress: Progress) => void): Promise<MatchRecord> {
    if (this.closed) throw new AgonError('SANDBOX.CLOSED', 'The host of external matches has been closed.');
    const seats: AgentInstance[] = [];
    const connections: OutsideConnection[] = [];
    const limits = this.limits;
    try {
      for (const [seat, agent] of job.agents.entries()) {
        if (agent.runtime !== 'external') {
          const { source, codeDigest } = agent;
          const order = { source, codeDigest, runtime: hostedRuntime(agent), seed: job.seed, seat, limits };
          seats.push(await this.cells.seat(order));
          continue;
        }
        const { matchId, game } = job;
        const connection = this.outside.sit({ matchId, agentId: agent.agentId ?? '', game, seat });
        connections.push(connection);
        this.connections.add(connection);
        seats.push(new OutsideSeat(connection, limits));
      }
      const live = onProgress && liveFeed(seats, onProgress);
      return await playMatch({
        ...setupOf(job, limits),
        seats,
        ...(live ? { onTurn: (_turn, _seat, last) => live(last) } : {}),
      });
    } finally {
      for (const agent of seats) agent.dispose();
      for (const connection of connections) this.connections.delete(connection);
    }
  }

  /** Every match under way comes back with SANDBOX.CLOSED. The cells are not the host's to close. */
  async close(): Promise<void> {
    this.closed = true;
    for (const connection of this.connections) connection.leave();
  }
}

/** An agent outside, as the referee sees it: its meter is the clock, which runs while it is away, too. */
class OutsideSeat implements AgentInstance {
  readonly driver = 'external';
  readonly driverVersion = '1';
  readonly meter = 'clock';
  private fuel = 0;
  private wallMs = 0;
  private claimedComputeMs = 0;
  private reasoning = '';

  constructor(
    private readonly connection: OutsideConnection,
    private readonly limits: Limits,
  ) {}

  get usage(): Usage {
    const [wallMs, claimedComputeMs] = [hundredths(this.wallMs), hundredths(this.claimedComputeMs)];
    return { fuel: this.fuel, peakMemoryBytes: 0, wallMs, claimedComputeMs };
  }

  async init(config: unknown, fuel: number): Promise<Completion | Fault> {
    const { seats } = config as { seats: number };
    const { turn: turnMs, bank: bankMs } = allowanceOf(this.limits, this.meter);
    const came = await this.connection.start({ seats, turnMs, bankMs }, fuel);
    return came ? { kind: 'done', fuel: 0 } : fault('timeout', `did not come within ${fuel} ms`, fuel);
  }

  async act(observation: unknown, fuel: number): Promise<Reply | Fault> {
    const turnMs = Math.min(fuel, this.limits.clockTurnMs);
    const answer = await this.connection.ask(observation as { turn: number }, { turnMs, bankMs: fuel - turnMs });
    const spent = Math.min(fuel, Math.round(answer.wallMs));
    this.fuel += spent;
    this.wallMs += answer.wallMs;
    if (!answer.action) return fault('timeout', `no action within ${fuel} ms`, spent);
    const { value, computeMs, reasoning } = answer.action;
    this.claimedComputeMs += computeMs;
    if (reasoning !== '') this.reasoning = `${this.reasoning}${reasoning}\n`.slice(0, this.limits.logBytes);
    return { kind: 'reply', value, fuel: spent };
  }

  async onResult(result: unknown): Promise<Completion | Fault> {
    this.connection.tell(result as { winner: number | null; score: number; reason: string });
    return { kind: 'done', fuel: 0 };
  }

  log(): string {
    return this.reasoning;
  }

  dispose(): void {
    this.connection.leave();
  }
}

const hundredths = (ms: number) => Math.round(ms * 100) / 100;
