import type { AccountRow, AgentRow, VersionRow } from '../../projections/agents/table.js';
import type { ProjectionStatus } from '../../projections/engine/projections.js';
import type { RatingChangeRow } from '../../projections/leaderboards/table.js';
import type { MatchRow, TurnRow } from '../../projections/matches/table.js';
import type { PaymentRow } from '../../projections/payments/table.js';
import type { RunnerRow } from '../../projections/runners/table.js';
import { publicMatch } from '../use-cases/matches.js';
import { globalId } from './relay.js';

// Rows as the schema shows them: with an id for all of GraphQL, and with numbers that may pass 32 bits as text.

export const accountOf = (row: AccountRow) => ({ ...row, id: globalId('Account', row.accountId) });

export const agentOf = (row: AgentRow) => ({ ...row, id: globalId('Agent', row.agentId) });

export const versionOf = (row: VersionRow) => ({ ...row, id: globalId('AgentVersion', row.agentId, row.version) });

export const matchOf = (row: MatchRow) => ({ ...publicMatch(row), id: globalId('Match', row.matchId) });

export const turnOf = (row: TurnRow) => ({ ...row, fuel: row.fuel.toString() });

export const ratingChangeOf = (row: RatingChangeRow) => ({ ...row, position: row.position.toString() });

export const runnerOf = (row: RunnerRow) => ({ ...row, id: globalId('Runner', row.runnerId) });

export const paymentOf = (row: PaymentRow) => ({
  ...row,
  id: globalId('Payment', row.paymentId),
  amountCents: row.amountCents.toString(),
  returnedCents: row.returnedCents.toString(),
});

export const projectionOf = (status: ProjectionStatus) => ({ ...status, id: globalId('Projection', status.view) });
