import type { DataSource } from 'typeorm';
import { select } from '../engine/page.js';
import { PROVISIONAL_GAMES } from './elo.js';
import { type RatingChangeRow, type RatingRow, ratingHistory, ratings } from './table.js';

export interface Standing extends RatingRow {
  readonly rank: number;
  readonly provisional: boolean;
}

/** Best first; equal ratings in the order of their names. */
export function rank(rows: readonly RatingRow[]): Standing[] {
  const sorted = [...rows].sort((a, b) => b.rating - a.rating || (a.agentId < b.agentId ? -1 : 1));
  return sorted.map((row, i) => ({ ...row, rank: i + 1, provisional: row.games < PROVISIONAL_GAMES }));
}

export const leaderboard = async (db: DataSource, game: string, first: number): Promise<Standing[]> =>
  rank(await select(db, ratings, 'WHERE game = $1 ORDER BY rating DESC, agent_id LIMIT $2', [game, first]));

export const ratingHistoryOf = (db: DataSource, game: string, agentId: string): Promise<RatingChangeRow[]> =>
  select(db, ratingHistory, 'WHERE game = $1 AND agent_id = $2 ORDER BY games', [game, agentId]);
