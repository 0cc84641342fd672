import { AgonError, type Decider, invariant } from '../kernel/index.js';
import type {
  ArenaCommand,
  ClaimMatch,
  ExpireLease,
  ExtendLease,
  FailAttempt,
  ProposeMatch,
  ReportMatch,
} from './commands.js';
import type { ArenaEvent, MatchProposed, MatchVoided } from './events.js';
import { isAuthentic } from './report.js';
import { settle } from './settlement.js';

/** Runs of one match before it is given up and the stakes go back. */
export const ATTEMPTS_MAX = 3;

interface Lease {
  readonly runnerId: string;
  readonly attempt: number;
  readonly untilIso: string;
}

export type MatchState =
  | { readonly status: 'unknown' }
  | {
      readonly status: 'proposed' | 'ready' | 'claimed' | 'settled' | 'voided';
      readonly terms: MatchProposed['data'];
      /** Seats whose stake is held. */
      readonly escrowed: readonly number[];
      readonly attempts: number;
      readonly lease?: Lease;
    };

type Known = Exclude<MatchState, { status: 'unknown' }>;

function evolve(state: MatchState, event: ArenaEvent): MatchState {
  if (event.type === 'MatchProposed') {
    return { status: 'proposed', terms: event.data, escrowed: [], attempts: 0 };
  }
  invariant(state.status !== 'unknown', `${event.type} comes after MatchProposed.`);
  switch (event.type) {
    case 'TurnPlayed':
    case 'MatchPlayed':
      return state;
    case 'StakeEscrowed':
      return { ...state, escrowed: [...state.escrowed, event.data.seat] };
    case 'MatchReady':
    case 'MatchRequeued':
      return unleased(state, 'ready');
    case 'MatchClaimed': {
      const { runnerId, attempt, leaseUntil } = event.data;
      return { ...state, status: 'claimed', attempts: attempt, lease: { runnerId, attempt, untilIso: leaseUntil } };
    }
    case 'LeaseExtended':
      return state.lease ? { ...state, lease: { ...state.lease, untilIso: event.data.leaseUntil } } : state;
    case 'MatchReleased':
      return { ...unleased(state, 'ready'), attempts: state.attempts - 1 };
    case 'MatchSettled':
      return unleased(state, 'settled');
    case 'MatchVoided':
      return unleased(state, 'voided');
  }
}

function unleased({ terms, escrowed, attempts }: Known, status: Known['status']): Known {
  return { status, terms, escrowed, attempts };
}

function decide(command: ArenaCommand, state: MatchState): ArenaEvent[] {
  if (command.type === 'ProposeMatch') return propose(command, state);
  if (state.status === 'unknown') {
    throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${command.data.matchId}.`);
  }
  const { matchId } = command.data;
  switch (command.type) {
    case 'EscrowStake': {
      const { seat } = command.data;
      if (state.status !== 'proposed' || state.escrowed.includes(seat) || seat >= state.terms.seats.length) return [];
      const escrowed: ArenaEvent = { type: 'StakeEscrowed', data: { matchId, seat } };
      const all = state.escrowed.length + 1 === state.terms.seats.length;
      return all ? [escrowed, { type: 'MatchReady', data: { matchId } }] : [escrowed];
    }
    case 'RefuseStake':
      return state.status === 'proposed' ? [voided(state, 'stake_refused', command.data.detail)] : [];
    case 'ClaimMatch':
      return claim(command, state);
    case 'ExtendLease':
      return extend(command, state);
    case 'ExpireLease':
      return expire(command, state);
    case 'ReportMatch':
      return report(command, state);
    case 'FailAttempt':
      return failAttempt(command, state);
    case 'ReleaseMatch':
      assertLease(command.data, state);
      return [{ type: 'MatchReleased', data: command.data }];
    case 'VoidMatch':
      if (state.status === 'voided') return [];
      if (state.status === 'settled') throw new AgonError('ARENA.SETTLED', `Match ${matchId} is settled.`);
      return [voided(state, 'operator', command.data.detail)];
  }
}

function propose({ data }: ProposeMatch, state: MatchState): ArenaEvent[] {
  if (state.status !== 'unknown')
    throw new AgonError('ARENA.MATCH_EXISTS', `There is a match ${data.matchId} already.`);
  const agents = new Set(data.seats.map((seat) => seat.agentId));
  if (agents.size < data.seats.length) {
    throw new AgonError('ARENA.SAME_AGENT', 'An agent cannot meet itself in a rated match.');
  }
  const proposed: ArenaEvent = { type: 'MatchProposed', data };
  return data.stakeCents === '0' ? [proposed, { type: 'MatchReady', data: { matchId: data.matchId } }] : [proposed];
}

function claim({ data, meta }: ClaimMatch, state: Known): ArenaEvent[] {
  const { matchId, runnerId, leaseMs } = data;
  const { status, lease } = state;
  if (status === 'claimed' && lease && lease.runnerId !== runnerId && meta.time < lease.untilIso) {
    throw new AgonError('ARENA.LEASED', `Match ${matchId} is with runner ${lease.runnerId} until ${lease.untilIso}.`, {
      untilIso: lease.untilIso,
    });
  }
  if (status !== 'ready' && status !== 'claimed') {
    throw new AgonError('ARENA.NOT_READY', `Match ${matchId} is ${status} and cannot be claimed.`, { status });
  }
  // The same runner again: it was stopped, or it died. That is nobody's failed attempt, and its lease goes on.
  const again = status === 'claimed' && lease?.runnerId === runnerId;
  if (state.attempts >= ATTEMPTS_MAX && !again)
    return [voided(state, 'runner_failed', `${ATTEMPTS_MAX} attempts did not finish.`)];
  const attempt = again ? state.attempts : state.attempts + 1;
  const leaseUntil = new Date(Date.parse(meta.time) + leaseMs).toISOString();
  return [{ type: 'MatchClaimed', data: { matchId, runnerId, attempt, leaseUntil } }];
}

function extend({ data, meta }: ExtendLease, state: Known): ArenaEvent[] {
  const { untilIso } = assertLease(data, state);
  const { leaseMs, ...attempt } = data;
  const leaseUntil = new Date(Date.parse(meta.time) + leaseMs).toISOString();
  return leaseUntil > untilIso ? [{ type: 'LeaseExtended', data: { ...attempt, leaseUntil } }] : [];
}

/** Whoever asks may be late: the attempt may be over, or its lease may have been extended. */
function expire({ data, meta }: ExpireLease, state: Known): ArenaEvent[] {
  const { lease } = state;
  if (lease?.runnerId !== data.runnerId || lease.attempt !== data.attempt || meta.time < lease.untilIso) return [];
  return failed(state, lease.attempt, `The lease of runner ${lease.runnerId} ran out at ${lease.untilIso}.`);
}

/** The outcome becomes facts: every turn, the result, and the money, in one append. */
function report({ data }: ReportMatch, state: Known): ArenaEvent[] {
  assertLease(data, state);
  const { matchId, runnerId, attempt, turns, outcome, signed } = data;
  const execution = { ...data.execution, signed };
  const { seats, stakeCents, rakeBps, game, currency } = state.terms;
  assertPossible(data, seats.length);
  if (signed && !isAuthentic(state.terms, data, signed)) {
    throw new AgonError('ARENA.BAD_SIGNATURE', `The report of match ${matchId} is not signed by runner ${runnerId}.`);
  }
  const paid = settle({ stakeCents: BigInt(stakeCents), scores: outcome.scores, rakeBps });
  return [
    ...turns.map((turn): ArenaEvent => ({ type: 'TurnPlayed', data: { matchId, ...turn } })),
    { type: 'MatchPlayed', data: { matchId, runnerId, attempt, outcome, execution } },
    {
      type: 'MatchSettled',
      data: {
        matchId,
        game,
        stakeCents,
        currency,
        potCents: paid.potCents.toString(),
        rakeCents: paid.rakeCents.toString(),
        seats: seats.map(({ agentId, accountId }, seat) => ({
          agentId,
          accountId,
          score: outcome.scores[seat] ?? 0,
          payoutCents: (paid.payoutsCents[seat] ?? 0n).toString(),
        })),
      },
    },
  ];
}

function failAttempt({ data }: FailAttempt, state: Known): ArenaEvent[] {
  assertLease(data, state);
  return failed(state, data.attempt, data.reason);
}

function failed(state: Known, attempt: number, reason: string): ArenaEvent[] {
  if (attempt >= ATTEMPTS_MAX) return [voided(state, 'runner_failed', reason)];
  return [{ type: 'MatchRequeued', data: { matchId: state.terms.matchId, attempt, reason } }];
}

/** A runner is trusted to have run the match, not to make up one that cannot have been. */
function assertPossible({ outcome, turns }: ReportMatch['data'], seats: number): void {
  const { scores, winner, seatAtFault } = outcome;
  const refuse = (why: string) => new AgonError('ARENA.BAD_OUTCOME', `The reported outcome cannot be: ${why}.`);
  if (scores.length !== seats) throw refuse(`${scores.length} scores for ${seats} seats`);
  const sum = scores.reduce((total, score) => total + score, 0);
  // Thirds and sevenths do not add up to one to the last bit; what settlement counts in is a part per million.
  if (Math.abs(sum - 1) > 1e-6) throw refuse(`the scores sum to ${sum}`);
  if (winner !== null && scores[winner] !== Math.max(...scores))
    throw refuse(`seat ${winner} won without the best score`);
  if (seatAtFault !== null && seatAtFault >= seats) throw refuse(`there is no seat ${seatAtFault}`);
  turns.forEach(({ turn, seat }, i) => {
    if (turn !== i + 1) throw refuse(`turn ${turn} stands where turn ${i + 1} belongs`);
    if (seat >= seats) throw refuse(`there is no seat ${seat}`);
  });
}

/** Only the runner that holds the lease for this very attempt may say how it ended. */
function assertLease(data: { matchId: string; runnerId: string; attempt: number }, state: Known): Lease {
  const { lease } = state;
  if (state.status !== 'claimed' || lease?.runnerId !== data.runnerId || lease.attempt !== data.attempt) {
    throw new AgonError(
      'ARENA.LEASE_LOST',
      `Runner ${data.runnerId} does not hold attempt ${data.attempt} of match ${data.matchId}, which is ${state.status}.`,
    );
  }
  return lease;
}

function voided(state: Known, reason: MatchVoided['data']['reason'], detail: string): MatchVoided {
  const { matchId, game, stakeCents, currency } = state.terms;
  const seats = state.terms.seats.map(({ agentId, accountId }) => ({ agentId, accountId }));
  return { type: 'MatchVoided', data: { matchId, game, stakeCents, currency, reason, detail, seats } };
}

export const arenaDecider: Decider<MatchState, ArenaCommand, ArenaEvent> = {
  initial: { status: 'unknown' },
  evolve,
  decide,
};
