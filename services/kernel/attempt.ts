import { z } from 'zod';
import { canonical } from './canonical.js';
import { AgonError } from './errors.js';

// What a runner and the write side must agree on word for word, though neither knows the other's code.

/** JavaScript runs in WebAssembly, always the same way; Node and Python run as processes of the machine. */
export const agentRuntime = z.enum(['javascript', 'node', 'python']);
export type AgentRuntime = z.output<typeof agentRuntime>;

/** A runtime by the name that came from outside; none is JavaScript. */
export function runtimeNamed(name = 'javascript'): AgentRuntime {
  const parsed = agentRuntime.safeParse(name);
  if (parsed.success) return parsed.data;
  const known = agentRuntime.options.join(', ');
  throw new AgonError('AGENTS.UNKNOWN_RUNTIME', `There is no runtime "${name}"; choose one of ${known}.`);
}

/** What plays a seat: code that is run here, or an agent that plays from outside and whose code nobody here has. */
export const seatRuntime = z.enum([...agentRuntime.options, 'external']);
export type SeatRuntime = z.output<typeof seatRuntime>;

/** Stands where a digest of code would, for an agent whose code is not here. No file has this digest. */
export const NO_CODE = '0'.repeat(64);

/** One attempt at a match: what was to be played, and what came of it. */
interface MatchReport {
  readonly matchId: string;
  readonly runnerId: string;
  readonly attempt: number;
  readonly game: string;
  readonly seed: string;
  /** The digests of the agents' code, by seat. */
  readonly agents: readonly string[];
  readonly turns: readonly {
    readonly turn: number;
    readonly seat: number;
    readonly action: unknown;
    readonly fuel: number;
  }[];
  readonly outcome: object;
  readonly execution: {
    readonly driver: string;
    readonly gameVersion: number;
    readonly limits: object;
    readonly usage: readonly unknown[];
    readonly deterministic?: boolean | undefined;
  };
}

/**
 * The text that a runner signs, in RFC 8785 form. All of it is in the match's events, so that whoever has them can put
 * it together again and check the signature: these agents, with this seed, in this game, gave this outcome.
 */
export function reportText(report: MatchReport): string {
  const { matchId, runnerId, attempt, game, seed, agents, outcome } = report;
  const { driver, gameVersion, limits, usage, deterministic } = report.execution;
  return canonical({
    kind: 'agon.match-report.v1',
    matchId,
    runnerId,
    attempt,
    game,
    seed,
    agents,
    turns: report.turns.map(({ turn, seat, action, fuel }) => ({ turn, seat, action, fuel })),
    outcome,
    execution: { driver, gameVersion, limits, usage, deterministic },
  });
}
