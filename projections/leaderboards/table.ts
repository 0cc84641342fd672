import { defineTable } from '../engine/table.js';

/** All-time standings are a season like the others, with a name of its own. */
export const ALL_TIME = 'all';

/** What a season can be called. */
export const SEASON = /^(all|\d{4}-Q[1-4])$/;

export interface RatingRow {
  readonly season: string;
  readonly game: string;
  readonly agentId: string;
  /** Elo. */
  readonly rating: number;
  readonly games: number;
  readonly wins: number;
  readonly draws: number;
  readonly losses: number;
  /** Wins in a row, or losses as a negative number; a draw ends both. */
  readonly streak: number;
  readonly bestStreak: number;
  /** Glicko-2 as it would be if the rating period ended with the last match. */
  readonly glicko: number;
  readonly deviation: number;
  readonly volatility: number;
  /** The rating period of the last match, how the agent entered it, and what has happened in it. */
  readonly period: number;
  readonly startGlicko: number;
  readonly startDeviation: number;
  readonly startVolatility: number;
  readonly information: number;
  readonly surprise: number;
  readonly lastMatchId: string;
  readonly updatedAt: string;
}

export const ratings = defineTable<RatingRow>({
  name: 'ratings',
  key: ['season', 'game', 'agentId'],
  indexes: {
    ratings_ranked: ['season', 'game', 'rating', 'agentId'],
    ratings_by_glicko: ['season', 'game', 'glicko', 'agentId'],
    ratings_by_game: ['game', 'season'],
  },
  columns: {
    season: 'text',
    game: 'text',
    agentId: 'text',
    rating: 'float8',
    games: 'int4',
    wins: 'int4',
    draws: 'int4',
    losses: 'int4',
    streak: 'int4',
    bestStreak: 'int4',
    glicko: 'float8',
    deviation: 'float8',
    volatility: 'float8',
    period: 'int4',
    startGlicko: 'float8',
    startDeviation: 'float8',
    startVolatility: 'float8',
    information: 'float8',
    surprise: 'float8',
    lastMatchId: 'text',
    updatedAt: 'timestamptz',
  },
});

export interface RatingChangeRow {
  readonly season: string;
  readonly game: string;
  readonly agentId: string;
  /** Of the settlement in the log. */
  readonly position: bigint;
  /** The agent's n-th rated match on this board, from 1. */
  readonly games: number;
  readonly matchId: string;
  /** Elo before and after. */
  readonly before: number;
  readonly after: number;
  readonly glicko: number;
  readonly deviation: number;
  readonly volatility: number;
  readonly period: number;
  readonly at: string;
}

export const ratingHistory = defineTable<RatingChangeRow>({
  name: 'rating_history',
  key: ['season', 'game', 'agentId', 'position'],
  columns: {
    season: 'text',
    game: 'text',
    agentId: 'text',
    position: 'int8',
    games: 'int4',
    matchId: 'text',
    before: 'float8',
    after: 'float8',
    glicko: 'float8',
    deviation: 'float8',
    volatility: 'float8',
    period: 'int4',
    at: 'timestamptz',
  },
});

export interface HeadToHeadRow {
  readonly season: string;
  readonly game: string;
  readonly agentId: string;
  readonly opponentId: string;
  readonly wins: number;
  readonly draws: number;
  readonly losses: number;
}

export const headToHead = defineTable<HeadToHeadRow>({
  name: 'head_to_head',
  key: ['season', 'game', 'agentId', 'opponentId'],
  columns: {
    season: 'text',
    game: 'text',
    agentId: 'text',
    opponentId: 'text',
    wins: 'int4',
    draws: 'int4',
    losses: 'int4',
  },
});

/** Every match that counts: what ratings are computed from again when one of them stops counting. */
export interface RatedMatchRow {
  readonly matchId: string;
  readonly game: string;
  readonly season: string;
  readonly position: bigint;
  readonly at: string;
  readonly seats: readonly { readonly agentId: string; readonly score: number }[];
}

export const ratedMatches = defineTable<RatedMatchRow>({
  name: 'rated_matches',
  key: ['matchId'],
  indexes: { rated_matches_by_game: ['game'] },
  columns: { matchId: 'text', game: 'text', season: 'text', position: 'int8', at: 'timestamptz', seats: 'jsonb' },
});
