import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, pagesOf, select } from '../engine/page.js';
import { type AccountRow, type AgentRow, accounts, agents, type VersionRow, versions } from './table.js';

export const listAgents = (db: DataSource, request: PageRequest & { ownerId?: string | undefined }) =>
  pageOf(db, agents, request, {
    order: ['agentId'],
    ...(request.ownerId === undefined ? {} : { where: ['owner_id = $1'], values: [request.ownerId] }),
  });

/** Of several owners at once. */
export const agentPagesOf = (db: DataSource, owners: readonly string[], request: PageRequest) =>
  pagesOf(db, agents, { keys: owners, on: 'owner_id = parent.key' }, request, { order: ['agentId'] });

/** How many agents an owner has. */
export const countAgents = async (db: DataSource, ownerId: string): Promise<number> =>
  Number((await db.query('SELECT count(*) AS count FROM agents WHERE owner_id = $1', [ownerId]))[0].count);

export const agentById = async (db: DataSource, agentId: string): Promise<AgentRow | undefined> =>
  (await select(db, agents, 'WHERE agent_id = $1', [agentId]))[0];

export const agentsById = (db: DataSource, agentIds: readonly string[]): Promise<AgentRow[]> =>
  select(db, agents, 'WHERE agent_id = ANY($1)', [agentIds]);

/** Of several agents at once, in order. */
export const versionsOf = (db: DataSource, agentIds: readonly string[]): Promise<VersionRow[]> =>
  select(db, versions, 'WHERE agent_id = ANY($1) ORDER BY agent_id, version', [agentIds]);

/** Newest first, of several agents at once. */
export const versionPagesOf = (db: DataSource, agentIds: readonly string[], request: PageRequest) =>
  pagesOf(db, versions, { keys: agentIds, on: 'agent_id = parent.key' }, request, {
    order: ['version'],
    descending: ['version'],
  });

export const agentsOfOwners = (db: DataSource, owners: readonly string[]): Promise<AgentRow[]> =>
  select(db, agents, 'WHERE owner_id = ANY($1) ORDER BY agent_id', [owners]);

export const listAccounts = (db: DataSource, request: PageRequest): Promise<Page<AccountRow>> =>
  pageOf(db, accounts, request, { order: ['accountId'] });

export const accountById = async (db: DataSource, accountId: string): Promise<AccountRow | undefined> =>
  (await accountsById(db, [accountId]))[0];

export const accountsById = (db: DataSource, accountIds: readonly string[]): Promise<AccountRow[]> =>
  select(db, accounts, 'WHERE account_id = ANY($1)', [accountIds]);
