import { canonical, isSignedBy } from '../kernel/index.js';
import type { MatchExecution, MatchOutcome, MatchProposed, Turn } from './events.js';

/** What a runner says about an attempt. */
export interface Attempted {
  readonly matchId: string;
  readonly runnerId: string;
  readonly attempt: number;
  readonly turns: readonly Turn[];
  readonly outcome: MatchOutcome;
  readonly execution: Omit<MatchExecution, 'signed'>;
}

type Terms = Pick<MatchProposed['data'], 'game' | 'seed' | 'seats'>;

/**
 * The text that a runner signs, in RFC 8785 form. All of it is in the match's events, so that whoever has them can put
 * it together again and check the signature: these agents, with this seed, in this game, gave this outcome.
 */
export function reportText(terms: Terms, report: Attempted): string {
  const { matchId, runnerId, attempt, turns, outcome, execution } = report;
  const { driver, gameVersion, limits, usage, deterministic } = execution;
  return canonical({
    kind: 'agon.match-report.v1',
    matchId,
    runnerId,
    attempt,
    game: terms.game,
    seed: terms.seed,
    agents: terms.seats.map((seat) => seat.codeDigest),
    turns: turns.map(({ turn, seat, action, fuel }) => ({ turn, seat, action, fuel })),
    outcome,
    execution: { driver, gameVersion, limits, usage, deterministic },
  });
}

/** Whether the recorded signature is that of the recorded key over what is recorded. Unsigned reports have none. */
export function isAuthentic(
  terms: Terms,
  report: Attempted,
  signed: { readonly publicKey: string; readonly signature: string },
): boolean {
  return isSignedBy(signed.publicKey, reportText(terms, report), signed.signature);
}
