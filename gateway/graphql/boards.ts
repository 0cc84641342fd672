import { Inject } from '@nestjs/common';
import { Args, Extensions, Float, Int, Query, Resolver } from '@nestjs/graphql';
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
import { type GatewayPorts, PORTS } from '../ports.js';
import { assertGame } from '../use-cases/ask.js';
import { PAGE, type PageArgs, pageIn, toConnection } from './relay.js';
import { ratingChangeOf } from './rows.js';
import {
  HeadToHead,
  HeadToHeadConnection,
  PastRating,
  RatingChange,
  RatingChangeConnection,
  Standing,
  StandingConnection,
  Strength,
} from './types.js';

const TEXT = { type: () => String } as const;
const FIRST = { type: () => Int, nullable: true, description: `1 to ${PAGE_MAX}; 20 when left out.` } as const;
const SEASON = { ...TEXT, defaultValue: ALL_TIME, description: 'A quarter as 2026-Q1, or all.' } as const;
const BY = { ...TEXT, defaultValue: 'elo', description: 'elo or glicko.' } as const;
const MATRIX_MAX = 10_000;

/** Who is better than whom. */
@Resolver()
export class BoardQueries {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => [String], { description: 'The seasons in which a game was played, and all of them together.' })
  seasons(@Args('game', TEXT) game: string) {
    return seasonsOf(this.ports.database, this.board(game, ALL_TIME).game);
  }

  @Query(() => [Standing], { description: 'Best first.' })
  async leaderboard(
    @Args('game', TEXT) game: string,
    @Args('first', FIRST) first = 20,
    @Args('season', SEASON) season: string = ALL_TIME,
    @Args('by', BY) by: string = 'elo',
  ) {
    const board = this.board(game, season);
    if (first < 1 || first > PAGE_MAX) throw new AgonError('QUERY.BAD_PAGE', `first is 1 to ${PAGE_MAX}.`);
    return topOf(this.ports, { ...board, by: orderOf(by), first });
  }

  // Counting who is ahead of a page takes longer the further down it is.
  @Extensions({ cost: 50 })
  @Query(() => StandingConnection, { description: 'The whole board, page by page. Best first.' })
  async leaderboardConnection(
    @Args('game', TEXT) game: string,
    @Args(PAGE) page: PageArgs,
    @Args('season', SEASON) season: string = ALL_TIME,
    @Args('by', BY) by: string = 'elo',
  ) {
    const board = { ...this.board(game, season), by: orderOf(by) };
    const found = await boardPage(this.ports.database, board, pageIn(page), this.ports.clock());
    return toConnection(found, (row) => row);
  }

  @Query(() => Standing, { nullable: true, description: 'Where one agent stands.' })
  async standing(
    @Args('game', TEXT) game: string,
    @Args('agentId', TEXT) agentId: string,
    @Args('season', SEASON) season: string = ALL_TIME,
  ) {
    return (await this.neighbours(game, agentId, season, 0))[0];
  }

  @Query(() => [Standing], { description: 'An agent with those ranked right above and below it.' })
  async neighbours(
    @Args('game', TEXT) game: string,
    @Args('agentId', TEXT) agentId: string,
    @Args('season', SEASON) season: string = ALL_TIME,
    @Args('each', { type: () => Int, defaultValue: 3, description: 'How many to either side, 0 to 50.' }) each = 3,
  ) {
    const board = this.board(game, season);
    if (each < 0 || each > 50) throw new AgonError('QUERY.BAD_PAGE', 'each is 0 to 50.');
    const { database, boards, clock } = this.ports;
    return standingsOf(database, board, await boards.around(board, agentId, each), clock());
  }

  @Query(() => [RatingChange], { description: 'How a rating came about, newest match first.' })
  async ratingHistory(
    @Args('game', TEXT) game: string,
    @Args('agentId', TEXT) agentId: string,
    @Args('season', SEASON) season: string = ALL_TIME,
    @Args('first', FIRST) first = PAGE_MAX,
    @Args('before', { ...TEXT, nullable: true, description: 'Only matches settled before this position.' })
    before?: string,
  ) {
    if (before && !/^\d{1,18}$/.test(before)) {
      throw new AgonError('QUERY.BAD_CURSOR', `"${before}" is not a position of the log.`);
    }
    const after = before ? historyCursor(before) : undefined;
    const board = this.board(game, season);
    const page = await ratingHistoryOf(this.ports.database, board, agentId, { first, after });
    return page.rows.map(ratingChangeOf);
  }

  @Query(() => RatingChangeConnection, { description: 'The whole history of a rating, newest match first.' })
  async ratingHistoryConnection(
    @Args('game', TEXT) game: string,
    @Args('agentId', TEXT) agentId: string,
    @Args(PAGE) page: PageArgs,
    @Args('season', SEASON) season: string = ALL_TIME,
  ) {
    const board = this.board(game, season);
    return toConnection(await ratingHistoryOf(this.ports.database, board, agentId, pageIn(page)), ratingChangeOf);
  }

  @Query(() => PastRating, { nullable: true, description: 'How an agent stood at a position or a moment of the past.' })
  async ratingAt(
    @Args('game', TEXT) game: string,
    @Args('agentId', TEXT) agentId: string,
    @Args('season', SEASON) season: string = ALL_TIME,
    @Args('position', { type: () => Float, nullable: true }) position?: number,
    @Args('at', { ...TEXT, nullable: true }) at?: string,
  ) {
    if ((position ?? at ?? undefined) === undefined || (position != null && at)) {
      throw new AgonError('QUERY.BAD_TIME', 'Give either a position or a time.');
    }
    const when = at ? { at } : { position: position ?? 0, at: await this.timeOf(position ?? 0) };
    const board = this.board(game, season);
    const found = await ratingAt(this.ports.database, board, agentId, when);
    return found && { ...found, position: found.position.toString() };
  }

  @Extensions({ cost: 200 })
  @Query(() => [HeadToHead], {
    description: 'Who beat whom: the whole matrix, or the row of one agent. Refused beyond 10,000 pairs.',
  })
  headToHead(
    @Args('game', TEXT) game: string,
    @Args('agentId', { ...TEXT, nullable: true }) agentId?: string,
    @Args('season', SEASON) season: string = ALL_TIME,
  ) {
    return headToHeadOf(this.ports.database, this.board(game, season), agentId ?? undefined, MATRIX_MAX);
  }

  @Extensions({ cost: 2_000 })
  @Query(() => [Strength], { description: 'Strongest first, by all results of a season at once.' })
  strengths(@Args('game', TEXT) game: string, @Args('season', SEASON) season: string = ALL_TIME) {
    return this.ports.strengths(this.board(game, season));
  }

  @Extensions({ cost: 50 })
  @Query(() => HeadToHeadConnection, { description: 'Who beat whom, page by page, in the order of the names.' })
  async headToHeadConnection(
    @Args('game', TEXT) game: string,
    @Args(PAGE) page: PageArgs,
    @Args('agentId', { ...TEXT, nullable: true }) agentId?: string,
    @Args('season', SEASON) season: string = ALL_TIME,
  ) {
    const board = this.board(game, season);
    const found = await headToHeadPage(this.ports.database, board, agentId ?? undefined, pageIn(page));
    return toConnection(found, (row) => row);
  }

  /** When the log was at this position; now, if it is not there yet. */
  private async timeOf(position: number): Promise<string> {
    if (!Number.isSafeInteger(position) || position < 0) {
      throw new AgonError('QUERY.BAD_POSITION', `${position} is not a position of the log.`);
    }
    const [event] = await this.ports.log.readAll({ from: position, limit: 1 }).catch((error: unknown) => {
      throw isAgonError(error, 'STORE.BAD_POSITION') ? new AgonError('QUERY.BAD_POSITION', error.message) : error;
    });
    return event?.time ?? this.ports.clock();
  }

  private board(game: string, season: string) {
    assertGame(this.ports, game);
    return { game, season: seasonIn(season) };
  }
}

function orderOf(by: string): 'elo' | 'glicko' {
  if (by === 'elo' || by === 'glicko') return by;
  throw new AgonError('QUERY.BAD_ORDER', `by is elo or glicko, not ${by}.`);
}
