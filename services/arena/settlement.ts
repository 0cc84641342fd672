import { AgonError, invariant } from '../kernel/index.js';

interface Settlement {
  readonly potCents: bigint;
  readonly rakeCents: bigint;
  readonly payoutsCents: readonly bigint[];
  /** What each seat gets of the bounty, beside its payout. */
  readonly bountiesCents: readonly bigint[];
  /** What goes back to the bounty's sponsor. */
  readonly remainderCents: bigint;
}

interface Stakes {
  readonly stakeCents: bigint;
  readonly scores: readonly number[];
  readonly rakeBps: number;
  readonly bountyCents?: bigint;
}

/**
 * Divides a pot. The rules, in full:
 *
 * 1. The pot is the stake of every seat.
 * 2. Scores count in parts per million. A drawn match (all scores equal) takes no rake: every stake goes back.
 * 3. Otherwise the rake is `rakeBps` of the pot, rounded down to a whole cent, and the rest is divided in proportion to
 *    the scores, each share rounded down.
 * 4. What rounding leaves over goes, a cent each, to the seats with the highest score, lowest seat first.
 *
 * 5. A bounty takes no rake. It goes to the seats with the highest score in equal parts, each rounded down; what
 *    rounding leaves over, and the whole of it when the match is drawn, goes back to the sponsor.
 *
 * So payouts + rake = pot and bounties + remainder = bounty, always, and nobody who scored nothing is paid. The number of seats changes nothing: a winner
 * who takes all is the case of one score being 1, and a game that scores by chips or by points shares the prize as it
 * shared them. A seat that did better than average can still be paid less than it staked, when the rake is larger than
 * its lead.
 *
 * @example settle({ stakeCents: 500n, scores: [1, 0], rakeBps: 1000 }) // pot 1000, rake 100, payouts [900, 0]
 */
export function settle({ stakeCents, scores, rakeBps, bountyCents = 0n }: Stakes): Settlement {
  if (!Number.isInteger(rakeBps) || rakeBps < 500 || rakeBps > 1500) {
    throw new AgonError('ARENA.BAD_RAKE', `A rake of ${rakeBps} hundredths of a percent is outside 500 to 1500.`);
  }
  const potCents = stakeCents * BigInt(scores.length);
  // Scores are fractions; parts per million turn them into integers before any money is multiplied.
  const weights = scores.map((score) => BigInt(Math.round(score * 1_000_000)));
  const best = weights.reduce((a, b) => (a > b ? a : b));
  if (weights.every((weight) => weight === best)) {
    const bountiesCents = scores.map(() => 0n);
    const payoutsCents = scores.map(() => stakeCents);
    return { potCents, rakeCents: 0n, payoutsCents, bountiesCents, remainderCents: bountyCents };
  }
  const isBest = weights.map((weight) => weight === best);
  const rakeCents = (potCents * BigInt(rakeBps)) / 10_000n;
  const payoutsCents = shares(potCents - rakeCents, weights, isBest);
  const winners = BigInt(isBest.filter(Boolean).length);
  const bountiesCents = isBest.map((won) => (won ? bountyCents / winners : 0n));
  return { potCents, rakeCents, payoutsCents, bountiesCents, remainderCents: bountyCents % winners };
}

/** In proportion to the weights, rounded down; what is left goes a cent each to the best, lowest seat first. */
function shares(prizeCents: bigint, weights: readonly bigint[], isBest: readonly boolean[]): bigint[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  invariant(total > 0n, 'A decided match has a seat that scored.');
  const sharesCents = weights.map((weight) => (prizeCents * weight) / total);
  let left = prizeCents - sharesCents.reduce((sum, share) => sum + share, 0n);
  for (let seat = 0; left > 0n; seat = (seat + 1) % weights.length) {
    if (!isBest[seat]) continue;
    sharesCents[seat] = (sharesCents[seat] ?? 0n) + 1n;
    left -= 1n;
  }
  return sharesCents;
}

const HOUR_MS = 3_600_000;

/** The next full hour after the window: a wallet then remembers a few ends, not one for every match it won. */
export function windowEnd(settledAt: string, windowMs: number): string {
  return new Date(Math.ceil((Date.parse(settledAt) + windowMs) / HOUR_MS) * HOUR_MS).toISOString();
}
