import { ID } from '@nestjs/graphql';
import { listAccounts, listAgents } from '../../projections/agents/query.js';
import { balancesOf, listBalances } from '../../projections/balances/query.js';
import { countOpenMatches, listMatches } from '../../projections/matches/query.js';
import { listRunners } from '../../projections/runners/query.js';
import { AgonError } from '../../services/kernel/index.js';
import { assertMayRead, assertStaffReads, type RequestContext, seesWhatIsOf } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';
import { about, maybe, queriesOf, query } from './declare.js';
import { loadersOf } from './loaders.js';
import { connectionOf, fromGlobalId, Node, PAGE, pageIn, shownIf, toConnection, wholePage } from './relay.js';
import { accountOf, agentOf, matchOf, paymentOf, projectionOf, runnerOf, versionOf } from './rows.js';
import { Account, Agent, Balance, Match, Queue, Runner } from './types.js';

const NODES_MAX = 100;

/** Everything that can be read. */
export const Queries = queriesOf({
  node: query({
    type: maybe(Node, 'Whatever has this id; null if there is none, or not for you.'),
    args: { id: ID },
    resolve: ({ ports, args, context }) => find(ports, args.id, context),
  }),
  nodes: query({
    type: { ...about([Node], 'In the order of the ids, of which there are at most 100.'), nullable: 'items' },
    args: { ids: [ID] },
    resolve: ({ ports, args: { ids }, context }) => {
      if (ids.length > NODES_MAX) throw new AgonError('QUERY.BAD_PAGE', `At most ${NODES_MAX} ids at a time.`);
      return Promise.all(ids.map((id) => find(ports, id, context)));
    },
  }),
  games: query({ type: about([String], 'The games that are played here.'), resolve: ({ ports }) => ports.games }),
  accounts: query({
    type: connectionOf(Account),
    args: PAGE,
    resolve: async ({ ports, args }) => toConnection(await listAccounts(ports.database, args), accountOf),
  }),
  account: query({
    type: maybe(Account),
    args: { accountId: String },
    resolve: async ({ load, args }) => shownIf(await load.account(args.accountId), accountOf),
  }),
  agents: query({
    type: connectionOf(Agent),
    args: { ...PAGE, ownerId: maybe(String) },
    resolve: async ({ ports, args }) => {
      const only = args.ownerId ? { ownerId: args.ownerId } : {};
      return toConnection(await listAgents(ports.database, { ...pageIn(args), ...only }), agentOf);
    },
  }),
  agent: query({
    type: maybe(Agent),
    args: { agentId: String },
    resolve: async ({ load, args }) => shownIf(await load.agent(args.agentId), agentOf),
  }),
  matches: query({
    type: about(connectionOf(Match), 'Newest first.'),
    args: { ...PAGE, game: maybe(String), status: maybe(String), agentId: maybe(String) },
    resolve: async ({ ports, args: { game, status, agentId, ...page } }) => {
      const filter = { game: game ?? undefined, status: status ?? undefined, agentId: agentId ?? undefined };
      return toConnection(await listMatches(ports.database, { ...page, ...filter }), matchOf);
    },
  }),
  match: query({
    type: maybe(Match),
    args: { matchId: String },
    resolve: async ({ load, args }) => shownIf(await load.match(args.matchId), matchOf),
  }),
  queue: query({
    type: about(Queue, 'What waits, and what for.'),
    cost: 20,
    resolve: ({ ports }) => countOpenMatches(ports.database),
  }),
  runners: query({
    type: connectionOf(Runner),
    args: PAGE,
    resolve: async ({ ports, args }) => toConnection(await listRunners(ports.database, args), runnerOf),
  }),
  runner: query({
    type: maybe(Runner),
    args: { runnerId: String },
    resolve: async ({ load, args }) => shownIf(await load.runner(args.runnerId), runnerOf),
  }),
  balances: query({
    type: about(connectionOf(Balance), 'Ledger accounts, by name and currency; or what one player has.'),
    args: { ...PAGE, accountId: maybe(String) },
    resolve: async ({ ports: { database }, args, context }) => {
      const { accountId } = args;
      if (accountId) assertMayRead(context, accountId);
      else assertStaffReads(context);
      const found = accountId
        ? wholePage(await balancesOf(database, accountId))
        : await listBalances(database, pageIn(args));
      return toConnection(found, (row) => ({ ...row, balanceCents: `${row.balanceCents}` }));
    },
  }),
});

/** Each kind by the rule that holds for it elsewhere: an id opens nothing that a name does not. */
async function find(ports: GatewayPorts, id: string, context: RequestContext): Promise<object | null> {
  const { type, key } = fromGlobalId(id);
  const [name = '', version] = key;
  const load = loadersOf(ports, context);
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
      const views = await ports.projections.list();
      const found = views.find(({ view }) => view === name);
      return shownIf(found, projectionOf);
    }
    default:
      throw new AgonError('QUERY.BAD_ID', `"${id.slice(0, 80)}" is not an id that was given out here.`);
  }
}
