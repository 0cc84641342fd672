import { invariant } from '../kernel/index.js';

/** A part of what is available that can be played with but not withdrawn: before a moment, or ever (null). */
export interface Lock {
  readonly until: string | null;
  readonly amountCents: bigint;
}

/** One currency of a wallet. */
export interface Purse {
  /** What can be spent: holds are already taken out. */
  readonly availableCents: bigint;
  /** What was taken back and not there. Nothing is available while something is owed. */
  readonly owedCents: bigint;
  /** One a moment: those without an end first, then the latest first. */
  readonly locks: readonly Lock[];
}

/**
 * Where money is taken from first. A stake comes out of what cannot be withdrawn, a withdrawal out of what can, and a
 * reversal out of what was won.
 */
type Order = 'locked' | 'free' | 'won';

const LOCKS_MAX = 64;
const NONE: readonly Lock[] = [];

export const EMPTY_PURSE: Purse = { availableCents: 0n, owedCents: 0n, locks: NONE };

/** Credits that cost nothing, and credits for compute, are no money: they are never withdrawn. */
export const isMoney = (currency: string): boolean => currency !== 'PLAY' && currency !== 'COMPUTE';

export function put(purse: Purse, amountCents: bigint, until?: string | null): Purse {
  const locks = until === undefined ? purse.locks : merged(purse.locks, [{ until, amountCents }]);
  return { ...purse, availableCents: purse.availableCents + amountCents, locks };
}

/** Puts back what was taken, as locked as it was. If less comes back than was taken, the locked part comes first. */
export function putBack(purse: Purse, amountCents: bigint, taken: readonly Lock[]): Purse {
  const locks = taken.length === 0 ? purse.locks : merged(purse.locks, first(taken, amountCents));
  return { ...purse, availableCents: purse.availableCents + amountCents, locks };
}

export function take(purse: Purse, amountCents: bigint, order: Order): { purse: Purse; taken: readonly Lock[] } {
  const availableCents = purse.availableCents - amountCents;
  invariant(availableCents >= 0n, `${amountCents} were to be taken out of ${purse.availableCents}.`);
  if (purse.locks.length === 0) return { purse: { ...purse, availableCents }, taken: NONE };
  const freeCents = purse.availableCents - total(purse.locks);
  const fromLocks = order === 'free' ? amountCents - freeCents : amountCents;
  const taken = first(inOrder(purse.locks, order), fromLocks);
  const locks = purse.locks.flatMap((lock) => {
    const left = lock.amountCents - (taken.find(({ until }) => until === lock.until)?.amountCents ?? 0n);
    return left > 0n ? [{ until: lock.until, amountCents: left }] : [];
  });
  return { purse: { ...purse, availableCents, locks }, taken };
}

/** What may leave the house at this moment. */
export function withdrawableCents(purse: Purse, nowIso: string): bigint {
  return purse.availableCents - total(purse.locks.filter(({ until }) => until === null || until > nowIso));
}

const total = (locks: readonly Lock[]) => locks.reduce((sum, { amountCents }) => sum + amountCents, 0n);

/** Never ends before any end, then the latest first. */
const compare = (a: Lock, b: Lock) => {
  if (a.until === b.until) return 0;
  return a.until === null || (b.until !== null && a.until > b.until) ? -1 : 1;
};

function inOrder(locks: readonly Lock[], order: Order): readonly Lock[] {
  if (order === 'free') return locks.toReversed();
  if (order === 'locked') return locks;
  return [...locks.filter(({ until }) => until !== null), ...locks.filter(({ until }) => until === null)];
}

/** The first so many cents of these locks; all of them if there are fewer. */
function first(locks: readonly Lock[], amountCents: bigint): readonly Lock[] {
  const some: Lock[] = [];
  let left = amountCents;
  for (const { until, amountCents: has } of locks) {
    if (left <= 0n) break;
    some.push({ until, amountCents: has < left ? has : left });
    left -= has;
  }
  return some;
}

/** What is left of these locks after their first so many cents. */
export function rest(locks: readonly Lock[], amountCents: bigint): readonly Lock[] {
  let gone = amountCents;
  return locks.flatMap(({ until, amountCents: has }) => {
    const left = has > gone ? has - gone : 0n;
    gone -= has - left;
    return left > 0n ? [{ until, amountCents: left }] : [];
  });
}

/** One lock a moment, in order. */
export function merged(locks: readonly Lock[], more: readonly Lock[]): readonly Lock[] {
  const byEnd = new Map<string | null, bigint>();
  for (const { until, amountCents } of [...locks, ...more]) byEnd.set(until, (byEnd.get(until) ?? 0n) + amountCents);
  const all = [...byEnd].map(([until, amountCents]) => ({ until, amountCents })).sort(compare);
  // The two that end first become one that ends with the later of them: a wallet's state does not grow for ever.
  while (all.length > LOCKS_MAX) {
    const [later, sooner] = all.splice(-2) as [Lock, Lock];
    all.push({ until: later.until, amountCents: later.amountCents + sooner.amountCents });
  }
  return all;
}
