import type { ArenaEvent } from '../../services/arena/index.js';
import { rowRef } from '../engine/table.js';
import { defineView, type Rows } from '../engine/view.js';
import { eloAfter, INITIAL_RATING } from './elo.js';
import { type RatingRow, ratingHistory, ratings } from './table.js';

/** Elo per game, in the order in which matches were settled. */
export const leaderboardsView = defineView<ArenaEvent>({
  name: 'leaderboards',
  version: 1,
  tables: [ratings, ratingHistory],
  on: {
    MatchSettled: {
      reads: ({ data }) => data.seats.map((seat) => rowRef(ratings, data.game, seat.agentId)),
      apply: ({ data, time }, rows) => {
        const { game, matchId, seats } = data;
        const before = seats.map((seat) => rows.get(ratings, game, seat.agentId) ?? unrated(game, seat.agentId));
        const scores = seats.map((seat) => seat.score);
        const after = eloAfter(before, scores);
        before.forEach((row, seat) => {
          const rating = after[seat] ?? row.rating;
          record(rows, row, rating, scores, seat, matchId, time);
        });
      },
    },
  },
});

function record(
  rows: Rows,
  row: RatingRow,
  rating: number,
  scores: readonly number[],
  seat: number,
  lastMatchId: string,
  at: string,
): void {
  const mine = scores[seat] ?? 0;
  const best = Math.max(...scores.filter((_score, other) => other !== seat));
  const [wins, draws, losses] = mine > best ? [1, 0, 0] : mine === best ? [0, 1, 0] : [0, 0, 1];
  const { game, agentId } = row;
  const games = row.games + 1;
  rows.put(ratings, {
    ...row,
    rating,
    games,
    wins: row.wins + wins,
    draws: row.draws + draws,
    losses: row.losses + losses,
    lastMatchId,
    updatedAt: at,
  });
  rows.put(ratingHistory, { game, agentId, games, matchId: lastMatchId, before: row.rating, after: rating, at });
}

const unrated = (game: string, agentId: string): RatingRow => ({
  game,
  agentId,
  rating: INITIAL_RATING,
  games: 0,
  wins: 0,
  draws: 0,
  losses: 0,
  lastMatchId: '',
  updatedAt: '',
});
