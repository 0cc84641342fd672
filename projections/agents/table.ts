import { defineTable, json, type RowOf } from '../engine/table.js';

export const accounts = defineTable({
  name: 'accounts',
  key: ['accountId'],
  columns: { accountId: 'text', displayName: 'text', registeredAt: 'timestamptz' },
});
export type AccountRow = RowOf<typeof accounts>;

export const agents = defineTable({
  name: 'agents',
  key: ['agentId'],
  indexes: { agents_by_owner: ['ownerId', 'agentId'] },
  columns: {
    agentId: 'text',
    ownerId: 'text',
    name: 'text',
    games: json<readonly string[]>(),
    runtime: 'text',
    version: 'int4',
    codeDigest: 'text',
    submittedAt: 'timestamptz',
    updatedAt: 'timestamptz',
  },
});
export type AgentRow = RowOf<typeof agents>;

export const versions = defineTable({
  name: 'agent_versions',
  key: ['agentId', 'version'],
  columns: { agentId: 'text', version: 'int4', codeDigest: 'text', codeBytes: 'int4', publishedAt: 'timestamptz' },
});
export type VersionRow = RowOf<typeof versions>;
