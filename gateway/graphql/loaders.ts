import { accountsById, agentPagesOf, agentsById, versionPagesOf, versionsOf } from '../../projections/agents/query.js';
import type { PageRequest } from '../../projections/engine/page.js';
import { type BoardRequest, historyPagesOf } from '../../projections/leaderboards/query.js';
import { type MatchFilter, matchesById, matchPagesOf, turnPagesOf, turnsOf } from '../../projections/matches/query.js';
import { paymentsById } from '../../projections/payments/query.js';
import { leasePagesOf, leasesOn, runnersById } from '../../projections/runners/query.js';
import type { GatewayPorts } from '../ports.js';
import { batched, batchedBy, grouped, keyed } from './batch.js';

const known = new WeakMap<object, Loaders>();

/** Those of one request, by its context: what they have fetched is kept until it is answered. */
export function loadersOf(ports: GatewayPorts, context: object): Loaders {
  const loaders = known.get(context) ?? newLoaders(ports);
  known.set(context, loaders);
  return loaders;
}

export type Loaders = ReturnType<typeof newLoaders>;

/** Everything that fields fetch for one row after another, each in one statement for all of them. */
const newLoaders = ({ database: db }: GatewayPorts) => ({
  account: batched(async (ids) => keyed(await accountsById(db, ids), (row) => row.accountId)),
  agent: batched(async (ids) => keyed(await agentsById(db, ids), (row) => row.agentId)),
  match: batched(async (ids) => keyed(await matchesById(db, ids), (row) => row.matchId)),
  runner: batched(async (ids) => keyed(await runnersById(db, ids), (row) => row.runnerId)),
  payment: batched(async (ids) => keyed(await paymentsById(db, ids), (row) => row.paymentId)),
  lease: batched(async (ids) => keyed(await leasesOn(db, ids), (row) => row.matchId)),
  versions: batched(async (ids) => grouped(await versionsOf(db, ids), (row) => row.agentId)),
  turns: batched(async (ids) => grouped(await turnsOf(db, ids), (row) => row.matchId)),
  agentPage: batchedBy((page: PageRequest, owners) => agentPagesOf(db, owners, page)),
  versionPage: batchedBy((page: PageRequest, agents) => versionPagesOf(db, agents, page)),
  matchPage: batchedBy((filter: MatchFilter, agents) => matchPagesOf(db, agents, filter)),
  turnPage: batchedBy((page: PageRequest, matches) => turnPagesOf(db, matches, page)),
  leasePage: batchedBy((page: PageRequest, runners) => leasePagesOf(db, runners, page)),
  history: batchedBy(({ board, page }: { board: BoardRequest; page: PageRequest }, agents) =>
    historyPagesOf(db, board, agents, page),
  ),
});
