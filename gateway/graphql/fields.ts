import { ALL_TIME } from '../../projections/leaderboards/table.js';
import { listOpenMatches, openStatuses } from '../../projections/matches/query.js';
import { AgonError } from '../../services/kernel/index.js';
import { seasonIn } from '../answers.js';
import { about, fieldsOf, maybe, usually } from './declare.js';
import { connectionOf, PAGE, pageIn, shownIf, toConnection } from './relay.js';
import { accountOf, agentOf, matchOf, ratingChangeOf, turnOf, versionOf } from './rows.js';
import {
  Account,
  Agent,
  AgentVersion,
  Lease,
  Match,
  PastRating,
  Posting,
  Queue,
  RatingChange,
  Runner,
  Seat,
  Standing,
  Turn,
  WaitingAgent,
} from './types.js';

const statuses = openStatuses.join(', ');

/** From one thing to the next. Whatever is asked for of many rows is fetched for all of them at once. */
export const fieldResolvers = [
  fieldsOf(Account, (field) => ({
    agents: field({
      type: connectionOf(Agent),
      args: PAGE,
      resolve: async ({ load, parent, args }) =>
        toConnection(await load.agentPage(pageIn(args), parent.accountId), agentOf),
    }),
  })),

  fieldsOf(Agent, (field) => ({
    owner: field({
      type: maybe(Account),
      resolve: async ({ load, parent }) => shownIf(await load.account(parent.ownerId), accountOf),
    }),
    versions: field({
      type: about([AgentVersion], 'Oldest first.'),
      resolve: async ({ load, parent }) => ((await load.versions(parent.agentId)) ?? []).map(versionOf),
    }),
    versionsConnection: field({
      type: about(connectionOf(AgentVersion), 'Newest first.'),
      args: PAGE,
      resolve: async ({ load, parent, args }) =>
        toConnection(await load.versionPage(pageIn(args), parent.agentId), versionOf),
    }),
    matches: field({
      type: about(connectionOf(Match), 'Those in which it sits, newest first.'),
      args: { ...PAGE, game: maybe(String), status: maybe(String) },
      resolve: async ({ load, parent, args }) => {
        const filter = { ...pageIn(args), game: args.game ?? undefined, status: args.status ?? undefined };
        return toConnection(await load.matchPage(filter, parent.agentId), matchOf);
      },
    }),
    ratingHistory: field({
      type: about(connectionOf(RatingChange), 'How its rating in a game came about, newest first.'),
      args: { game: String, ...PAGE, season: usually(String, ALL_TIME) },
      resolve: async ({ load, parent, args }) => {
        const asked = { board: { game: args.game, season: seasonIn(args.season) }, page: pageIn(args) };
        return toConnection(await load.history(asked, parent.agentId), ratingChangeOf);
      },
    }),
  })),

  fieldsOf(Match, (field) => ({
    transcript: field({
      type: [Turn],
      resolve: async ({ load, parent }) => ((await load.turns(parent.matchId)) ?? []).map(turnOf),
    }),
    transcriptConnection: field({
      type: connectionOf(Turn),
      args: PAGE,
      resolve: async ({ load, parent, args }) =>
        toConnection(await load.turnPage(pageIn(args), parent.matchId), turnOf),
    }),
    lease: field({
      type: maybe(Lease, 'Who has it in hand; null when nobody does.'),
      resolve: ({ load, parent }) => load.lease(parent.matchId),
    }),
  })),

  ...[Seat, Standing].map((Of) =>
    fieldsOf<{ agentId: string }>(Of, (field) => ({
      agent: field({
        type: maybe(Agent),
        resolve: async ({ load, parent }) => shownIf(await load.agent(parent.agentId), agentOf),
      }),
    })),
  ),

  ...[RatingChange, PastRating, Posting].map((Of) =>
    fieldsOf<{ matchId?: string | null | undefined }>(Of, (field) => ({
      match: field({
        type: maybe(Match),
        resolve: async ({ load, parent: { matchId } }) =>
          matchId == null ? null : shownIf(await load.match(matchId), matchOf),
      }),
    })),
  ),

  fieldsOf(Runner, (field) => ({
    leases: field({
      type: about(connectionOf(Lease), 'What it has in hand.'),
      args: PAGE,
      resolve: async ({ load, parent, args }) => toConnection(await load.leasePage(pageIn(args), parent.runnerId)),
    }),
  })),

  fieldsOf(Queue, (field) => ({
    matches: field({
      type: about(connectionOf(Match), 'Matches that are not over, oldest first.'),
      args: { ...PAGE, status: maybe(String, `${statuses}; all of them when left out.`) },
      resolve: async ({ ports, args }) => {
        const { status } = args;
        if (status != null && !openStatuses.some((each) => each === status)) {
          throw new AgonError('QUERY.BAD_FILTER', `status is one of ${statuses}, not ${status}.`);
        }
        const only = status == null ? {} : { statuses: [status] };
        return toConnection(await listOpenMatches(ports.database, { ...pageIn(args), ...only }), matchOf);
      },
    }),
    agents: field({
      type: about([WaitingAgent], 'Agents from outside that wait for an opponent; at most 200.'),
      resolve: ({ ports }) => ports.waiting(),
    }),
  })),
];
