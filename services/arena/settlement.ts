import { AgonError, invariant } from '../kernel/index.js';

export interface Settlement {
  readonly potCents: bigint;
  readonly rakeCents: bigint;
  readonly payoutsCents: readonly bigint[];
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
 * So payouts + rake = pot, always, and nobody who scored nothing is paid. The number of seats changes nothing: a winner
 * who takes all is the case of one score being 1, and a game that scores by chips or by points shares the prize as it
 * shared them. A seat that did better than average can still be paid less than it staked, when the rake is larger than
 * its lead.
 *
 * @example settle({ stakeCents: 500n, scores: [1, 0], rakeBps: 1000 }) // pot 1000, rake 100, payouts [900, 0]
 */
export function settle(terms: { stakeCents: bigint; scores: readonly number[]; rakeBps: number }): Settlement {
  const { stakeCents, scores, rakeBps } = terms;
  if (!Number.isInteger(rakeBps) || rakeBps < 500 || rakeBps > 1500) {
    throw new AgonError('ARENA.BAD_RAKE', `A rake of ${rakeBps} hundredths of a percent is outside 500 to 1500.`);
  }
  const potCents = stakeCents * BigInt(scores.length);
  // Scores are fractions; parts per million turn them into integers before any money is multiplied.
  const weightOf = (score: number) => BigInt(Math.round(score * 1_000_000));
  const weights = scores.map(weightOf);
  if (weights.every((weight) => weight === weights[0])) {
    return { potCents, rakeCents: 0n, payoutsCents: scores.map(() => stakeCents) };
  }
  const rakeCents = (potCents * BigInt(rakeBps)) / 10_000n;
  const prizeCents = potCents - rakeCents;
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  invariant(total > 0n, 'A decided match has a seat that scored.');
  const payoutsCents = weights.map((weight) => (prizeCents * weight) / total);
  let left = prizeCents - payoutsCents.reduce((sum, payout) => sum + payout, 0n);
  const best = weightOf(Math.max(...scores));
  for (let seat = 0; left > 0n; seat = (seat + 1) % weights.length) {
    if (weights[seat] !== best) continue;
    payoutsCents[seat] = (payoutsCents[seat] ?? 0n) + 1n;
    left -= 1n;
  }
  return { potCents, rakeCents, payoutsCents };
}
