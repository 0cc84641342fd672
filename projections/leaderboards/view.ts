import type { ArenaEvent } from '../../services/arena/index.js';
import { type RowRef, rowRef } from '../engine/table.js';
import { defineView, type Rows } from '../engine/view.js';
import { afterMatch, changeRow, seasonOf, unrated } from './board.js';
import { pairScore } from './elo.js';
import {
  ALL_TIME,
  type HeadToHeadRow,
  headToHead,
  type RatedMatchRow,
  type RatingChangeRow,
  type RatingRow,
  ratedMatches,
  ratingHistory,
  ratings,
} from './table.js';

const boardsOf = ({ season }: { season: string }) => [ALL_TIME, season];

/** Every ordered pair of different seats. */
function pairsOf<Seat extends { agentId: string }>(seats: readonly Seat[]): [Seat, Seat][] {
  return seats.flatMap((mine) => seats.filter((other) => other !== mine).map((other): [Seat, Seat] => [mine, other]));
}

const pairRefs = (match: Pick<RatedMatchRow, 'game' | 'season' | 'seats'>): RowRef[] =>
  boardsOf(match).flatMap((board) =>
    pairsOf(match.seats).map(([mine, other]) => rowRef(headToHead, board, match.game, mine.agentId, other.agentId)),
  );

function play(match: RatedMatchRow, rows: Rows): void {
  rows.put(ratedMatches, match);
  for (const board of boardsOf(match)) {
    const { game } = match;
    const before = match.seats.map(({ agentId }) => {
      return rows.get(ratings, board, game, agentId) ?? unrated(board, game, agentId);
    });
    afterMatch(before, match).forEach((after, seat) => {
      rows.put(ratings, after);
      rows.add(ratingHistory, changeRow(before[seat] as RatingRow, after, match));
    });
  }
  countPairs(match, rows, 1);
}

function countPairs(match: RatedMatchRow, rows: Rows, by: 1 | -1): void {
  const { game } = match;
  const pairs = pairsOf(match.seats);
  for (const season of boardsOf(match)) {
    for (const [mine, other] of pairs) {
      const row = rows.get(headToHead, season, game, mine.agentId, other.agentId);
      const score = pairScore(mine.score, other.score);
      const after: HeadToHeadRow = {
        season,
        game,
        agentId: mine.agentId,
        opponentId: other.agentId,
        wins: (row?.wins ?? 0) + (score === 1 ? by : 0),
        draws: (row?.draws ?? 0) + (score === 0.5 ? by : 0),
        losses: (row?.losses ?? 0) + (score === 0 ? by : 0),
      };
      if (after.wins + after.draws + after.losses > 0) rows.put(headToHead, after);
      else rows.remove(headToHead, season, game, mine.agentId, other.agentId);
    }
  }
}

/**
 * Plays every match of the game again, in the order of the log, without this one. Only what comes after it changes. Matches
 * go by and their history is written on the way, so what is kept meanwhile is two standings of each agent, however many
 * matches there were.
 */
function unplay(match: RatedMatchRow, rows: Rows): void {
  const { game, matchId, position } = match;
  const boards = boardsOf(match).map((board) => ({
    board,
    standings: new Map<string, RatingRow>(),
    moved: new Set(match.seats.map(({ agentId }) => agentId)),
  }));

  const replay = (other: RatedMatchRow): RatingChangeRow[] =>
    boards.flatMap(({ board, standings, moved }) => {
      if (board !== ALL_TIME && other.season !== board) return [];
      const before = other.seats.map(({ agentId }) => standings.get(agentId) ?? unrated(board, game, agentId));
      return afterMatch(before, other).map((after, seat) => {
        standings.set(after.agentId, after);
        if (other.position > position) moved.add(after.agentId);
        return changeRow(before[seat] as RatingRow, after, other);
      });
    });

  rows.sweep(ratedMatches, {
    match: { game },
    order: 'position',
    take: (some) => {
      const changes = some.filter((each) => each.matchId !== matchId).flatMap(replay);
      return new Map([[ratingHistory, changes.filter((change) => change.position > position)]]);
    },
    end: (ended) => {
      ended.remove(ratedMatches, matchId);
      for (const { board, standings, moved } of boards) {
        for (const { agentId } of match.seats) ended.remove(ratingHistory, board, game, agentId, position);
        for (const agentId of moved) {
          const row = standings.get(agentId);
          if (row) ended.put(ratings, row);
          else ended.remove(ratings, board, game, agentId);
        }
      }
      countPairs(match, ended, -1);
    },
  });
}

const reversal = {
  reads: ({ data }: { data: { matchId: string } }) => [rowRef(ratedMatches, data.matchId)],
  more: ({ data }: { data: { matchId: string } }, rows: Rows) => {
    const match = rows.get(ratedMatches, data.matchId);
    return match ? pairRefs(match) : [];
  },
  apply: ({ data }: { data: { matchId: string } }, rows: Rows) => {
    const match = rows.get(ratedMatches, data.matchId);
    if (match) unplay(match, rows);
  },
};

/** Elo, Glicko-2 and who beat whom, per game and season, in the order in which matches were settled. */
export const leaderboardsView = defineView<ArenaEvent>({
  name: 'leaderboards',
  version: 2,
  tables: [ratings, ratingHistory, headToHead, ratedMatches],
  on: {
    MatchSettled: {
      reads: ({ data, time }) => {
        const match = { game: data.game, season: seasonOf(time), seats: data.seats };
        const own = boardsOf(match).flatMap((board) =>
          data.seats.map(({ agentId }) => rowRef(ratings, board, data.game, agentId)),
        );
        return [...own, ...pairRefs(match)];
      },
      apply: ({ data, time, position }, rows) => {
        const { matchId, game } = data;
        const seats = data.seats.map(({ agentId, score }) => ({ agentId, score }));
        play({ matchId, game, season: seasonOf(time), position: BigInt(position), at: time, seats }, rows);
      },
    },
    MatchVoided: reversal,
    MatchReversed: reversal,
  },
});
