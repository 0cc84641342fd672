import { defineTable, json, type RowOf } from '../engine/table.js';

/** All-time standings are a season like the others, with a name of its own. */
export const ALL_TIME = 'all';

/** What a season can be called. */
export const SEASON = /^(all|\d{4}-Q[1-4])$/;

export const ratings = defineTable({
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
    /** Elo. */
    rating: 'float8',
    games: 'int4',
    wins: 'int4',
    draws: 'int4',
    losses: 'int4',
    /** Wins in a row, or losses as a negative number; a draw ends both. */
    streak: 'int4',
    bestStreak: 'int4',
    /** Glicko-2 as it would be if the rating period ended with the last match. */
    glicko: 'float8',
    deviation: 'float8',
    volatility: 'float8',
    /** The rating period of the last match, how the agent entered it, and what has happened in it. */
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
export type RatingRow = RowOf<typeof ratings>;

export const ratingHistory = defineTable({
  name: 'rating_history',
  key: ['season', 'game', 'agentId', 'position'],
  columns: {
    season: 'text',
    game: 'text',
    agentId: 'text',
    /** Of the settlement in the log. */
    position: 'int8',
    /** The agent's n-th rated match on this board, from 1. */
    games: 'int4',
    matchId: 'text',
    /** Elo before and after. */
    before: 'float8',
    after: 'float8',
    glicko: 'float8',
    deviation: 'float8',
    volatility: 'float8',
    period: 'int4',
    at: 'timestamptz',
  },
});
export type RatingChangeRow = RowOf<typeof ratingHistory>;

export const headToHead = defineTable({
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
export type HeadToHeadRow = RowOf<typeof headToHead>;

/** Every match that counts: what ratings are computed from again when one of them stops counting. */
export const ratedMatches = defineTable({
  name: 'rated_matches',
  key: ['matchId'],
  indexes: { rated_matches_by_game: ['game'] },
  columns: {
    matchId: 'text',
    game: 'text',
    season: 'text',
    position: 'int8',
    at: 'timestamptz',
    seats: json<readonly { readonly agentId: string; readonly score: number }[]>(),
  },
});
export type RatedMatchRow = RowOf<typeof ratedMatches>;
