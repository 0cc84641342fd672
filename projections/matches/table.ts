import { defineTable } from '../engine/table.js';

export interface SeatRow {
  readonly agentId: string;
  readonly accountId: string;
  readonly version: number;
  readonly codeDigest: string;
  readonly score?: number;
  readonly payoutCents?: string;
}

export type MatchStatus = 'proposed' | 'ready' | 'playing' | 'settled' | 'voided' | 'reversed';

export interface MatchRow {
  readonly matchId: string;
  readonly game: string;
  readonly seed: string;
  readonly status: MatchStatus;
  /** Why it stands where it stands: the rule that ended it, or what it waits for. */
  readonly reason: string;
  readonly detail: string;
  readonly seats: readonly SeatRow[];
  readonly winner: number | null;
  readonly stakeCents: bigint;
  readonly potCents: bigint;
  readonly rakeCents: bigint;
  readonly currency: string;
  readonly turns: number;
  readonly attempts: number;
  readonly proposedAt: string;
  readonly endedAt: string | null;
  /** Position of MatchProposed: the order in which matches were made, and what pages are cut by. */
  readonly position: bigint;
}

export const matches = defineTable<MatchRow>({
  name: 'matches',
  key: ['matchId'],
  nullable: ['winner', 'endedAt'],
  indexes: {
    matches_by_position: ['position'],
    matches_by_status: ['status', 'position'],
    matches_by_game: ['game', 'position'],
    matches_open: ['position'],
  },
  columns: {
    matchId: 'text',
    game: 'text',
    seed: 'text',
    status: 'text',
    reason: 'text',
    detail: 'text',
    seats: 'jsonb',
    winner: 'int4',
    stakeCents: 'numeric',
    potCents: 'numeric',
    rakeCents: 'numeric',
    currency: 'text',
    turns: 'int4',
    attempts: 'int4',
    proposedAt: 'timestamptz',
    endedAt: 'timestamptz',
    position: 'int8',
  },
});

/**
 * Who sits in a match, a row an agent: an agent's matches in their order, and an account's of a day, are found by an index.
 * What is in `seats` cannot be, in any order.
 */
export interface MatchSeatRow {
  readonly agentId: string;
  /** Of MatchProposed, as in the match. */
  readonly position: bigint;
  readonly accountId: string;
  readonly matchId: string;
  readonly proposedAt: string;
}

export const matchSeats = defineTable<MatchSeatRow>({
  name: 'match_seats',
  key: ['agentId', 'position'],
  indexes: { match_seats_by_account: ['accountId', 'proposedAt', 'matchId'] },
  columns: { agentId: 'text', position: 'int8', accountId: 'text', matchId: 'text', proposedAt: 'timestamptz' },
});

export interface TurnRow {
  readonly matchId: string;
  readonly turn: number;
  readonly seat: number;
  /** JSON text: an action may be a bare number or string, which jsonb columns return without their quotes. */
  readonly action: string;
  readonly fuel: bigint;
}

export const turns = defineTable<TurnRow>({
  name: 'turns',
  key: ['matchId', 'turn'],
  columns: { matchId: 'text', turn: 'int4', seat: 'int4', action: 'text', fuel: 'int8' },
});
