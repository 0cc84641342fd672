import { Inject, type Type } from '@nestjs/common';
import { Args, Context, Parent, ResolveField, Resolver } from '@nestjs/graphql';
import { ALL_TIME } from '../../projections/leaderboards/table.js';
import { listOpenMatches, openStatuses } from '../../projections/matches/query.js';
import { AgonError } from '../../services/kernel/index.js';
import { seasonIn } from '../answers.js';
import type { RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { Loaders } from './loaders.js';
import { emptyPage, PAGE, type PageArgs, pageIn, toConnection } from './relay.js';
import { accountOf, agentOf, matchOf, ratingChangeOf, turnOf, versionOf } from './rows.js';
import {
  Account,
  Agent,
  AgentConnection,
  AgentVersion,
  AgentVersionConnection,
  Lease,
  LeaseConnection,
  Match,
  MatchConnection,
  Posting,
  Queue,
  RatingChange,
  RatingChangeConnection,
  Runner,
  Seat,
  Standing,
  Turn,
  TurnConnection,
  WaitingAgent,
} from './types.js';

const TEXT = { type: () => String, nullable: true } as const;

/** From one thing to the next. Whatever is asked for of many rows is fetched for all of them at once. */
@Resolver(() => Account)
export class AccountFields {
  constructor(@Inject(Loaders) private readonly loaders: Loaders) {}

  @ResolveField(() => AgentConnection)
  async agents(@Parent() account: Account, @Args(PAGE) page: PageArgs, @Context() context: RequestContext) {
    const found = await this.loaders.of(context).agentPage(pageIn(page), account.accountId);
    return toConnection(found ?? emptyPage, agentOf);
  }
}

@Resolver(() => Agent)
export class AgentFields {
  constructor(@Inject(Loaders) private readonly loaders: Loaders) {}

  @ResolveField(() => Account, { nullable: true })
  async owner(@Parent() agent: Agent, @Context() context: RequestContext) {
    const account = await this.loaders.of(context).account(agent.ownerId);
    return account && accountOf(account);
  }

  @ResolveField(() => [AgentVersion], { description: 'Oldest first.' })
  async versions(@Parent() agent: Agent, @Context() context: RequestContext) {
    return ((await this.loaders.of(context).versions(agent.agentId)) ?? []).map(versionOf);
  }

  @ResolveField(() => AgentVersionConnection, { description: 'Newest first.' })
  async versionsConnection(@Parent() agent: Agent, @Args(PAGE) page: PageArgs, @Context() context: RequestContext) {
    const found = await this.loaders.of(context).versionPage(pageIn(page), agent.agentId);
    return toConnection(found ?? emptyPage, versionOf);
  }

  @ResolveField(() => MatchConnection, { description: 'Those in which it sits, newest first.' })
  async matches(
    @Parent() agent: Agent,
    @Args(PAGE) page: PageArgs,
    @Args('game', TEXT) game: string | undefined,
    @Args('status', TEXT) status: string | undefined,
    @Context() context: RequestContext,
  ) {
    const filter = { ...pageIn(page), game: game ?? undefined, status: status ?? undefined };
    const found = await this.loaders.of(context).matchPage(filter, agent.agentId);
    return toConnection(found ?? emptyPage, matchOf);
  }

  @ResolveField(() => RatingChangeConnection, { description: 'How its rating in a game came about, newest first.' })
  async ratingHistory(
    @Parent() agent: Agent,
    @Args('game', { type: () => String }) game: string,
    @Args(PAGE) page: PageArgs,
    @Args('season', { type: () => String, defaultValue: ALL_TIME }) season: string,
    @Context() context: RequestContext,
  ) {
    const asked = { board: { game, season: seasonIn(season) }, page: pageIn(page) };
    const found = await this.loaders.of(context).history(asked, agent.agentId);
    return toConnection(found ?? emptyPage, ratingChangeOf);
  }
}

@Resolver(() => Match)
export class MatchFields {
  constructor(@Inject(Loaders) private readonly loaders: Loaders) {}

  @ResolveField(() => [Turn])
  async transcript(@Parent() match: Match, @Context() context: RequestContext) {
    return ((await this.loaders.of(context).turns(match.matchId)) ?? []).map(turnOf);
  }

  @ResolveField(() => TurnConnection)
  async transcriptConnection(@Parent() match: Match, @Args(PAGE) page: PageArgs, @Context() context: RequestContext) {
    const found = await this.loaders.of(context).turnPage(pageIn(page), match.matchId);
    return toConnection(found ?? emptyPage, turnOf);
  }

  @ResolveField(() => Lease, { nullable: true, description: 'Who has it in hand; null when nobody does.' })
  lease(@Parent() match: Match, @Context() context: RequestContext) {
    return this.loaders.of(context).lease(match.matchId);
  }
}

/** Of whatever names an agent, the agent. */
function agentFieldsOf(Of: Type<{ agentId: string }>): Type {
  @Resolver(() => Of)
  class AgentNamed {
    constructor(@Inject(Loaders) private readonly loaders: Loaders) {}

    @ResolveField(() => Agent, { nullable: true })
    async agent(@Parent() { agentId }: { agentId: string }, @Context() context: RequestContext) {
      const agent = await this.loaders.of(context).agent(agentId);
      return agent && agentOf(agent);
    }
  }
  return AgentNamed;
}

/** Of whatever names a match, the match. */
function matchFieldsOf(Of: Type<{ matchId: string | null }>): Type {
  @Resolver(() => Of)
  class MatchNamed {
    constructor(@Inject(Loaders) private readonly loaders: Loaders) {}

    @ResolveField(() => Match, { nullable: true })
    async match(@Parent() { matchId }: { matchId: string | null }, @Context() context: RequestContext) {
      const match = matchId === null ? undefined : await this.loaders.of(context).match(matchId);
      return match && matchOf(match);
    }
  }
  return MatchNamed;
}

export const SeatFields = agentFieldsOf(Seat);
export const StandingFields = agentFieldsOf(Standing);
export const RatingChangeFields = matchFieldsOf(RatingChange);
export const PostingFields = matchFieldsOf(Posting);

@Resolver(() => Runner)
export class RunnerFields {
  constructor(@Inject(Loaders) private readonly loaders: Loaders) {}

  @ResolveField(() => LeaseConnection, { description: 'What it has in hand.' })
  async leases(@Parent() runner: Runner, @Args(PAGE) page: PageArgs, @Context() context: RequestContext) {
    const found = await this.loaders.of(context).leasePage(pageIn(page), runner.runnerId);
    return toConnection(found ?? emptyPage, (row) => row);
  }
}

@Resolver(() => Queue)
export class QueueFields {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @ResolveField(() => MatchConnection, { description: 'Matches that are not over, oldest first.' })
  async matches(
    @Args(PAGE) page: PageArgs,
    @Args('status', { ...TEXT, description: `${openStatuses.join(', ')}; all of them when left out.` }) status?: string,
  ) {
    if (status != null && !openStatuses.some((each) => each === status)) {
      throw new AgonError('QUERY.BAD_FILTER', `status is one of ${openStatuses.join(', ')}, not ${status}.`);
    }
    const only = status == null ? {} : { statuses: [status] };
    return toConnection(await listOpenMatches(this.ports.database, { ...pageIn(page), ...only }), matchOf);
  }

  @ResolveField(() => [WaitingAgent], { description: 'Agents from outside that wait for an opponent; at most 200.' })
  agents() {
    return this.ports.waiting();
  }
}
