import { Float, Int } from '@nestjs/graphql';
import { PAGE_MAX } from '../../projections/engine/page.js';
import {
  boardPage,
  headToHeadOf,
  headToHeadPage,
  historyCursor,
  ratingAt,
  ratingHistoryOf,
  seasonsOf,
  standingsOf,
} from '../../projections/leaderboards/query.js';
import { ALL_TIME } from '../../projections/leaderboards/table.js';
import { AgonError, isAgonError } from '../../services/kernel/index.js';
import { seasonIn, topOf } from '../answers.js';
import type { GatewayPorts } from '../ports.js';
import { assertGame } from '../use-cases/ask.js';
import { about, maybe, queriesOf, query, usually } from './declare.js';
import { connectionOf, PAGE, pageIn, toConnection } from './relay.js';
import { ratingChangeOf } from './rows.js';
import { HeadToHead, PastRating, RatingChange, Standing, Strength } from './types.js';

const FIRST = maybe(Int, `1 to ${PAGE_MAX}; 20 when left out.`);
const BOARD = { game: String, season: usually(String, ALL_TIME, 'A quarter as 2026-Q1, or all.') };
const BY = usually(String, 'elo', 'elo or glicko.');
const EACH = usually(Int, 3, 'How many to either side, 0 to 50.');
const MATRIX_MAX = 10_000;

/** Who is better than whom. */
export const BoardQueries = queriesOf({
  seasons: query({
    type: about([String], 'The seasons in which a game was played, and all of them together.'),
    args: { game: String },
    resolve: ({ ports, args: { game } }) => {
      assertGame(ports, game);
      return seasonsOf(ports.database, game);
    },
  }),
  leaderboard: query({
    type: about([Standing], 'Best first.'),
    args: { ...BOARD, first: FIRST, by: BY },
    resolve: async ({ ports, args }) => {
      const board = boardIn(ports, args);
      const { first = 20, by } = args;
      if (first === null || first < 1 || first > PAGE_MAX) {
        throw new AgonError('QUERY.BAD_PAGE', `first is 1 to ${PAGE_MAX}.`);
      }
      return topOf(ports, { ...board, by: orderOf(by), first });
    },
  }),
  leaderboardConnection: query({
    type: about(connectionOf(Standing), 'The whole board, page by page. Best first.'),
    // Counting who is ahead of a page takes longer the further down it is.
    cost: 50,
    args: { ...BOARD, ...PAGE, by: BY },
    resolve: async ({ ports, args }) => {
      const board = { ...boardIn(ports, args), by: orderOf(args.by) };
      return toConnection(await boardPage(ports.database, board, pageIn(args), ports.clock()));
    },
  }),
  standing: query({
    type: maybe(Standing, 'Where one agent stands.'),
    args: { ...BOARD, agentId: String },
    resolve: async ({ ports, args }) => (await around(ports, args, 0))[0],
  }),
  neighbours: query({
    type: about([Standing], 'An agent with those ranked right above and below it.'),
    args: { ...BOARD, agentId: String, each: EACH },
    resolve: ({ ports, args }) => around(ports, args, args.each),
  }),
  ratingHistory: query({
    type: about([RatingChange], 'How a rating came about, newest match first.'),
    args: {
      ...BOARD,
      agentId: String,
      first: FIRST,
      before: maybe(String, 'Only matches settled before this position.'),
    },
    resolve: async ({ ports, args }) => {
      const { agentId, first = PAGE_MAX, before } = args;
      if (before && !/^\d{1,18}$/.test(before)) {
        throw new AgonError('QUERY.BAD_CURSOR', `"${before}" is not a position of the log.`);
      }
      const after = before ? historyCursor(before) : undefined;
      const page = await ratingHistoryOf(ports.database, boardIn(ports, args), agentId, { first, after });
      return page.rows.map(ratingChangeOf);
    },
  }),
  ratingHistoryConnection: query({
    type: about(connectionOf(RatingChange), 'The whole history of a rating, newest match first.'),
    args: { ...BOARD, agentId: String, ...PAGE },
    resolve: async ({ ports, args }) => {
      const board = boardIn(ports, args);
      return toConnection(await ratingHistoryOf(ports.database, board, args.agentId, pageIn(args)), ratingChangeOf);
    },
  }),
  ratingAt: query({
    type: maybe(PastRating, 'How an agent stood at a position or a moment of the past.'),
    args: { ...BOARD, agentId: String, position: maybe(Float), at: maybe(String) },
    resolve: async ({ ports, args }) => {
      const { agentId, position, at } = args;
      if ((position ?? at ?? undefined) === undefined || (position != null && at)) {
        throw new AgonError('QUERY.BAD_TIME', 'Give either a position or a time.');
      }
      const when = at ? { at } : { position: position ?? 0, at: await timeOf(ports, position ?? 0) };
      const found = await ratingAt(ports.database, boardIn(ports, args), agentId, when);
      return found && { ...found, position: found.position.toString() };
    },
  }),
  headToHead: query({
    type: about([HeadToHead], 'Who beat whom: the whole matrix, or the row of one agent. Refused beyond 10,000 pairs.'),
    cost: 200,
    args: { ...BOARD, agentId: maybe(String) },
    resolve: ({ ports, args }) =>
      headToHeadOf(ports.database, boardIn(ports, args), args.agentId ?? undefined, MATRIX_MAX),
  }),
  strengths: query({
    type: about([Strength], 'Strongest first, by all results of a season at once.'),
    cost: 2_000,
    args: BOARD,
    resolve: ({ ports, args }) => ports.strengths(boardIn(ports, args)),
  }),
  headToHeadConnection: query({
    type: about(connectionOf(HeadToHead), 'Who beat whom, page by page, in the order of the names.'),
    cost: 50,
    args: { ...BOARD, ...PAGE, agentId: maybe(String) },
    resolve: async ({ ports, args }) => {
      const board = boardIn(ports, args);
      return toConnection(await headToHeadPage(ports.database, board, args.agentId ?? undefined, pageIn(args)));
    },
  }),
});

interface Board {
  readonly game: string;
  readonly season: string;
}

function boardIn(ports: GatewayPorts, { game, season }: Board): Board {
  assertGame(ports, game);
  return { game, season: seasonIn(season) };
}

async function around(ports: GatewayPorts, args: Board & { readonly agentId: string }, each: number) {
  const board = boardIn(ports, args);
  if (each < 0 || each > 50) throw new AgonError('QUERY.BAD_PAGE', 'each is 0 to 50.');
  const { database, boards, clock } = ports;
  return standingsOf(database, board, await boards.around(board, args.agentId, each), clock());
}

/** When the log was at this position; now, if it is not there yet. */
async function timeOf({ log, clock }: GatewayPorts, position: number): Promise<string> {
  if (!Number.isSafeInteger(position) || position < 0) {
    throw new AgonError('QUERY.BAD_POSITION', `${position} is not a position of the log.`);
  }
  const [event] = await log.readAll({ from: position, limit: 1 }).catch((error: unknown) => {
    throw isAgonError(error, 'STORE.BAD_POSITION') ? new AgonError('QUERY.BAD_POSITION', error.message) : error;
  });
  return event?.time ?? clock();
}

function orderOf(by: string): 'elo' | 'glicko' {
  if (by === 'elo' || by === 'glicko') return by;
  throw new AgonError('QUERY.BAD_ORDER', `by is elo or glicko, not ${by}.`);
}
