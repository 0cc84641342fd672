import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, select } from '../engine/page.js';
import { type AuditRow, audit, type MemberRow, members } from './table.js';

/** Organisations that name somebody as a member, whether that was agreed to or not: not more than a person reads. */
export const organisationsNaming = (db: DataSource, memberId: string, limit: number): Promise<MemberRow[]> =>
  select(db, members, 'WHERE member_id = $1 ORDER BY account_id LIMIT $2', [memberId, limit]);

/** What happened to an account, newest first. */
export const auditOf = (db: DataSource, accountId: string, request: PageRequest): Promise<Page<AuditRow>> =>
  pageOf(db, audit, request, {
    order: ['position'],
    descending: ['position'],
    where: ['account_id = $1'],
    values: [accountId],
  });
