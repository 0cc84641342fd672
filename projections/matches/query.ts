import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, pagesOf, select } from '../engine/page.js';
import { type MatchRow, type MatchStatus, matches, type TurnRow, turns } from './table.js';

export interface MatchFilter extends PageRequest {
  readonly game?: string | undefined;
  readonly status?: string | undefined;
  readonly agentId?: string | undefined;
}

/** An agent's matches, in the order of its seats in them: whoever sits in few finds them behind any number of others. */
const SEATED = { join: 'match_seats seat JOIN matches ON matches.match_id = seat.match_id', name: 'seat' } as const;

const NEWEST = { order: ['position'], descending: ['position'] } as const;

function conditions(filter: MatchFilter): { where: string[]; values: unknown[] } {
  const where: string[] = [];
  const values: unknown[] = [];
  const add = (value: unknown, condition: (parameter: string) => string) => {
    if (value !== undefined) where.push(condition(`$${values.push(value)}`));
  };
  add(filter.game, (parameter) => `game = ${parameter}`);
  add(filter.status, (parameter) => `status = ${parameter}`);
  add(filter.agentId, (parameter) => `seat.agent_id = ${parameter}`);
  return { where, values };
}

/** Newest first. */
export const listMatches = (db: DataSource, filter: MatchFilter): Promise<Page<MatchRow>> =>
  pageOf(db, matches, filter, {
    ...NEWEST,
    ...conditions(filter),
    ...(filter.agentId === undefined ? {} : { by: SEATED }),
  });

/** Those in which an agent sits, newest first, of several agents at once. */
export const matchPagesOf = (db: DataSource, agentIds: readonly string[], filter: Omit<MatchFilter, 'agentId'>) =>
  pagesOf(db, matches, { keys: agentIds, on: 'seat.agent_id = parent.key' }, filter, {
    ...NEWEST,
    ...conditions(filter),
    by: SEATED,
  });

/** Where a match is that is not over: waiting for stakes, for a runner, or being played. */
export const openStatuses = ['proposed', 'ready', 'playing'] as const satisfies readonly MatchStatus[];

/** Matches that are not over, in the order in which they were proposed. */
export const listOpenMatches = (db: DataSource, request: PageRequest & { statuses?: readonly string[] }) =>
  pageOf(db, matches, request, {
    order: ['position'],
    // The first condition is that of the index: all others are over, and there are ever more of them.
    where: ["status IN ('proposed', 'ready', 'playing')", 'status = ANY($1)'],
    values: [request.statuses ?? openStatuses],
  });

/** How many matches are where. */
export async function countOpenMatches(db: DataSource): Promise<Record<(typeof openStatuses)[number], number>> {
  const rows: { status: string; count: string }[] = await db.query(
    'SELECT status, count(*) AS count FROM matches WHERE status = ANY($1) GROUP BY status',
    [openStatuses],
  );
  const countOf = (status: string) => Number(rows.find((row) => row.status === status)?.count ?? 0);
  return { proposed: countOf('proposed'), ready: countOf('ready'), playing: countOf('playing') };
}

export const matchById = async (db: DataSource, matchId: string): Promise<MatchRow | undefined> =>
  (await matchesById(db, [matchId]))[0];

export const matchesById = (db: DataSource, matchIds: readonly string[]): Promise<MatchRow[]> =>
  select(db, matches, 'WHERE match_id = ANY($1)', [matchIds]);

/** Of several matches at once, in order. */
export const turnsOf = (db: DataSource, matchIds: readonly string[]): Promise<TurnRow[]> =>
  select(db, turns, 'WHERE match_id = ANY($1) ORDER BY match_id, turn', [matchIds]);

export const turnPagesOf = (db: DataSource, matchIds: readonly string[], request: PageRequest) =>
  pagesOf(db, turns, { keys: matchIds, on: 'match_id = parent.key' }, request, { order: ['turn'] });

/** How many matches since this day (UTC) began an account has a seat in, or several. */
export async function countMatches(db: DataSource, accountId: string, day: string): Promise<number> {
  const [row] = await db.query(
    'SELECT count(DISTINCT match_id) AS count FROM match_seats WHERE account_id = $1 AND proposed_at >= $2',
    [accountId, `${day}T00:00:00.000Z`],
  );
  return Number(row.count);
}
