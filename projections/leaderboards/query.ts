import type { DataSource } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import { type Page, type PageRequest, pageOf, select } from '../engine/page.js';
import type { Pairing } from './bradley-terry.js';
import { PROVISIONAL_GAMES } from './elo.js';
import { idle, PROVISIONAL_DEVIATION, periodOf } from './glicko2.js';
import {
  ALL_TIME,
  type HeadToHeadRow,
  headToHead,
  type RatingChangeRow,
  type RatingRow,
  ratingHistory,
  ratings,
} from './table.js';

/** Where the rating is to be found with 95 percent confidence: two deviations to either side. */
export interface GlickoStanding {
  readonly rating: number;
  readonly deviation: number;
  readonly low: number;
  readonly high: number;
  readonly volatility: number;
  /** Too uncertain to be compared. */
  readonly provisional: boolean;
}

export interface Standing extends RatingRow {
  readonly rank: number;
  /** Of the Elo rating: fewer than 30 games. */
  readonly provisional: boolean;
  readonly confidence: GlickoStanding;
}

export type RankedBy = 'elo' | 'glicko';

/** Glicko-2 at this moment: every day since the last match has made it less certain. */
export function glickoAt(
  row: Pick<RatingRow, 'glicko' | 'deviation' | 'volatility' | 'period'>,
  at: string,
): GlickoStanding {
  const passed = Math.max(0, periodOf(at) - row.period - 1);
  const { rating, deviation, volatility } = idle({ ...row, rating: row.glicko }, passed);
  const provisional = deviation >= PROVISIONAL_DEVIATION;
  return { rating, deviation, low: rating - 2 * deviation, high: rating + 2 * deviation, volatility, provisional };
}

/** Best first; equal ratings in the order of their names. */
export function rank(rows: readonly RatingRow[], at: string, by: RankedBy = 'elo'): Standing[] {
  const value = by === 'elo' ? (row: RatingRow) => row.rating : (row: RatingRow) => row.glicko;
  const sorted = [...rows].sort((a, b) => value(b) - value(a) || (a.agentId < b.agentId ? -1 : 1));
  return sorted.map((row, i) => standing(row, i + 1, at));
}

const standing = (row: RatingRow, place: number, at: string): Standing => ({
  ...row,
  rank: place,
  provisional: row.games < PROVISIONAL_GAMES,
  confidence: glickoAt(row, at),
});

export interface BoardRequest {
  readonly game: string;
  readonly season?: string | undefined;
  readonly by?: RankedBy | undefined;
}

/** The first of a board, as of this moment. */
export async function leaderboard(
  db: DataSource,
  { game, season = ALL_TIME, by = 'elo' }: BoardRequest,
  first: number,
  at: string,
): Promise<Standing[]> {
  const column = by === 'elo' ? 'rating' : 'glicko';
  const order = `WHERE season = $1 AND game = $2 ORDER BY ${column} DESC, agent_id LIMIT $3`;
  return rank(await select(db, ratings, order, [season, game, first]), at, by);
}

/** These agents' standings, with the ranks that are known of them. */
export async function standingsOf(
  db: DataSource,
  { game, season = ALL_TIME }: BoardRequest,
  ranked: readonly { agentId: string; rank: number }[],
  at: string,
): Promise<Standing[]> {
  const ids = ranked.map(({ agentId }) => agentId);
  const rows = await select(db, ratings, 'WHERE season = $1 AND game = $2 AND agent_id = ANY($3::text[])', [
    season,
    game,
    ids,
  ]);
  return ranked.flatMap(({ agentId, rank: place }) => {
    const row = rows.find((each) => each.agentId === agentId);
    return row ? [standing(row, place, at)] : [];
  });
}

/** Seasons in which this game was played, newest first; the whole of time is one of them. */
export async function seasonsOf(db: DataSource, game: string): Promise<string[]> {
  const rows: { season: string }[] = await db.query(
    // A loose index scan: as many steps as there are seasons, however many agents each has.
    `WITH RECURSIVE seasons AS (
       (SELECT season FROM ratings WHERE game = $1 ORDER BY season LIMIT 1)
       UNION ALL SELECT (SELECT r.season FROM ratings r WHERE r.game = $1 AND r.season > s.season ORDER BY r.season LIMIT 1)
       FROM seasons s WHERE s.season IS NOT NULL)
     SELECT season FROM seasons WHERE season IS NOT NULL`,
    [game],
  );
  return rows.map(({ season }) => season).reverse();
}

/** How a rating came about, newest match first. */
export const ratingHistoryOf = (
  db: DataSource,
  { game, season = ALL_TIME }: BoardRequest,
  agentId: string,
  request: PageRequest,
): Promise<Page<RatingChangeRow>> =>
  pageOf(db, ratingHistory, request, {
    order: 'position',
    descending: true,
    where: ['season = $1', 'game = $2', 'agent_id = $3'],
    values: [season, game, agentId],
  });

/** How an agent stood after a position of the log, or at a moment; undefined before its first match. */
export async function ratingAt(
  db: DataSource,
  { game, season = ALL_TIME }: BoardRequest,
  agentId: string,
  when: { readonly position: number } | { readonly at: string },
): Promise<(RatingChangeRow & { readonly confidence: GlickoStanding }) | undefined> {
  if ('at' in when && Number.isNaN(Date.parse(when.at))) {
    throw new AgonError('QUERY.BAD_TIME', `"${when.at}" is not a time. Write it as 2026-01-31T12:00:00Z.`);
  }
  const [condition, value] = 'at' in when ? ['at <= $4', when.at] : ['position <= $4', when.position];
  const [row] = await select(
    db,
    ratingHistory,
    `WHERE season = $1 AND game = $2 AND agent_id = $3 AND ${condition} ORDER BY position DESC LIMIT 1`,
    [season, game, agentId, value],
  );
  return row && { ...row, confidence: glickoAt(row, 'at' in when ? when.at : row.at) };
}

/** Who beat whom: the matrix of a board, row by row, or one agent's row. */
export const headToHeadOf = (
  db: DataSource,
  { game, season = ALL_TIME }: BoardRequest,
  agentId: string | undefined,
  first: number,
): Promise<HeadToHeadRow[]> =>
  agentId === undefined
    ? select(db, headToHead, 'WHERE season = $1 AND game = $2 ORDER BY agent_id, opponent_id LIMIT $3', [
        season,
        game,
        first,
      ])
    : select(
        db,
        headToHead,
        'WHERE season = $1 AND game = $2 AND agent_id = $3 ORDER BY agent_id, opponent_id LIMIT $4',
        [season, game, agentId, first],
      );

/** The matrix as the Bradley-Terry model takes it: each pair once. */
export const pairings = (rows: readonly HeadToHeadRow[]): Pairing[] =>
  rows
    .filter(({ agentId, opponentId }) => agentId < opponentId)
    .map((row) => ({ a: row.agentId, b: row.opponentId, winsA: row.wins, winsB: row.losses, draws: row.draws }));
