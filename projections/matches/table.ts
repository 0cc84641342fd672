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
