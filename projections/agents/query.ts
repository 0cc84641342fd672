import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, select } from '../engine/page.js';
import { type AccountRow, type AgentRow, accounts, agents, type VersionRow, versions } from './table.js';

export const listAgents = (db: DataSource, request: PageRequest & { ownerId?: string }): Promise<Page<AgentRow>> =>
  pageOf(db, agents, request, {
    order: 'agentId',
    ...(request.ownerId === undefined ? {} : { where: ['owner_id = $1'], values: [request.ownerId] }),
  });

/** How many agents an owner has. */
export const countAgents = async (db: DataSource, ownerId: string): Promise<number> =>
  Number((await db.query('SELECT count(*) AS count FROM agents WHERE owner_id = $1', [ownerId]))[0].count);

export const agentById = async (db: DataSource, agentId: string): Promise<AgentRow | undefined> =>
  (await select(db, agents, 'WHERE agent_id = $1', [agentId]))[0];

/** Of several agents at once, in order. */
export const versionsOf = (db: DataSource, agentIds: readonly string[]): Promise<VersionRow[]> =>
  select(db, versions, 'WHERE agent_id = ANY($1) ORDER BY agent_id, version', [agentIds]);
export const agentsOfOwners = (db: DataSource, owners: readonly string[]): Promise<AgentRow[]> =>
  select(db, agents, 'WHERE owner_id = ANY($1) ORDER BY agent_id', [owners]);

export const listAccounts = (db: DataSource, request: PageRequest): Promise<Page<AccountRow>> =>
  pageOf(db, accounts, request, { order: 'accountId' });

export const accountById = async (db: DataSource, accountId: string): Promise<AccountRow | undefined> =>
  (await select(db, accounts, 'WHERE account_id = $1', [accountId]))[0];
