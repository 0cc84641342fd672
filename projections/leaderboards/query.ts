import type { DataSource } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import { cursorOf, type Page, type PageRequest, pageOf, pagesOf, select } from '../engine/page.js';
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
interface GlickoStanding {
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

/** A page of a board. Its rows follow each other, so the rank of the first is the only one that has to be counted. */
export async function boardPage(
  db: DataSource,
  board: BoardRequest,
  request: PageRequest,
  at: string,
): Promise<Page<Standing>> {
  const column = board.by === 'glicko' ? 'glicko' : 'rating';
  const { where, values } = onBoard(board);
  const page = await pageOf(db, ratings, request, { order: [column, 'agentId'], descending: [column], where, values });
  const [best] = page.rows;
  if (!best) return { ...page, rows: [] };
  const ahead =
    `SELECT count(*) AS count FROM ratings WHERE season = $1 AND game = $2 AND ${column} >= $3::float8 ` +
    `AND (${column} > $3::float8 OR agent_id < $4)`;
  const [{ count }] = await db.query(ahead, [...values, best[column], best.agentId]);
  return { ...page, rows: page.rows.map((row, i) => standing(row, Number(count) + i + 1, at)) };
}

/** These agents' standings, with the ranks that are known of them. */
export async function standingsOf(
  db: DataSource,
  { game, season = ALL_TIME }: BoardRequest,
  ranked: readonly { agentId: string; rank: number }[],
  at: string,
): Promise<Standing[]> {
  const ids = ranked.map(({ agentId }) => agentId);
  const these = 'WHERE season = $1 AND game = $2 AND agent_id = ANY($3::text[])';
  const rows = await select(db, ratings, these, [season, game, ids]);
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

/** A board's rows, of one agent if one is named. */
const onBoard = ({ game, season = ALL_TIME }: BoardRequest, agentId?: string) =>
  agentId === undefined
    ? { where: ['season = $1', 'game = $2'], values: [season, game] }
    : { where: ['season = $1', 'game = $2', 'agent_id = $3'], values: [season, game, agentId] };

const NEWEST = { order: ['position'], descending: ['position'] } as const;

/** Where in a rating's history a position of the log is, whether or not a match was settled there. */
export const historyCursor = (position: string): string =>
  cursorOf(ratingHistory, NEWEST, { position: BigInt(position) });

/** How a rating came about, newest match first. */
export const ratingHistoryOf = (db: DataSource, board: BoardRequest, agentId: string, request: PageRequest) =>
  pageOf(db, ratingHistory, request, { ...NEWEST, ...onBoard(board, agentId) });

/** Of several agents at once. */
export const historyPagesOf = (
  db: DataSource,
  board: BoardRequest,
  agentIds: readonly string[],
  request: PageRequest,
) =>
  pagesOf(db, ratingHistory, { keys: agentIds, on: 'agent_id = parent.key' }, request, {
    ...NEWEST,
    ...onBoard(board),
  });

/**
 * How an agent stood at a moment, or after a position of the log where that is given, since many events can share a time;
 * undefined before its first match.
 */
export async function ratingAt(
  db: DataSource,
  { game, season = ALL_TIME }: BoardRequest,
  agentId: string,
  { position, at }: { readonly position?: number; readonly at: string },
): Promise<(RatingChangeRow & { readonly confidence: GlickoStanding }) | undefined> {
  if (Number.isNaN(Date.parse(at))) {
    throw new AgonError('QUERY.BAD_TIME', `"${at}" is not a time. Write it as 2026-01-31T12:00:00Z.`);
  }
  const [condition, value] = position === undefined ? ['at <= $4', at] : ['position <= $4', position];
  const last = `WHERE season = $1 AND game = $2 AND agent_id = $3 AND ${condition} ORDER BY position DESC LIMIT 1`;
  const [row] = await select(db, ratingHistory, last, [season, game, agentId, value]);
  return row && { ...row, confidence: glickoAt(row, at) };
}

/** Who beat whom: the matrix of a board, row by row, or one agent's row. Whole, or refused: nobody is left out unsaid. */
export async function headToHeadOf(
  db: DataSource,
  { game, season = ALL_TIME }: BoardRequest,
  agentId: string | undefined,
  rowsMax: number,
): Promise<HeadToHeadRow[]> {
  const [mine, values] = agentId === undefined ? ['', []] : [' AND agent_id = $4', [agentId]];
  const rest = `WHERE season = $1 AND game = $2${mine} ORDER BY agent_id, opponent_id LIMIT $3`;
  const rows = await select(db, headToHead, rest, [season, game, rowsMax + 1, ...values]);
  if (rows.length <= rowsMax) return rows;
  throw new AgonError(
    'QUERY.TOO_MANY_ROWS',
    `More than ${rowsMax} pairs have met. Ask for one agent's, for a season's, or page by page with headToHeadConnection.`,
  );
}

/** The same, page by page. */
export const headToHeadPage = (
  db: DataSource,
  board: BoardRequest,
  agentId: string | undefined,
  request: PageRequest,
) => pageOf(db, headToHead, request, { order: ['agentId', 'opponentId'], ...onBoard(board, agentId) });

/** Results as the Bradley-Terry model takes them: each pair once, and all of them, since strengths depend on everybody's. */
export async function pairingsOf(
  db: DataSource,
  { game, season = ALL_TIME }: BoardRequest,
  pairsMax: number,
): Promise<Pairing[]> {
  const rest = 'WHERE season = $1 AND game = $2 AND agent_id < opponent_id ORDER BY agent_id, opponent_id LIMIT $3';
  const rows = await select(db, headToHead, rest, [season, game, pairsMax + 1]);
  if (rows.length <= pairsMax) return rows.map(pairingOf);
  throw new AgonError(
    'QUERY.TOO_MANY_PAIRS',
    `More than ${pairsMax} pairs have met, and strengths are computed from all of them at once. Ask for one season's.`,
  );
}

export const pairingOf = ({ agentId: a, opponentId: b, wins, losses, draws }: HeadToHeadRow): Pairing => {
  return { a, b, winsA: wins, winsB: losses, draws };
};
