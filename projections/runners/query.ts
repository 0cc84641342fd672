import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, pagesOf, select } from '../engine/page.js';
import { type LeaseRow, leases, type RunnerRow, runners } from './table.js';

export const listRunners = (db: DataSource, request: PageRequest): Promise<Page<RunnerRow>> =>
  pageOf(db, runners, request, { order: ['runnerId'] });

export const runnersById = (db: DataSource, runnerIds: readonly string[]): Promise<RunnerRow[]> =>
  select(db, runners, 'WHERE runner_id = ANY($1)', [runnerIds]);

/** Who has these matches in hand. */
export const leasesOn = (db: DataSource, matchIds: readonly string[]): Promise<LeaseRow[]> =>
  select(db, leases, 'WHERE match_id = ANY($1)', [matchIds]);

/** What these runners have in hand. */
export const leasePagesOf = (db: DataSource, runnerIds: readonly string[], request: PageRequest) =>
  pagesOf(db, leases, { keys: runnerIds, on: 'runner_id = parent.key' }, request, { order: ['matchId'] });
