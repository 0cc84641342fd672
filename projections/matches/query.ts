import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, select } from '../engine/page.js';
import { type MatchRow, matches, type TurnRow, turns } from './table.js';

export interface MatchFilter extends PageRequest {
  readonly game?: string | undefined;
  readonly status?: string | undefined;
  readonly agentId?: string | undefined;
}

/** Newest first. */
export function listMatches(db: DataSource, filter: MatchFilter): Promise<Page<MatchRow>> {
  const where: string[] = [];
  const values: unknown[] = [];
  const add = (value: unknown, condition: (parameter: string) => string) => {
    if (value === undefined) return;
    values.push(value);
    where.push(condition(`$${values.length}`));
  };
  add(filter.game, (parameter) => `game = ${parameter}`);
  add(filter.status, (parameter) => `status = ${parameter}`);
  add(filter.agentId && JSON.stringify([{ agentId: filter.agentId }]), (parameter) => `seats @> ${parameter}::jsonb`);
  return pageOf(db, matches, filter, { order: 'position', descending: true, where, values });
}

export const matchById = async (db: DataSource, matchId: string): Promise<MatchRow | undefined> =>
  (await select(db, matches, 'WHERE match_id = $1', [matchId]))[0];

/** Of several matches at once, in order. */
export const turnsOf = (db: DataSource, matchIds: readonly string[]): Promise<TurnRow[]> =>
  select(db, turns, 'WHERE match_id = ANY($1) ORDER BY match_id, turn', [matchIds]);
/** How many matches of this day (UTC) an account has a seat in. */
export async function countMatches(db: DataSource, accountId: string, day: string): Promise<number> {
  const [row] = await db.query('SELECT count(*) AS count FROM matches WHERE seats @> $1::jsonb AND proposed_at >= $2', [
    JSON.stringify([{ accountId }]),
    `${day}T00:00:00.000Z`,
  ]);
  return Number(row.count);
}
