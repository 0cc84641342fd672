import { defineTable } from '../engine/table.js';

export interface AccountRow {
  readonly accountId: string;
  readonly displayName: string;
  readonly registeredAt: string;
}

export const accounts = defineTable<AccountRow>({
  name: 'accounts',
  key: ['accountId'],
  columns: { accountId: 'text', displayName: 'text', registeredAt: 'timestamptz' },
});

export interface AgentRow {
  readonly agentId: string;
  readonly ownerId: string;
  readonly name: string;
  readonly games: readonly string[];
  readonly runtime: string;
  readonly version: number;
  readonly codeDigest: string;
  readonly submittedAt: string;
  readonly updatedAt: string;
}

export const agents = defineTable<AgentRow>({
  name: 'agents',
  key: ['agentId'],
  indexes: { agents_by_owner: ['ownerId', 'agentId'] },
  columns: {
    agentId: 'text',
    ownerId: 'text',
    name: 'text',
    games: 'jsonb',
    runtime: 'text',
    version: 'int4',
    codeDigest: 'text',
    submittedAt: 'timestamptz',
    updatedAt: 'timestamptz',
  },
});

export interface VersionRow {
  readonly agentId: string;
  readonly version: number;
  readonly codeDigest: string;
  readonly codeBytes: number;
  readonly publishedAt: string;
}

export const versions = defineTable<VersionRow>({
  name: 'agent_versions',
  key: ['agentId', 'version'],
  columns: { agentId: 'text', version: 'int4', codeDigest: 'text', codeBytes: 'int4', publishedAt: 'timestamptz' },
});
