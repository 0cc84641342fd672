import { agentById, countAgents } from '../projections/agents/query.js';
import { countMatches } from '../projections/matches/query.js';
import { payerById } from '../projections/payments/query.js';
import { assertWithin, type Plan, planInForce } from '../services/payments/index.js';
import type { GatewayPorts } from './ports.js';

type Ports = Pick<GatewayPorts, 'database' | 'clock' | 'payments' | 'houseAccounts'>;

/** Who may have one more of something. */
export type Plans = Pick<PlanLimits, 'newAgent' | 'newMatch'>;

/** Where nobody counts. */
export const noLimits: Plans = {
  newAgent: (_ownerId, _agentId, submit) => submit(),
  newMatch: (_accountIds, propose) => propose(0),
};

const known = new WeakMap<Ports, PlanLimits>();

/** One count for all doors of a gateway: what GraphQL lets in, gRPC has to know. */
export function plansOf(ports: Ports): Plans {
  const plans = known.get(ports) ?? new PlanLimits(ports);
  known.set(ports, plans);
  return plans;
}

/**
 * What plans allow, held at the door. What is there stays when a plan ends: agents go on playing and may be improved,
 * matches that were proposed are played, and only what is new is refused. Where nobody could buy a plan there are no
 * limits, and the house has none.
 */
class PlanLimits {
  private day = '';
  /** How many matches of the day, by account: counted once in the read model, and from then on here. */
  private matches = new Map<string, Promise<{ count: number }>>();
  private readonly lines = new Map<string, Promise<unknown>>();

  constructor(private readonly ports: Ports) {}

  /** One new agent at a time for each owner: two that ask at once cannot both have the last place. */
  newAgent<T>(ownerId: string, agentId: string, submit: () => Promise<T>): Promise<T> {
    if (!this.isLimited(ownerId)) return submit();
    return this.inLine(ownerId, async () => {
      const { database } = this.ports;
      if (!(await agentById(database, agentId))) {
        assertWithin(await this.planOf(ownerId), 'agentsMax', await countAgents(database, ownerId), ownerId);
      }
      return submit();
    });
  }

  /** A match counts for every owner who has a seat, and has the highest priority among them. */
  async newMatch<T extends { repeated: boolean }>(
    accountIds: readonly string[],
    propose: (priority: number) => Promise<T>,
  ): Promise<T> {
    const owners = [...new Set(accountIds)].filter((accountId) => this.isLimited(accountId));
    const seats = await Promise.all(
      owners.map(async (accountId) => {
        const [plan, used] = await Promise.all([this.planOf(accountId), this.usedBy(accountId)]);
        return { accountId, plan, used };
      }),
    );
    // From here to the counting nothing waits, so that no other match comes in between.
    for (const { accountId, plan, used } of seats) assertWithin(plan, 'matchesPerDayMax', used.count, accountId);
    const count = (change: number) => {
      for (const { used } of seats) used.count += change;
    };
    count(1);
    try {
      const proposed = await propose(Math.max(0, ...seats.map(({ plan }) => plan.priority)));
      if (proposed.repeated) count(-1);
      return proposed;
    } catch (error) {
      count(-1);
      throw error;
    }
  }

  private isLimited(accountId: string): boolean {
    return this.ports.payments !== undefined && !this.ports.houseAccounts.includes(accountId);
  }

  private async planOf(accountId: string): Promise<Plan> {
    return planInForce(await payerById(this.ports.database, accountId));
  }

  private usedBy(accountId: string): Promise<{ count: number }> {
    const day = this.ports.clock().slice(0, 10);
    if (day !== this.day) [this.day, this.matches] = [day, new Map()];
    const known = this.matches.get(accountId);
    if (known) return known;
    const counted = countMatches(this.ports.database, accountId, day).then((count) => ({ count }));
    this.matches.set(accountId, counted);
    // A count that failed is not remembered.
    counted.catch(() => this.matches.delete(accountId));
    return counted;
  }

  private inLine<T>(name: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.lines.get(name) ?? Promise.resolve()).then(work);
    const over = turn
      .catch(() => {})
      .then(() => {
        if (this.lines.get(name) === over) this.lines.delete(name);
      });
    this.lines.set(name, over);
    return turn;
  }
}
