import type { MemberRole } from '../../services/kernel/index.js';
import { defineTable, type RowOf, text } from '../engine/table.js';

export const members = defineTable({
  name: 'members',
  key: ['memberId', 'accountId'],
  columns: { memberId: 'text', accountId: 'text', role: text<MemberRole>() },
});
export type MemberRow = RowOf<typeof members>;

export const audit = defineTable({
  name: 'audit',
  key: ['accountId', 'position'],
  columns: {
    accountId: 'text',
    position: 'int8',
    at: 'timestamptz',
    type: 'text',
    actorId: 'text',
    actorRole: 'text',
    detail: 'jsonb',
  },
});
export type AuditRow = RowOf<typeof audit>;
