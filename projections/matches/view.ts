import type { ArenaEvent } from '../../services/arena/index.js';
import { rowRef } from '../engine/table.js';
import { defineView, type Rows } from '../engine/view.js';
import { type MatchRow, matches, matchSeats, turns } from './table.js';

const itsMatch = ({ data }: { data: { matchId: string } }) => [rowRef(matches, data.matchId)];

const change = (rows: Rows, matchId: string, by: (match: MatchRow) => Partial<MatchRow>) => {
  const match = rows.get(matches, matchId);
  if (match) rows.put(matches, { ...match, ...by(match) });
};

/** Every match with its turns, from proposal to settlement. */
export const matchesView = defineView<ArenaEvent>({
  name: 'matches',
  version: 3,
  tables: [matches, matchSeats, turns],
  on: {
    MatchProposed: {
      apply: ({ data, time, position }, rows) => {
        const { matchId, game, currency, seed, seats, stakeCents } = data;
        rows.put(matches, {
          matchId,
          game,
          currency,
          seed,
          seats,
          status: 'proposed',
          reason: 'escrow',
          detail: 'Waiting for the stakes.',
          winner: null,
          stakeCents: BigInt(stakeCents),
          potCents: 0n,
          rakeCents: 0n,
          turns: 0,
          attempts: 0,
          proposedAt: time,
          endedAt: null,
          position: BigInt(position),
        });
        for (const { agentId, accountId } of seats) {
          rows.put(matchSeats, { agentId, position: BigInt(position), accountId, matchId, proposedAt: time });
        }
      },
    },
    MatchReady: {
      reads: itsMatch,
      apply: ({ data }, rows) => {
        change(rows, data.matchId, () => ({ status: 'ready', reason: 'queue', detail: 'Waiting for a runner.' }));
      },
    },
    MatchClaimed: {
      reads: itsMatch,
      apply: ({ data }, rows) => {
        const detail = `With runner ${data.runnerId} until ${data.leaseUntil}.`;
        change(rows, data.matchId, () => ({ status: 'playing', reason: 'claimed', detail, attempts: data.attempt }));
      },
    },
    LeaseExtended: {
      reads: itsMatch,
      apply: ({ data }, rows) => {
        const detail = `With runner ${data.runnerId} until ${data.leaseUntil}.`;
        change(rows, data.matchId, () => ({ detail }));
      },
    },
    MatchReleased: {
      reads: itsMatch,
      apply: ({ data }, rows) => {
        const { attempt, reason: detail } = data;
        change(rows, data.matchId, () => ({ status: 'ready', reason: 'released', detail, attempts: attempt - 1 }));
      },
    },
    MatchRequeued: {
      reads: itsMatch,
      apply: ({ data }, rows) => {
        change(rows, data.matchId, () => ({ status: 'ready', reason: 'requeued', detail: data.reason }));
      },
    },
    TurnPlayed: {
      reads: itsMatch,
      apply: ({ data }, rows) => {
        const { matchId, turn, seat, action, fuel } = data;
        rows.put(turns, { matchId, turn, seat, action: JSON.stringify(action), fuel: BigInt(fuel) });
        change(rows, matchId, (match) => ({ turns: Math.max(match.turns, turn) }));
      },
    },
    MatchPlayed: {
      reads: itsMatch,
      apply: ({ data }, rows) => {
        const { winner, reason, detail } = data.outcome;
        change(rows, data.matchId, () => ({ winner, reason, detail }));
      },
    },
    MatchSettled: {
      reads: itsMatch,
      apply: ({ data, time }, rows) => {
        change(rows, data.matchId, (match) => ({
          status: 'settled',
          potCents: BigInt(data.potCents),
          rakeCents: BigInt(data.rakeCents),
          endedAt: time,
          seats: match.seats.map((seat, i) => ({ ...seat, ...pick(data.seats[i]) })),
        }));
      },
    },
    MatchReversed: {
      reads: itsMatch,
      apply: ({ data }, rows) => {
        change(rows, data.matchId, () => ({ status: 'reversed', reason: 'reversed', detail: data.reason }));
      },
    },
    MatchVoided: {
      reads: itsMatch,
      apply: ({ data, time }, rows) => {
        const { reason, detail } = data;
        change(rows, data.matchId, () => ({ status: 'voided', reason, detail, endedAt: time }));
      },
    },
  },
});

const pick = (paid: { score: number; payoutCents: string } | undefined) =>
  paid && { score: paid.score, payoutCents: paid.payoutCents };
