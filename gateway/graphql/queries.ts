import { Inject } from '@nestjs/common';
import { Args, Context, Int, Parent, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { agentById, listAgents, versionsOf } from '../../projections/agents/query.js';
import { balancesOf, listBalances } from '../../projections/balances/query.js';
import type { BalanceRow } from '../../projections/balances/table.js';
import { PAGE_MAX, type Page } from '../../projections/engine/page.js';
import { listMatches, matchById, turnsOf } from '../../projections/matches/query.js';
import type { MatchRow } from '../../projections/matches/table.js';
import type { RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { batched, grouped, perRequest } from './batch.js';
import { Agent, AgentPage, AgentVersion, BalancePage, Match, MatchPage, Turn } from './types.js';

export const FIRST = { type: () => Int, nullable: true, description: `1 to ${PAGE_MAX}; 20 when left out.` } as const;
export const TEXT = { type: () => String, nullable: true } as const;

/** Everything that can be read. */
@Resolver()
export class Queries {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => [String], { description: 'The games that are played here.' })
  games() {
    return this.ports.games;
  }

  @Query(() => AgentPage)
  async agents(
    @Args('first', FIRST) first?: number,
    @Args('after', TEXT) after?: string,
    @Args('ownerId', TEXT) ownerId?: string,
  ) {
    return connection(await listAgents(this.ports.database, { first, after, ...(ownerId ? { ownerId } : {}) }));
  }

  @Query(() => Agent, { nullable: true })
  agent(@Args('agentId', { type: () => String }) agentId: string) {
    return agentById(this.ports.database, agentId);
  }

  @Query(() => MatchPage, { description: 'Newest first.' })
  async matches(
    @Args('first', FIRST) first?: number,
    @Args('after', TEXT) after?: string,
    @Args('game', TEXT) game?: string,
    @Args('status', TEXT) status?: string,
    @Args('agentId', TEXT) agentId?: string,
  ) {
    const page = await listMatches(this.ports.database, { first, after, game, status, agentId });
    return connection({ ...page, rows: page.rows.map(matchOf) });
  }

  @Query(() => Match, { nullable: true })
  async match(@Args('matchId', { type: () => String }) matchId: string) {
    const row = await matchById(this.ports.database, matchId);
    return row && matchOf(row);
  }

  @Query(() => BalancePage, { description: 'Ledger accounts, by name and currency; or what one player has.' })
  async balances(
    @Args('accountId', TEXT) accountId?: string,
    @Args('first', FIRST) first?: number,
    @Args('after', TEXT) after?: string,
  ) {
    const { database } = this.ports;
    const page: Page<BalanceRow> = accountId
      ? { rows: await balancesOf(database, accountId), next: undefined }
      : await listBalances(database, { first, after });
    return connection({ ...page, rows: page.rows.map((row) => ({ ...row, balanceCents: `${row.balanceCents}` })) });
  }
}

@Resolver(() => Match)
export class MatchFields {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  readonly #turns = perRequest(() =>
    batched(async (matchIds) => grouped(await turnsOf(this.ports.database, matchIds), (turn) => turn.matchId)),
  );

  @ResolveField(() => [Turn])
  async transcript(@Parent() match: Match, @Context() context: RequestContext) {
    const rows = (await this.#turns(context)(match.matchId)) ?? [];
    return rows.map((row) => ({ ...row, fuel: row.fuel.toString() }));
  }
}

@Resolver(() => Agent)
export class AgentFields {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  readonly #versions = perRequest(() =>
    batched(async (agentIds) => grouped(await versionsOf(this.ports.database, agentIds), (each) => each.agentId)),
  );

  @ResolveField(() => [AgentVersion])
  async versions(@Parent() agent: Agent, @Context() context: RequestContext) {
    return (await this.#versions(context)(agent.agentId)) ?? [];
  }
}

export const connection = <Row>(page: Page<Row>) => ({
  nodes: page.rows,
  pageInfo: { hasNextPage: page.next !== undefined, endCursor: page.next ?? null },
});

/** Whoever knows the seed of a match that is being played knows what its dice will show. */
const matchOf = (row: MatchRow) => ({
  ...row,
  seed: row.endedAt === null ? null : row.seed,
  stakeCents: row.stakeCents.toString(),
  potCents: row.potCents.toString(),
  rakeCents: row.rakeCents.toString(),
});
