import { Inject } from '@nestjs/common';
import { Args, Context, Extensions, ID, Query, Resolver } from '@nestjs/graphql';
import { listAccounts, listAgents } from '../../projections/agents/query.js';
import { balancesOf, listBalances } from '../../projections/balances/query.js';
import { countOpenMatches, listMatches } from '../../projections/matches/query.js';
import { listRunners } from '../../projections/runners/query.js';
import { AgonError } from '../../services/kernel/index.js';
import { assertMayRead, assertStaffReads, type RequestContext, seesWhatIsOf } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { Loaders } from './loaders.js';
import { fromGlobalId, Node, PAGE, type PageArgs, pageIn, toConnection, wholePage } from './relay.js';
import { accountOf, agentOf, matchOf, paymentOf, projectionOf, runnerOf, versionOf } from './rows.js';
import {
  Account,
  AccountConnection,
  Agent,
  AgentConnection,
  BalanceConnection,
  Match,
  MatchConnection,
  Queue,
  Runner,
  RunnerConnection,
} from './types.js';

const TEXT = { type: () => String, nullable: true } as const;
const KEY = { type: () => String } as const;
const NODES_MAX = 100;

/** Everything that can be read. */
@Resolver()
export class Queries {
  constructor(
    @Inject(PORTS) private readonly ports: GatewayPorts,
    @Inject(Loaders) private readonly loaders: Loaders,
  ) {}

  @Query(() => Node, { nullable: true, description: 'Whatever has this id; null if there is none, or not for you.' })
  node(@Args('id', { type: () => ID }) id: string, @Context() context: RequestContext) {
    return this.find(id, context);
  }

  @Query(() => [Node], { nullable: 'items', description: `In the order of the ids, of which there are at most 100.` })
  nodes(@Args('ids', { type: () => [ID] }) ids: string[], @Context() context: RequestContext) {
    if (ids.length > NODES_MAX) throw new AgonError('QUERY.BAD_PAGE', `At most ${NODES_MAX} ids at a time.`);
    return Promise.all(ids.map((id) => this.find(id, context)));
  }

  @Query(() => [String], { description: 'The games that are played here.' })
  games() {
    return this.ports.games;
  }

  @Query(() => AccountConnection)
  async accounts(@Args(PAGE) page: PageArgs) {
    return toConnection(await listAccounts(this.ports.database, page), accountOf);
  }

  @Query(() => Account, { nullable: true })
  async account(@Args('accountId', KEY) accountId: string, @Context() context: RequestContext) {
    return shownIf(await this.loaders.of(context).account(accountId), accountOf);
  }

  @Query(() => AgentConnection)
  async agents(@Args(PAGE) page: PageArgs, @Args('ownerId', TEXT) ownerId?: string) {
    const only = ownerId ? { ownerId } : {};
    return toConnection(await listAgents(this.ports.database, { ...pageIn(page), ...only }), agentOf);
  }

  @Query(() => Agent, { nullable: true })
  async agent(@Args('agentId', KEY) agentId: string, @Context() context: RequestContext) {
    return shownIf(await this.loaders.of(context).agent(agentId), agentOf);
  }

  @Query(() => MatchConnection, { description: 'Newest first.' })
  async matches(
    @Args(PAGE) page: PageArgs,
    @Args('game', TEXT) game?: string,
    @Args('status', TEXT) status?: string,
    @Args('agentId', TEXT) agentId?: string,
  ) {
    const filter = { ...pageIn(page), game: game ?? undefined, status: status ?? undefined };
    return toConnection(await listMatches(this.ports.database, { ...filter, agentId: agentId ?? undefined }), matchOf);
  }

  @Query(() => Match, { nullable: true })
  async match(@Args('matchId', KEY) matchId: string, @Context() context: RequestContext) {
    return shownIf(await this.loaders.of(context).match(matchId), matchOf);
  }

  @Extensions({ cost: 20 })
  @Query(() => Queue, { description: 'What waits, and what for.' })
  queue() {
    return countOpenMatches(this.ports.database);
  }

  @Query(() => RunnerConnection)
  async runners(@Args(PAGE) page: PageArgs) {
    return toConnection(await listRunners(this.ports.database, page), runnerOf);
  }

  @Query(() => Runner, { nullable: true })
  async runner(@Args('runnerId', KEY) runnerId: string, @Context() context: RequestContext) {
    return shownIf(await this.loaders.of(context).runner(runnerId), runnerOf);
  }

  @Query(() => BalanceConnection, { description: 'Ledger accounts, by name and currency; or what one player has.' })
  async balances(
    @Context() context: RequestContext,
    @Args(PAGE) page: PageArgs,
    @Args('accountId', TEXT) accountId?: string,
  ) {
    if (accountId) assertMayRead(context, accountId);
    else assertStaffReads(context);
    const { database } = this.ports;
    const found = accountId
      ? wholePage(await balancesOf(database, accountId))
      : await listBalances(database, pageIn(page));
    return toConnection(found, (row) => ({ ...row, balanceCents: `${row.balanceCents}` }));
  }

  /** Each kind by the rule that holds for it elsewhere: an id opens nothing that a name does not. */
  private async find(id: string, context: RequestContext): Promise<object | null> {
    const { type, key } = fromGlobalId(id);
    const [name = '', version] = key;
    const load = this.loaders.of(context);
    switch (type) {
      case 'Account':
        return shownIf(await load.account(name), accountOf);
      case 'Agent':
        return shownIf(await load.agent(name), agentOf);
      case 'AgentVersion': {
        const versions = (await load.versions(name)) ?? [];
        const found = versions.find((row) => `${row.version}` === version);
        return shownIf(found, versionOf);
      }
      case 'Match':
        return shownIf(await load.match(name), matchOf);
      case 'Runner':
        return shownIf(await load.runner(name), runnerOf);
      case 'Payment': {
        const payment = await load.payment(name);
        return payment && seesWhatIsOf(context, payment.accountId) ? paymentOf(payment) : null;
      }
      case 'Projection': {
        const views = await this.ports.projections.list();
        const found = views.find(({ view }) => view === name);
        return shownIf(found, projectionOf);
      }
      default:
        throw new AgonError('QUERY.BAD_ID', `"${id.slice(0, 80)}" is not an id that was given out here.`);
    }
  }
}

const shownIf = <Row, T>(row: Row | undefined, shown: (row: Row) => T): T | null =>
  row === undefined ? null : shown(row);
