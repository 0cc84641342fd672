import { AgonError } from '../kernel/index.js';

/** What a plan allows. Prices are cents of US dollars a month. */
export interface Plan {
  readonly planId: string;
  readonly title: string;
  readonly priceCents: string;
  readonly agentsMax: number;
  readonly matchesPerDayMax: number;
  readonly requestsPerMinuteMax: number;
  /** Among matches that wait, a higher one is played first. */
  readonly priority: number;
}

/** What a plan sets a limit to. */
export type PlanLimit = 'agentsMax' | 'matchesPerDayMax';

export const OFFER_CURRENCY = 'USD' as const;

export const plans: readonly Plan[] = [
  {
    planId: 'free',
    title: 'Free',
    priceCents: '0',
    agentsMax: 3,
    matchesPerDayMax: 200,
    requestsPerMinuteMax: 100,
    priority: 0,
  },
  {
    planId: 'pro',
    title: 'Pro',
    priceCents: '1900',
    agentsMax: 25,
    matchesPerDayMax: 5_000,
    requestsPerMinuteMax: 600,
    priority: 1,
  },
  {
    planId: 'team',
    title: 'Team',
    priceCents: '9900',
    agentsMax: 200,
    matchesPerDayMax: 50_000,
    requestsPerMinuteMax: 3_000,
    priority: 2,
  },
];

/** Compute credits are bought in packs: the larger, the cheaper each. */
export interface CreditPack {
  readonly packId: string;
  /** In hundredths, as wallets count them. */
  readonly creditCents: string;
  readonly priceCents: string;
}

export const creditPacks: readonly CreditPack[] = [
  { packId: 'small', creditCents: '100000', priceCents: '500' },
  { packId: 'medium', creditCents: '600000', priceCents: '2500' },
  { packId: 'large', creditCents: '3000000', priceCents: '10000' },
];

export function planNamed(planId: string): Plan {
  const plan = plans.find((each) => each.planId === planId);
  if (plan) return plan;
  const known = plans.map((each) => each.planId).join(', ');
  throw new AgonError('PAYMENTS.UNKNOWN_PLAN', `There is no plan ${planId}. Plans: ${known}.`);
}

/**
 * What holds for an owner. A plan whose payment is late is still being charged for, and holds; one that was given up as
 * unpaid, has ended, or never began is the free one.
 */
export function planInForce({ planId, planStatus }: { planId: string; planStatus: string }): Plan {
  return planNamed(planStatus === 'active' || planStatus === 'late' ? planId : 'free');
}

/** The refusal of one more than the plan allows, which says which plan would. */
export function beyondPlan(plan: Plan, limit: PlanLimit, used: number, accountId: string): AgonError {
  const allowed = plan[limit];
  const what = { agentsMax: 'agents', matchesPerDayMax: 'matches a day' }[limit];
  const more = plans.find((each) => each[limit] > allowed);
  const how = more
    ? `The plan ${more.planId} allows ${more[limit]}: "agon plan subscribe ${accountId} ${more.planId}".`
    : 'There is no larger plan.';
  return new AgonError(
    'PAYMENTS.PLAN_LIMIT',
    `${accountId} is on the plan ${plan.planId}, which allows ${allowed} ${what}, and has used all of them. ${how}`,
    { planId: plan.planId, limit, allowed, used },
  );
}

export function packNamed(packId: string): CreditPack {
  const pack = creditPacks.find((each) => each.packId === packId);
  if (pack) return pack;
  const known = creditPacks.map((each) => each.packId).join(', ');
  throw new AgonError('PAYMENTS.UNKNOWN_PACK', `There is no pack ${packId}. Packs: ${known}.`);
}
