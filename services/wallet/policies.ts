import type { EscrowDeclined, MatchProposed, MatchReversed, MatchSettled, MatchVoided } from '../arena/index.js';
import { type Command, definePolicy, type Reaction } from '../kernel/index.js';
import { AwardBounty, HoldFunds, PostHold, ReverseSettlement, VoidHold } from './commands.js';

/** One hold a seat, named so that the match and the seat can be read from it. */
export const stakeHoldId = (matchId: string, seat: number) => `${matchId}:${seat}`;
const computeHoldId = (matchId: string, seat: number) => `${matchId}:${seat}:compute`;
const bountyHoldId = (matchId: string) => `${matchId}:bounty`;

/**
 * The holds of a match: held when it is proposed, posted with the payout when it is settled, given back when it is
 * voided; and the mirror image of all that when a settlement is reversed.
 */
export const stakes = definePolicy<MatchProposed | MatchSettled | MatchVoided | MatchReversed | EscrowDeclined>(
  'wallet.stakes',
  ['MatchProposed', 'MatchSettled', 'MatchVoided', 'MatchReversed', 'EscrowDeclined'],
  ({ type, data }, meta): readonly Command[] => {
    switch (type) {
      case 'MatchProposed':
        return hold(data, meta);
      case 'MatchSettled':
        return pay(data, meta);
      case 'MatchVoided':
        return giveBack(data, meta);
      case 'MatchReversed':
        return reverse(data, meta);
      case 'EscrowDeclined':
        return [new VoidHold({ accountId: data.accountId, holdId: declinedHoldId(data) }, meta(0))];
    }
  },
);

function declinedHoldId({ matchId, held, seat }: EscrowDeclined['data']): string {
  if (seat === undefined) return bountyHoldId(matchId);
  return held === 'compute' ? computeHoldId(matchId, seat) : stakeHoldId(matchId, seat);
}

/** The numbers of a match's commands. A stake's is its seat, as it always was; the others come after. */
const computeIndex = (seats: number, seat: number) => seats + seat;
const bountyIndex = (seats: number) => 2 * seats;
const awardIndex = (seats: number, seat: number) => 2 * seats + 1 + seat;

function hold(data: MatchProposed['data'], meta: Reaction): readonly Command[] {
  const { matchId, currency, seats, stakeCents, computeCents, bounty, disputeWindowMs } = data;
  const commands: Command[] = [];
  for (const [seat, { accountId, agentId }] of seats.entries()) {
    if (stakeCents === '0') break;
    // Matches from before there was a window held without the agent's name. Delivered again, they must ask the same.
    const purpose = { kind: 'match' as const, matchId, seat, ...(disputeWindowMs === undefined ? {} : { agentId }) };
    const stake = { accountId, holdId: stakeHoldId(matchId, seat), amountCents: stakeCents, currency, purpose };
    commands.push(new HoldFunds(stake, meta(seat)));
  }
  for (const [seat, { accountId, agentId }] of seats.entries()) {
    if (computeCents === undefined) break;
    const purpose = { kind: 'run' as const, runId: matchId, agentId, seat };
    const fee = { accountId, holdId: computeHoldId(matchId, seat), amountCents: computeCents, currency: 'COMPUTE' };
    commands.push(new HoldFunds({ ...fee, purpose }, meta(computeIndex(seats.length, seat))));
  }
  if (bounty) {
    const { bountyId, sponsorId: accountId, amountCents } = bounty;
    const purpose = { kind: 'bounty' as const, bountyId, matchId };
    const prize = { accountId, holdId: bountyHoldId(matchId), amountCents, currency, purpose };
    commands.push(new HoldFunds(prize, meta(bountyIndex(seats.length))));
  }
  return commands;
}

function pay(data: MatchSettled['data'], meta: Reaction): readonly Command[] {
  const { matchId, currency, seats, stakeCents, computeCents, bounty, withdrawableAt } = data;
  const window = withdrawableAt === undefined ? {} : { withdrawableAt };
  const commands: Command[] = [];
  for (const [seat, { accountId, payoutCents, bountyCents }] of seats.entries()) {
    if (stakeCents !== '0') {
      const holdId = stakeHoldId(matchId, seat);
      commands.push(new PostHold({ accountId, holdId, payoutCents, ...window }, meta(seat)));
    }
    if (computeCents !== undefined) {
      const used = { accountId, holdId: computeHoldId(matchId, seat), payoutCents: '0' };
      commands.push(new PostHold(used, meta(computeIndex(seats.length, seat))));
    }
    if (bounty && bountyCents !== undefined) {
      const award = { accountId, amountCents: bountyCents, currency, bountyId: bounty.bountyId, matchId, seat };
      commands.push(new AwardBounty({ ...award, ...window }, meta(awardIndex(seats.length, seat))));
    }
  }
  if (bounty) {
    const { sponsorId: accountId, remainderCents: payoutCents } = bounty;
    const holdId = bountyHoldId(matchId);
    commands.push(new PostHold({ accountId, holdId, payoutCents }, meta(bountyIndex(seats.length))));
  }
  return commands;
}

function giveBack(data: MatchVoided['data'], meta: Reaction): readonly Command[] {
  const { matchId, seats, stakeCents, computeCents, bounty } = data;
  const back = (accountId: string, holdId: string, index: number) => new VoidHold({ accountId, holdId }, meta(index));
  return [
    ...(stakeCents === '0'
      ? []
      : seats.map(({ accountId }, seat) => back(accountId, stakeHoldId(matchId, seat), seat))),
    ...(computeCents === undefined
      ? []
      : seats.map(({ accountId }, seat) => {
          return back(accountId, computeHoldId(matchId, seat), computeIndex(seats.length, seat));
        })),
    ...(bounty ? [back(bounty.sponsorId, bountyHoldId(matchId), bountyIndex(seats.length))] : []),
  ];
}

/** Compute was used, whatever came of the match, and is not given back. */
function reverse(data: MatchReversed['data'], meta: Reaction): readonly Command[] {
  const { matchId, currency, seats, stakeCents, bounty } = data;
  const staked = seats.map(({ accountId, payoutCents }, seat) => {
    const purpose = { kind: 'match' as const, matchId, seat };
    return new ReverseSettlement({ accountId, currency, purpose, stakeCents, payoutCents }, meta(seat));
  });
  const commands: Command[] = stakeCents === '0' ? [] : staked;
  if (!bounty) return commands;
  const { bountyId, sponsorId, amountCents, remainderCents } = bounty;
  const purpose = { kind: 'bounty' as const, bountyId, matchId };
  for (const [seat, { accountId, bountyCents: payoutCents }] of seats.entries()) {
    if (payoutCents === undefined) continue;
    const award = { accountId, currency, purpose, stakeCents: '0', payoutCents };
    commands.push(new ReverseSettlement(award, meta(awardIndex(seats.length, seat))));
  }
  const back = { accountId: sponsorId, currency, purpose, stakeCents: amountCents, payoutCents: remainderCents };
  return [...commands, new ReverseSettlement(back, meta(bountyIndex(seats.length)))];
}
