import { defineTable } from '../engine/table.js';

export interface RatingRow {
  readonly game: string;
  readonly agentId: string;
  readonly rating: number;
  readonly games: number;
  readonly wins: number;
  readonly draws: number;
  readonly losses: number;
  readonly lastMatchId: string;
  readonly updatedAt: string;
}

export const ratings = defineTable<RatingRow>({
  name: 'ratings',
  key: ['game', 'agentId'],
  columns: {
    game: 'text',
    agentId: 'text',
    rating: 'float8',
    games: 'int4',
    wins: 'int4',
    draws: 'int4',
    losses: 'int4',
    lastMatchId: 'text',
    updatedAt: 'timestamptz',
  },
});

export interface RatingChangeRow {
  readonly game: string;
  readonly agentId: string;
  /** The agent's n-th rated match of this game, from 1. */
  readonly games: number;
  readonly matchId: string;
  readonly before: number;
  readonly after: number;
  readonly at: string;
}

export const ratingHistory = defineTable<RatingChangeRow>({
  name: 'rating_history',
  key: ['game', 'agentId', 'games'],
  columns: {
    game: 'text',
    agentId: 'text',
    games: 'int4',
    matchId: 'text',
    before: 'float8',
    after: 'float8',
    at: 'timestamptz',
  },
});
