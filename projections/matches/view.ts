import type { ArenaEvent } from '../../services/arena/index.js';
import { type Change, changing, defineView } from '../engine/view.js';
import { type MatchRow, matches, matchSeats, turns } from './table.js';

const match = <Data extends { matchId: string }>(change: Change<Data, MatchRow>) =>
  changing(matches, ({ matchId }: Data) => matchId, change);

const leaseOf = ({ runnerId, leaseUntil }: { runnerId: string; leaseUntil: string }) =>
  `With runner ${runnerId} until ${leaseUntil}.`;

const itsTurns = match(({ turn }: { matchId: string; turn: number }, { turns: before }) => ({
  turns: Math.max(before, turn),
}));

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
    MatchReady: match(() => ({ status: 'ready', reason: 'queue', detail: 'Waiting for a runner.' })),
    MatchClaimed: match((data) => ({
      status: 'playing',
      reason: 'claimed',
      detail: leaseOf(data),
      attempts: data.attempt,
    })),
    LeaseExtended: match((data) => ({ detail: leaseOf(data) })),
    MatchReleased: match(({ attempt, reason: detail }) => ({
      status: 'ready',
      reason: 'released',
      detail,
      attempts: attempt - 1,
    })),
    MatchRequeued: match(({ reason: detail }) => ({ status: 'ready', reason: 'requeued', detail })),
    TurnPlayed: {
      ...itsTurns,
      apply: (event, rows) => {
        const { matchId, turn, seat, action, fuel } = event.data;
        rows.put(turns, { matchId, turn, seat, action: JSON.stringify(action), fuel: BigInt(fuel) });
        itsTurns.apply(event, rows);
      },
    },
    MatchPlayed: match(({ outcome: { winner, reason, detail } }) => ({ winner, reason, detail })),
    MatchSettled: match((data, { seats }, time) => ({
      status: 'settled',
      potCents: BigInt(data.potCents),
      rakeCents: BigInt(data.rakeCents),
      endedAt: time,
      seats: seats.map((seat, i) => ({ ...seat, ...pick(data.seats[i]) })),
    })),
    MatchReversed: match(({ reason: detail }) => ({ status: 'reversed', reason: 'reversed', detail })),
    MatchVoided: match(({ reason, detail }, _match, endedAt) => ({ status: 'voided', reason, detail, endedAt })),
  },
});

const pick = (paid: { score: number; payoutCents: string } | undefined) =>
  paid && { score: paid.score, payoutCents: paid.payoutCents };
