import type { MemberRole } from '../../services/kernel/index.js';
import { defineTable } from '../engine/table.js';

export interface MemberRow {
  readonly memberId: string;
  readonly accountId: string;
  readonly role: MemberRole;
}

export const members = defineTable<MemberRow>({
  name: 'members',
  key: ['memberId', 'accountId'],
  columns: { memberId: 'text', accountId: 'text', role: 'text' },
});

export interface AuditRow {
  readonly accountId: string;
  readonly position: bigint;
  readonly at: string;
  readonly type: string;
  readonly actorId: string;
  readonly actorRole: string;
  readonly detail: object;
}

export const audit = defineTable<AuditRow>({
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
