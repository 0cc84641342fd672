import type { Purpose, WalletEvent } from './events.js';

type BudgetSet = Extract<WalletEvent, { type: 'BudgetSet' }>['data'];

/** Caps on what is held for play and for runs, and how much of them is used. */
export interface Budget {
  readonly currency: string;
  /** Of one agent; of the whole wallet without it. */
  readonly agentId: string | undefined;
  readonly perRunCents: bigint | undefined;
  readonly perDayCents: bigint | undefined;
  readonly totalCents: bigint | undefined;
  readonly spentCents: bigint;
  /** The last day, in UTC, that something was spent on, and how much that day. */
  readonly day: string;
  readonly daySpentCents: bigint;
}

interface Spending {
  readonly currency: string;
  readonly purpose: Purpose;
}

interface OpenHold extends Spending {
  readonly amountCents: bigint;
}

/** What a hold was counted against, so that what comes back of it is taken off the same budgets. */
export interface BudgetCount {
  readonly day: string;
  readonly budgets: readonly { readonly currency: string; readonly agentId: string | undefined }[];
}

/** A new cap keeps what was counted; lifting one keeps counting, so that it can be set again. */
export function withBudget(budgets: readonly Budget[], set: BudgetSet): readonly Budget[] {
  const its = (budget: Budget) => budget.currency === set.currency && budget.agentId === set.agentId;
  const before = budgets.find(its);
  const budget: Budget = {
    currency: set.currency,
    agentId: set.agentId,
    perRunCents: bigintOf(set.perRunCents),
    perDayCents: bigintOf(set.perDayCents),
    totalCents: bigintOf(set.totalCents),
    spentCents: before?.spentCents ?? 0n,
    day: before?.day ?? '',
    daySpentCents: before?.daySpentCents ?? 0n,
  };
  return [...budgets.filter((other) => !its(other)), budget];
}

/** The budgets that this spending counts against. Withdrawing is not spending. */
export function budgetsOn(budgets: readonly Budget[], { currency, purpose }: Spending): readonly Budget[] {
  if (budgets.length === 0 || purpose.kind === 'withdrawal') return [];
  const agentId = 'agentId' in purpose ? purpose.agentId : undefined;
  return budgets.filter(
    (budget) => budget.currency === currency && (budget.agentId === undefined || budget.agentId === agentId),
  );
}

/** What may still be held for this on this day under all of these budgets; undefined if nothing caps it. */
export function leftCents(
  budgets: readonly Budget[],
  day: string,
  spending: Spending,
  holds: readonly OpenHold[],
): bigint | undefined {
  const left = budgets.flatMap((budget) => {
    const { perRunCents, perDayCents, totalCents, spentCents } = budget;
    const rests = [
      minus(perRunCents, inRunCents(budget, spending, holds)),
      minus(perDayCents, spentOn(budget, day)),
      minus(totalCents, spentCents),
    ];
    return rests.filter((rest) => rest !== undefined);
  });
  if (left.length === 0) return undefined;
  const least = left.reduce((a, b) => (a < b ? a : b));
  return least > 0n ? least : 0n;
}

/** What of a budget was spent on this day. */
export const spentOn = ({ day: last, daySpentCents }: Pick<Budget, 'day' | 'daySpentCents'>, day: string): bigint =>
  day <= last ? daySpentCents : 0n;

/** A match can take several holds of one wallet: of two seats, or a stake and the fee for the run. */
function inRunCents(budget: Budget, { purpose }: Spending, holds: readonly OpenHold[]): bigint {
  const run = runOf(purpose);
  return holds
    .filter((hold) => run !== undefined && runOf(hold.purpose) === run && budgetsOn([budget], hold).length > 0)
    .reduce((sum, { amountCents }) => sum + amountCents, 0n);
}

function runOf(purpose: Purpose): string | undefined {
  if ('matchId' in purpose) return purpose.matchId;
  return 'runId' in purpose ? purpose.runId : undefined;
}

/** Counts what is held. Clocks differ a little around midnight: what comes late counts on the later day. */
export function spend(
  budgets: readonly Budget[],
  spending: Spending,
  day: string,
  amountCents: bigint,
): { budgets: readonly Budget[]; counted: BudgetCount } {
  const concerned = budgetsOn(budgets, spending);
  const after = budgets.map((budget) => {
    if (!concerned.includes(budget)) return budget;
    const spentCents = budget.spentCents + amountCents;
    if (day <= budget.day) return { ...budget, spentCents, daySpentCents: budget.daySpentCents + amountCents };
    return { ...budget, spentCents, day, daySpentCents: amountCents };
  });
  return {
    budgets: after,
    counted: { day, budgets: concerned.map(({ currency, agentId }) => ({ currency, agentId })) },
  };
}

/** Takes off what came back of a hold; off the day only while it is still that day. */
export function unspend(
  budgets: readonly Budget[],
  counted: BudgetCount | undefined,
  amountCents: bigint,
): readonly Budget[] {
  if (!counted) return budgets;
  return budgets.map((budget) => {
    const its = counted.budgets.some((c) => c.currency === budget.currency && c.agentId === budget.agentId);
    if (!its) return budget;
    const ofDay = counted.day === budget.day ? amountCents : 0n;
    return { ...budget, spentCents: budget.spentCents - amountCents, daySpentCents: budget.daySpentCents - ofDay };
  });
}

const bigintOf = (text: string | undefined) => (text === undefined ? undefined : BigInt(text));
const minus = (cap: bigint | undefined, cents: bigint) => (cap === undefined ? undefined : cap - cents);
