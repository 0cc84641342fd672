import { AgonError, type CommandOf, type Decider, invariant, ownerOf } from '../kernel/index.js';
import type * as commands from './commands.js';
import type { ArenaEvent, EscrowDeclined, MatchProposed, MatchSettled, MatchVoided } from './events.js';
import { isAuthentic } from './report.js';
import { settle, windowEnd } from './settlement.js';

export type ArenaCommand = CommandOf<typeof commands>;

/** Runs of one match before it is given up and the stakes go back. */
export const ATTEMPTS_MAX = 3;

interface Lease {
  readonly runnerId: string;
  readonly attempt: number;
  readonly untilIso: string;
}

type MatchState =
  | { readonly status: 'unknown' }
  | {
      readonly status: 'proposed' | 'ready' | 'claimed' | 'settled' | 'voided' | 'reversed';
      readonly terms: MatchProposed['data'];
      /** What is held of what the match waits for. */
      readonly escrowed: readonly string[];
      readonly attempts: number;
      readonly lease?: Lease;
      readonly settlement?: MatchSettled['data'];
    };

type Match = Exclude<MatchState, { status: 'unknown' }>;

function evolve(state: MatchState, event: ArenaEvent): MatchState {
  if (event.type === 'MatchProposed') {
    return { status: 'proposed', terms: event.data, escrowed: [], attempts: 0 };
  }
  invariant(state.status !== 'unknown', `${event.type} comes after MatchProposed.`);
  switch (event.type) {
    case 'TurnPlayed':
    case 'MatchPlayed':
    case 'EscrowDeclined':
      return state;
    case 'StakeEscrowed':
      return { ...state, escrowed: [...state.escrowed, stakeOf(event.data.seat)] };
    case 'ComputeEscrowed':
      return { ...state, escrowed: [...state.escrowed, computeOf(event.data.seat)] };
    case 'BountyEscrowed':
      return { ...state, escrowed: [...state.escrowed, BOUNTY] };
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
      return { ...unleased(state, 'settled'), settlement: event.data };
    case 'MatchReversed':
      return unleased(state, 'reversed');
    case 'MatchVoided':
      return unleased(state, 'voided');
  }
}

const OVER: readonly MatchState['status'][] = ['settled', 'voided', 'reversed'];
const BOUNTY = 'bounty';
const stakeOf = (seat: number) => `stake ${seat}`;
const computeOf = (seat: number) => `compute ${seat}`;

/** All that has to be held before a match is ready. */
function needed({ seats, stakeCents, computeCents, bounty }: MatchProposed['data']): readonly string[] {
  const ofSeats = (name: (seat: number) => string) => seats.map((_seat, i) => name(i));
  return [
    ...(stakeCents === '0' ? [] : ofSeats(stakeOf)),
    ...(computeCents === undefined ? [] : ofSeats(computeOf)),
    ...(bounty ? [BOUNTY] : []),
  ];
}

function unleased({ terms, escrowed, attempts }: Match, status: Match['status']): Match {
  return { status, terms, escrowed, attempts };
}

function decide(command: ArenaCommand, state: MatchState): ArenaEvent[] {
  if (command.type === 'ProposeMatch') return propose(command, state);
  if (state.status === 'unknown') {
    throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${command.data.matchId}.`);
  }
  const { matchId } = command.data;
  switch (command.type) {
    case 'EscrowStake':
      return escrow(state, 'stake', { type: 'StakeEscrowed', data: command.data });
    case 'EscrowCompute':
      return escrow(state, 'compute', { type: 'ComputeEscrowed', data: command.data });
    case 'EscrowBounty':
      return escrow(state, 'bounty', { type: 'BountyEscrowed', data: command.data });
    case 'RefuseStake':
      return state.status === 'proposed' ? [voided(state, 'stake_refused', command.data.detail)] : [];
    case 'ClaimMatch':
      return claim(command, state);
    case 'ExtendLease':
      return extend(command, state);
    case 'ExpireLease':
      return expire(command, state);
    case 'ExpireMatch':
      return outwaited(command, state);
    case 'ReportMatch':
      return report(command, state);
    case 'FailAttempt':
      return failAttempt(command, state);
    case 'ReleaseMatch':
      assertLease(command.data, state);
      return [{ type: 'MatchReleased', data: command.data }];
    case 'AbandonMatch':
      return state.status === 'ready' ? [voided(state, 'runner_failed', command.data.detail)] : [];
    case 'VoidMatch':
      if (state.status === 'voided') return [];
      if (state.settlement || state.status === 'reversed')
        throw new AgonError('ARENA.SETTLED', `Match ${matchId} is ${state.status}.`);
      return [voided(state, 'operator', command.data.detail)];
    case 'ReverseMatch':
      return reverse(command, state);
  }
}

function propose({ data }: commands.ProposeMatch, state: MatchState): ArenaEvent[] {
  if (state.status !== 'unknown')
    throw new AgonError('ARENA.MATCH_EXISTS', `There is a match ${data.matchId} already.`);
  const agents = new Set(data.seats.map((seat) => seat.agentId));
  if (agents.size < data.seats.length) {
    throw new AgonError('ARENA.SAME_AGENT', 'An agent cannot meet itself in a rated match.');
  }
  // The stake comes out of this account's wallet, and the payout goes there.
  const other = data.seats.find(({ agentId, accountId }) => ownerOf(agentId) !== accountId);
  if (other) throw new AgonError('ARENA.OTHER_OWNER', `${other.agentId} is not an agent of ${other.accountId}.`);
  const proposed: ArenaEvent = { type: 'MatchProposed', data };
  return needed(data).length === 0 ? [proposed, ready(data)] : [proposed];
}

type EscrowEvent = Extract<ArenaEvent, { type: 'StakeEscrowed' | 'ComputeEscrowed' | 'BountyEscrowed' }>;

function escrow(state: Match, held: EscrowDeclined['data']['held'], event: EscrowEvent): ArenaEvent[] {
  const { terms, status } = state;
  const all = needed(terms);
  const seat = 'seat' in event.data ? event.data.seat : undefined;
  const what = seat === undefined ? BOUNTY : held === 'stake' ? stakeOf(seat) : computeOf(seat);
  if (state.escrowed.includes(what) || !all.includes(what)) return [];
  if (OVER.includes(status)) return [declined(terms, held, seat)];
  if (status !== 'proposed') return [];
  if (state.escrowed.length + 1 < all.length) return [event];
  return [event, ready(state.terms)];
}

/** Money that comes for a match that is over would be held for ever: whoever ended the match did not know of it. */
function declined(
  { matchId, seats, bounty }: MatchProposed['data'],
  held: EscrowDeclined['data']['held'],
  seat: number | undefined,
): EscrowDeclined {
  const accountId = (seat === undefined ? bounty?.sponsorId : seats[seat]?.accountId) ?? '';
  return { type: 'EscrowDeclined', data: { matchId, accountId, held, ...(seat === undefined ? {} : { seat }) } };
}

const ready = ({ matchId, priority }: MatchProposed['data']): ArenaEvent => ({
  type: 'MatchReady',
  data: priority === undefined ? { matchId } : { matchId, priority },
});

function claim({ data, meta }: commands.ClaimMatch, state: Match): ArenaEvent[] {
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
  const outside = state.terms.seats.some((seat) => seat.runtime === 'external');
  if (outside !== data.table) {
    const where = outside ? "at the arena's table, where agents from outside sit" : 'by a runner';
    throw new AgonError('ARENA.NOT_FOR_YOU', `Match ${matchId} is played ${where}.`);
  }
  // The same runner again: it was stopped, or it died. That is nobody's failed attempt, and its lease goes on.
  const again = status === 'claimed' && lease?.runnerId === runnerId;
  if (state.attempts >= ATTEMPTS_MAX && !again)
    return [voided(state, 'runner_failed', `${ATTEMPTS_MAX} attempts did not finish.`)];
  const attempt = again ? state.attempts : state.attempts + 1;
  const leaseUntil = new Date(Date.parse(meta.time) + leaseMs).toISOString();
  return [{ type: 'MatchClaimed', data: { matchId, runnerId, attempt, leaseUntil } }];
}

function extend({ data, meta }: commands.ExtendLease, state: Match): ArenaEvent[] {
  const { untilIso } = assertLease(data, state);
  const { leaseMs, ...attempt } = data;
  const leaseUntil = new Date(Date.parse(meta.time) + leaseMs).toISOString();
  return leaseUntil > untilIso ? [{ type: 'LeaseExtended', data: { ...attempt, leaseUntil } }] : [];
}

/** Whoever asks may be late: the attempt may be over, or its lease may have been extended. */
function expire({ data, meta }: commands.ExpireLease, state: Match): ArenaEvent[] {
  const { lease } = state;
  if (lease?.runnerId !== data.runnerId || lease.attempt !== data.attempt || meta.time < lease.untilIso) return [];
  return failed(state, lease.attempt, `The lease of runner ${lease.runnerId} ran out at ${lease.untilIso}.`);
}

/** Nobody's money waits for ever for somebody who does not come. */
function outwaited({ data }: commands.ExpireMatch, state: Match): ArenaEvent[] {
  const { status, attempts, waitedS } = data;
  if (state.status !== status || state.attempts !== attempts) return [];
  if (status === 'ready') return [voided(state, 'runner_failed', `No runner took it in ${waitedS} seconds.`)];
  return [voided(state, 'stake_refused', `What it needs was not held in ${waitedS} seconds.`)];
}

/** The outcome becomes facts: every turn, the result, and the money, in one append. */
function report({ data, meta }: commands.ReportMatch, state: Match): ArenaEvent[] {
  assertLease(data, state);
  const { matchId, runnerId, attempt, turns, outcome, signed } = data;
  const execution = { ...data.execution, signed };
  assertPossible(data, state.terms.seats.length);
  if (signed && !isAuthentic(state.terms, data, signed)) {
    throw new AgonError('ARENA.BAD_SIGNATURE', `The report of match ${matchId} is not signed by runner ${runnerId}.`);
  }
  return [
    ...turns.map((turn): ArenaEvent => ({ type: 'TurnPlayed', data: { matchId, ...turn } })),
    { type: 'MatchPlayed', data: { matchId, runnerId, attempt, outcome, execution } },
    { type: 'MatchSettled', data: settlementOf(state.terms, outcome.scores, meta.time) },
  ];
}

function settlementOf(terms: MatchProposed['data'], scores: readonly number[], time: string): MatchSettled['data'] {
  const { matchId, game, seats, stakeCents, currency, rakeBps, bounty, computeCents, disputeWindowMs = 0 } = terms;
  const bountyCents = BigInt(bounty?.amountCents ?? '0');
  const paid = settle({ stakeCents: BigInt(stakeCents), scores, rakeBps, bountyCents });
  return {
    matchId,
    game,
    stakeCents,
    currency,
    potCents: paid.potCents.toString(),
    rakeCents: paid.rakeCents.toString(),
    seats: seats.map(({ agentId, accountId }, seat) => {
      const won = paid.bountiesCents[seat] ?? 0n;
      const score = scores[seat] ?? 0;
      const payoutCents = (paid.payoutsCents[seat] ?? 0n).toString();
      return { agentId, accountId, score, payoutCents, ...(won > 0n ? { bountyCents: won.toString() } : {}) };
    }),
    ...(bounty ? { bounty: { ...bounty, remainderCents: paid.remainderCents.toString() } } : {}),
    ...(computeCents === undefined ? {} : { computeCents }),
    ...(disputeWindowMs === 0 ? {} : { withdrawableAt: windowEnd(time, disputeWindowMs) }),
  };
}

function reverse({ data }: commands.ReverseMatch, state: Match): ArenaEvent[] {
  if (state.status === 'reversed') return [];
  if (!state.settlement) {
    throw new AgonError('ARENA.NOT_SETTLED', `Match ${data.matchId} is ${state.status}: there is nothing to reverse.`);
  }
  const { withdrawableAt: _withdrawableAt, computeCents: _computeCents, ...settlement } = state.settlement;
  return [{ type: 'MatchReversed', data: { ...settlement, reason: data.reason } }];
}

function failAttempt({ data }: commands.FailAttempt, state: Match): ArenaEvent[] {
  assertLease(data, state);
  return failed(state, data.attempt, data.reason);
}

function failed(state: Match, attempt: number, reason: string): ArenaEvent[] {
  if (attempt >= ATTEMPTS_MAX) return [voided(state, 'runner_failed', reason)];
  return [{ type: 'MatchRequeued', data: { matchId: state.terms.matchId, attempt, reason } }];
}

/** A runner is trusted to have run the match, not to make up one that cannot have been. */
function assertPossible({ outcome, turns }: commands.ReportMatch['data'], seats: number): void {
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
function assertLease(data: { matchId: string; runnerId: string; attempt: number }, state: Match): Lease {
  const { lease } = state;
  if (state.status !== 'claimed' || lease?.runnerId !== data.runnerId || lease.attempt !== data.attempt) {
    throw new AgonError(
      'ARENA.LEASE_LOST',
      `Runner ${data.runnerId} does not hold attempt ${data.attempt} of match ${data.matchId}, which is ${state.status}.`,
    );
  }
  return lease;
}

function voided(state: Match, reason: MatchVoided['data']['reason'], detail: string): MatchVoided {
  const { matchId, game, stakeCents, currency, bounty, computeCents } = state.terms;
  const seats = state.terms.seats.map(({ agentId, accountId }) => ({ agentId, accountId }));
  const extras = { ...(bounty ? { bounty } : {}), ...(computeCents === undefined ? {} : { computeCents }) };
  return { type: 'MatchVoided', data: { matchId, game, stakeCents, currency, reason, detail, seats, ...extras } };
}

export const arenaDecider: Decider<MatchState, ArenaCommand, ArenaEvent> = {
  initial: { status: 'unknown' },
  evolve,
  decide,
};
