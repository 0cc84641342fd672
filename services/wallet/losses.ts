import type { Purpose } from './events.js';
import { type Lock, merged, rest } from './purse.js';

/** A stake that was not paid back, or a bounty that somebody won: how locked the money was. */
interface Loss {
  readonly key: string;
  readonly locks: readonly Lock[];
}

/**
 * What was lost of money that could not be withdrawn. A reversal gives it back as locked as it was: whoever reverses has
 * looked at a match, and not at where its stakes came from.
 */
export interface Losses {
  readonly recent: readonly Loss[];
  /** Of those further back, all together by currency, so that a wallet's state does not grow with its matches. */
  readonly older: Readonly<Record<string, readonly Lock[]>>;
}

export const LOSSES_MAX = 1_000;
export const NO_LOSSES: Losses = { recent: [], older: {} };

/** What reversals are about: a seat of a match, or a match's bounty. */
function keyOf(purpose: Purpose): string | undefined {
  if (purpose.kind === 'match') return `${purpose.matchId}:${purpose.seat}`;
  return purpose.kind === 'bounty' ? `${purpose.matchId}:bounty` : undefined;
}

interface Stake {
  readonly purpose: Purpose;
  readonly currency: string;
  /** How locked the money was that was taken. */
  readonly taken: readonly Lock[];
}

/** Remembers a stake of which so much came back. What comes back is the locked part first. */
export function lose(losses: Losses, { purpose, currency, taken }: Stake, backCents: bigint): Losses {
  const key = keyOf(purpose);
  if (key === undefined || taken.length === 0) return losses;
  const others = losses.recent.filter((loss) => loss.key !== key);
  const locks = rest(taken, backCents);
  if (locks.length === 0) return { ...losses, recent: others };
  const recent = [...others, { key, locks }];
  const [oldest] = recent;
  if (recent.length <= LOSSES_MAX || !oldest) return { ...losses, recent };
  const older = { ...losses.older, [currency]: merged(losses.older[currency] ?? [], oldest.locks) };
  return { recent: recent.slice(1), older };
}

/** How locked the money of this stake was. One that is not remembered may have been as locked as the most locked of the older. */
export function regain(
  losses: Losses,
  { purpose, currency }: Pick<Stake, 'purpose' | 'currency'>,
): { locks: readonly Lock[]; losses: Losses } {
  const key = keyOf(purpose);
  const loss = losses.recent.find((each) => each.key === key);
  if (!loss) return { locks: losses.older[currency] ?? [], losses };
  return { locks: loss.locks, losses: { ...losses, recent: losses.recent.filter((each) => each !== loss) } };
}
