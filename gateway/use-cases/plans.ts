import { agentById, countAgents } from '../../projections/agents/query.js';
import { countMatches } from '../../projections/matches/query.js';
import { payerById } from '../../projections/payments/query.js';
import type { Claim } from '../../services/kernel/index.js';
import { beyondPlan, type Plan, type PlanLimit, planInForce, planNamed } from '../../services/payments/index.js';
import type { GatewayPorts } from '../ports.js';
import type { Receipt } from './ask.js';

export type PlanPorts = Pick<GatewayPorts, 'database' | 'clock' | 'payments' | 'houseAccounts' | 'quotas'>;

/** How long what was looked up is remembered: looking it up for each request would cost more than most of them. */
const LOOKED_UP_MS = 30_000;
const LOOKED_UP_MAX = 10_000;
/** Longer than a day, whatever the clocks of two gateways say. */
const DAY_KEPT_MS = 2 * 86_400_000;
/** Far longer than it takes until a new agent is in the read model. */
const AGENT_KEPT_MS = 600_000;

const known = new WeakMap<PlanPorts, PlanLimits>();

/** One for all endpoints of a gateway. What they let in is counted together with all other gateways. */
export function plansOf(ports: PlanPorts): PlanLimits {
  const plans = known.get(ports) ?? new PlanLimits(ports);
  known.set(ports, plans);
  return plans;
}

/**
 * What plans allow, held at the endpoint. What is there stays when a plan ends: agents go on playing and may be improved,
 * matches that were proposed are played, and only what is new is refused. Where nobody could buy a plan there are no
 * limits, and the house has none.
 */
class PlanLimits {
  private readonly plans: LookedUp<Plan>;
  /** How many matches of a day the read model has. */
  private readonly matches: LookedUp<number>;

  constructor(private readonly ports: PlanPorts) {
    const nowMs = () => Date.parse(ports.clock());
    this.plans = new LookedUp(nowMs, (accountId) => this.planOf(accountId));
    this.matches = new LookedUp(nowMs, (accountId, day) => countMatches(ports.database, accountId, day));
  }

  async newAgent(ownerId: string, agentId: string, submit: () => Promise<Receipt>): Promise<Receipt> {
    const { database } = this.ports;
    if (!this.isLimited(ownerId) || (await agentById(database, agentId))) return submit();
    const [plan, known] = await Promise.all([this.planOf(ownerId), countAgents(database, ownerId)]);
    const claim = { name: `agents:${ownerId}`, known, keepMs: AGENT_KEPT_MS };
    return this.within('agentsMax', [{ accountId: ownerId, plan, claim }], submit, isAgent);
  }

  /** A match counts for every owner who has a seat, and has the highest priority among them. */
  async newMatch(accountIds: readonly string[], propose: (priority: number) => Promise<Receipt>): Promise<Receipt> {
    const day = this.ports.clock().slice(0, 10);
    const owners = [...new Set(accountIds)].filter((accountId) => this.isLimited(accountId));
    const seats = await Promise.all(
      owners.map(async (accountId): Promise<Seat> => {
        const [plan, known] = await Promise.all([this.planOf(accountId), this.matches.of(accountId, day)]);
        return { accountId, plan, claim: { name: `matches:${day}:${accountId}`, known, keepMs: DAY_KEPT_MS } };
      }),
    );
    const priority = Math.max(0, ...seats.map(({ plan }) => plan.priority));
    return this.within(
      'matchesPerDayMax',
      seats,
      () => propose(priority),
      ({ repeated }) => !repeated,
    );
  }

  /** Requests a minute: the most that a plan of these accounts allows. A plan that was just bought counts in a moment. */
  async requestsOf(accountIds: readonly string[]): Promise<number> {
    const free = planNamed('free').requestsPerMinuteMax;
    if (this.ports.payments === undefined) return free;
    // Who cannot be looked up is not sent away for it: what is asked for will say what is wrong.
    const look = (accountId: string) => this.plans.of(accountId).catch(() => planNamed('free'));
    const plans = await Promise.all(accountIds.map(look));
    return Math.max(free, ...plans.map((plan) => plan.requestsPerMinuteMax));
  }

  /** Claims first and asks then, so that two who want the last place cannot both have it. */
  private async within(
    limit: PlanLimit,
    seats: readonly Seat[],
    make: () => Promise<Receipt>,
    isNew: (made: Receipt) => boolean,
  ): Promise<Receipt> {
    if (seats.length === 0) return make();
    const claimed = await this.ports.quotas.claim(seats.map(({ plan, claim }) => ({ ...claim, max: plan[limit] })));
    if (!claimed.ok) {
      const { plan, accountId } = seats.find(({ claim }) => claim.name === claimed.name) as Seat;
      throw beyondPlan(plan, limit, claimed.used, accountId);
    }
    try {
      const made = await make();
      if (!isNew(made)) await claimed.release();
      return made;
    } catch (error) {
      await claimed.release();
      throw error;
    }
  }

  private isLimited(accountId: string): boolean {
    return this.ports.payments !== undefined && !this.ports.houseAccounts.includes(accountId);
  }

  private async planOf(accountId: string): Promise<Plan> {
    return planInForce(await payerById(this.ports.database, accountId));
  }
}

interface Seat {
  readonly accountId: string;
  readonly plan: Plan;
  readonly claim: Omit<Claim, 'max'>;
}

/** A new version of an agent that came first by another endpoint is none more. */
const isAgent = ({ repeated, events }: Receipt) => !repeated && events.some((type) => AGENT_EVENTS.includes(type));
const AGENT_EVENTS = ['AgentSubmitted', 'ExternalAgentRegistered'];

/** Answers that are good for a while. */
class LookedUp<T> {
  private readonly answers = new Map<string, { atMs: number; answer: Promise<T> }>();

  constructor(
    private readonly nowMs: () => number,
    private readonly look: (accountId: string, day: string) => Promise<T>,
  ) {}

  of(accountId: string, day = ''): Promise<T> {
    const name = `${day}:${accountId}`;
    const atMs = this.nowMs();
    const known = this.answers.get(name);
    if (known && atMs - known.atMs < LOOKED_UP_MS) return known.answer;
    const answer = this.look(accountId, day);
    this.answers.delete(name);
    this.answers.set(name, { atMs, answer });
    if (this.answers.size > LOOKED_UP_MAX) this.answers.delete(this.answers.keys().next().value as string);
    // What failed is not remembered.
    answer.catch(() => this.answers.delete(name));
    return answer;
  }
}
