import type { MatchProposed, MatchReversed, MatchSettled, MatchVoided } from '../arena/index.js';
import { type Command, definePolicy, type Reaction } from '../kernel/index.js';
import { AwardBounty, HoldFunds, PostHold, ReverseSettlement, VoidHold } from './commands.js';

/** One hold a seat, named so that the match and the seat can be read from it. */
export const stakeHoldId = (matchId: string, seat: number) => `${matchId}:${seat}`;
export const computeHoldId = (matchId: string, seat: number) => `${matchId}:${seat}:compute`;
export const bountyHoldId = (matchId: string) => `${matchId}:bounty`;

type Settled = MatchSettled['data'];
type Terms = Pick<Settled, 'matchId' | 'currency' | 'stakeCents' | 'computeCents'> & {
  readonly seats: readonly { readonly accountId: string }[];
  readonly bounty?: { readonly sponsorId: string } | undefined;
};

/**
 * The holds of a match: held when it is proposed, posted with the payout when it is settled, given back when it is
 * voided; and the mirror image of all that when a settlement is reversed.
 */
export const stakes = definePolicy<MatchProposed | MatchSettled | MatchVoided | MatchReversed>(
  'wallet.stakes',
  ['MatchProposed', 'MatchSettled', 'MatchVoided', 'MatchReversed'],
  ({ type, data }, meta): readonly Command[] => {
    switch (type) {
      case 'MatchProposed':
        return hold(data, meta);
      case 'MatchSettled':
        return pay(data, meta);
      case 'MatchVoided':
        return holdsOf(data).map(({ accountId, holdId, index }) => new VoidHold({ accountId, holdId }, meta(index)));
      case 'MatchReversed':
        return reverse(data, meta);
    }
  },
);

/** A match's holds, each with the number of its command: the stake's is its seat, as it always was. */
function holdsOf({ matchId, seats, stakeCents, computeCents, bounty }: Terms) {
  const stake = seats.map(({ accountId }, seat) => ({ accountId, holdId: stakeHoldId(matchId, seat), index: seat }));
  const compute = seats.map(({ accountId }, seat) => ({
    accountId,
    holdId: computeHoldId(matchId, seat),
    index: seats.length + seat,
  }));
  const sponsored = bounty
    ? [{ accountId: bounty.sponsorId, holdId: bountyHoldId(matchId), index: 2 * seats.length }]
    : [];
  return [...(stakeCents === '0' ? [] : stake), ...(computeCents === undefined ? [] : compute), ...sponsored];
}

const awardIndex = ({ seats }: Terms, seat: number) => 2 * seats.length + 1 + seat;

function hold(data: MatchProposed['data'], meta: Reaction): readonly Command[] {
  const { matchId, currency, stakeCents, computeCents = '0', bounty, disputeWindowMs } = data;
  return holdsOf(data).map(({ accountId, holdId, index }) => {
    const seat = index % data.seats.length;
    const agentId = data.seats[seat]?.agentId ?? '';
    const held = { accountId, holdId };
    if (index < data.seats.length) {
      // Matches from before there was a window held without the agent's name. Delivered again, they must ask the same.
      const purpose = { kind: 'match' as const, matchId, seat, ...(disputeWindowMs === undefined ? {} : { agentId }) };
      return new HoldFunds({ ...held, amountCents: stakeCents, currency, purpose }, meta(index));
    }
    if (index < 2 * data.seats.length) {
      const purpose = { kind: 'run' as const, runId: matchId, agentId, seat };
      return new HoldFunds({ ...held, amountCents: computeCents, currency: 'COMPUTE', purpose }, meta(index));
    }
    const { bountyId = '', amountCents = '0' } = bounty ?? {};
    const purpose = { kind: 'bounty' as const, bountyId, matchId };
    return new HoldFunds({ ...held, amountCents, currency, purpose }, meta(index));
  });
}

function pay(data: Settled, meta: Reaction): readonly Command[] {
  const { matchId, currency, bounty, withdrawableAt } = data;
  const window = withdrawableAt === undefined ? {} : { withdrawableAt };
  const posts = holdsOf(data).map(({ accountId, holdId, index }) => {
    if (index === 2 * data.seats.length) {
      return new PostHold({ accountId, holdId, payoutCents: bounty?.remainderCents ?? '0' }, meta(index));
    }
    const payoutCents = data.seats[index]?.payoutCents;
    if (payoutCents === undefined) return new PostHold({ accountId, holdId, payoutCents: '0' }, meta(index));
    return new PostHold({ accountId, holdId, payoutCents, ...window }, meta(index));
  });
  const awards = data.seats.flatMap(({ accountId, bountyCents: amountCents }, seat) => {
    if (amountCents === undefined || !bounty) return [];
    const award = { accountId, amountCents, currency, bountyId: bounty.bountyId, matchId, seat };
    return [new AwardBounty({ ...award, ...window }, meta(awardIndex(data, seat)))];
  });
  return [...posts, ...awards];
}

/** Compute was used, whatever came of the match, and is not given back. */
function reverse(data: MatchReversed['data'], meta: Reaction): readonly Command[] {
  const { matchId, currency, stakeCents, bounty } = data;
  const stakes = data.seats.map(({ accountId, payoutCents }, seat) => {
    const purpose = { kind: 'match' as const, matchId, seat };
    return new ReverseSettlement({ accountId, currency, purpose, stakeCents, payoutCents }, meta(seat));
  });
  const staked = stakeCents === '0' ? [] : stakes;
  if (!bounty) return staked;
  const { bountyId, sponsorId, amountCents, remainderCents } = bounty;
  const purpose = { kind: 'bounty' as const, bountyId, matchId };
  const awards = data.seats.flatMap(({ accountId, bountyCents: payoutCents }, seat) => {
    if (payoutCents === undefined) return [];
    const award = { accountId, currency, purpose, stakeCents: '0', payoutCents };
    return [new ReverseSettlement(award, meta(awardIndex(data, seat)))];
  });
  const back = { accountId: sponsorId, currency, purpose, stakeCents: amountCents, payoutCents: remainderCents };
  return [...staked, ...awards, new ReverseSettlement(back, meta(2 * data.seats.length))];
}
