import { isSignedBy, reportText } from '../kernel/index.js';
import type { MatchExecution, MatchOutcome, MatchProposed, Turn } from './events.js';

/** What a runner says about an attempt. */
export interface AttemptReport {
  readonly matchId: string;
  readonly runnerId: string;
  readonly attempt: number;
  readonly turns: readonly Turn[];
  readonly outcome: MatchOutcome;
  readonly execution: Omit<MatchExecution, 'signed'>;
}

type Terms = Pick<MatchProposed['data'], 'game' | 'seed' | 'seats'>;

/** The text that a runner signs, put together again from what is recorded. */
export const attemptText = ({ game, seed, seats }: Terms, report: AttemptReport): string =>
  reportText({ ...report, game, seed, agents: seats.map((seat) => seat.codeDigest) });

/** Whether the recorded signature is that of the recorded key over what is recorded. Unsigned reports have none. */
export function isAuthentic(
  terms: Terms,
  report: AttemptReport,
  signed: { readonly publicKey: string; readonly signature: string },
): boolean {
  return isSignedBy(signed.publicKey, attemptText(terms, report), signed.signature);
}
