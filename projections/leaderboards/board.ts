import { eloAfter, INITIAL_RATING, pairScore } from './elo.js';
import {
  type Evidence,
  estimate,
  NO_EVIDENCE,
  periodOf,
  type Running,
  rolledTo,
  UNRATED,
  withResult,
} from './glicko2.js';
import type { RatedMatchRow, RatingChangeRow, RatingRow } from './table.js';

/** Calendar quarters of the log's own time, in UTC. */
export const seasonOf = (time: string): string =>
  `${time.slice(0, 4)}-Q${Math.floor((Number(time.slice(5, 7)) - 1) / 3) + 1}`;

export const unrated = (season: string, game: string, agentId: string): RatingRow => ({
  season,
  game,
  agentId,
  rating: INITIAL_RATING,
  games: 0,
  wins: 0,
  draws: 0,
  losses: 0,
  streak: 0,
  bestStreak: 0,
  glicko: UNRATED.rating,
  deviation: UNRATED.deviation,
  volatility: UNRATED.volatility,
  period: Number.MIN_SAFE_INTEGER,
  startGlicko: UNRATED.rating,
  startDeviation: UNRATED.deviation,
  startVolatility: UNRATED.volatility,
  ...NO_EVIDENCE,
  lastMatchId: '',
  updatedAt: '',
});

/**
 * The standings of a match's seats after it. Seats are compared pair by pair by their scores; each seat's pairs count
 * together for one game, so that a match of eight moves nobody seven times as far as a match of two.
 */
export function afterMatch(before: readonly RatingRow[], match: RatedMatchRow): RatingRow[] {
  const scores = match.seats.map(({ score }) => score);
  const elo = eloAfter(before, scores);
  const period = periodOf(match.at);
  // Everybody is judged by the same day; a clock that went back stays in the latest one.
  const day = Math.max(period, ...before.map((row) => row.period));
  const running = before.map((row) => rolledTo(runningOf(row, day), day));
  const weight = 1 / (before.length - 1);
  return before.map((row, seat) => {
    const { start, period: day, ...evidence } = running[seat] as Running;
    let sum: Evidence = evidence;
    running.forEach((other, i) => {
      if (i === seat) return;
      const score = pairScore(scores[seat] ?? 0, scores[i] ?? 0);
      sum = withResult(sum, start, { opponent: other.start, score, weight });
    });
    return standing(row, match, seat, elo[seat] ?? row.rating, { start, period: day, ...sum });
  });
}

/** A newcomer has no idle days behind it. */
const runningOf = (row: RatingRow, day: number): Running => ({
  period: row.games === 0 ? day : row.period,
  start: { rating: row.startGlicko, deviation: row.startDeviation, volatility: row.startVolatility },
  information: row.information,
  surprise: row.surprise,
});

/** Won is who did better than everybody else, lost who did worse than somebody. Written out: it is made for every seat. */
function standing(row: RatingRow, match: RatedMatchRow, seat: number, rating: number, running: Running): RatingRow {
  let best = Number.NEGATIVE_INFINITY;
  match.seats.forEach(({ score }, other) => {
    if (other !== seat) best = Math.max(best, score);
  });
  const score = pairScore(match.seats[seat]?.score ?? 0, best);
  const streak = score === 1 ? Math.max(0, row.streak) + 1 : score === 0 ? Math.min(0, row.streak) - 1 : 0;
  const now = estimate(running);
  return {
    season: row.season,
    game: row.game,
    agentId: row.agentId,
    rating,
    games: row.games + 1,
    wins: row.wins + Number(score === 1),
    draws: row.draws + Number(score === 0.5),
    losses: row.losses + Number(score === 0),
    streak,
    bestStreak: Math.max(row.bestStreak, streak),
    glicko: now.rating,
    deviation: now.deviation,
    volatility: now.volatility,
    period: running.period,
    startGlicko: running.start.rating,
    startDeviation: running.start.deviation,
    startVolatility: running.start.volatility,
    information: running.information,
    surprise: running.surprise,
    lastMatchId: match.matchId,
    updatedAt: match.at,
  };
}

export const changeRow = (before: RatingRow, after: RatingRow, match: RatedMatchRow): RatingChangeRow => ({
  season: after.season,
  game: after.game,
  agentId: after.agentId,
  position: match.position,
  games: after.games,
  matchId: match.matchId,
  before: before.rating,
  after: after.rating,
  glicko: after.glicko,
  deviation: after.deviation,
  volatility: after.volatility,
  period: after.period,
  at: match.at,
});
