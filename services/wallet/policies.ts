import type { MatchProposed, MatchSettled, MatchVoided } from '../arena/index.js';
import { definePolicy } from '../kernel/index.js';
import { HoldFunds, PostHold, VoidHold } from './commands.js';

/** One hold a seat, named so that the match and the seat can be read from it. */
export const stakeHoldId = (matchId: string, seat: number) => `${matchId}:${seat}`;

/** Stakes: held when a match is proposed, posted with the payout when it is settled, given back when it is voided. */
export const stakes = definePolicy<MatchProposed | MatchSettled | MatchVoided>(
  'wallet.stakes',
  ['MatchProposed', 'MatchSettled', 'MatchVoided'],
  ({ type, data }, meta) => {
    const { matchId } = data;
    if (data.stakeCents === '0') return [];
    switch (type) {
      case 'MatchProposed':
        return data.seats.map(({ accountId }, seat) => {
          const { stakeCents: amountCents, currency } = data;
          const purpose = { kind: 'match', matchId, seat } as const;
          return new HoldFunds(
            { accountId, holdId: stakeHoldId(matchId, seat), amountCents, currency, purpose },
            meta(seat),
          );
        });
      case 'MatchSettled':
        return data.seats.map(({ accountId, payoutCents }, seat) => {
          return new PostHold({ accountId, holdId: stakeHoldId(matchId, seat), payoutCents }, meta(seat));
        });
      case 'MatchVoided':
        return data.seats.map(({ accountId }, seat) => {
          return new VoidHold({ accountId, holdId: stakeHoldId(matchId, seat) }, meta(seat));
        });
    }
  },
);
