import { defineTable, json, type RowOf, text } from '../engine/table.js';

interface SeatRow {
  readonly agentId: string;
  readonly accountId: string;
  readonly version: number;
  readonly codeDigest: string;
  readonly score?: number;
  readonly payoutCents?: string;
}

export type MatchStatus = 'proposed' | 'ready' | 'playing' | 'settled' | 'voided' | 'reversed';

export const matches = defineTable({
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
    status: text<MatchStatus>(),
    /** Why it stands where it stands: the rule that ended it, or what it waits for. */
    reason: 'text',
    detail: 'text',
    seats: json<readonly SeatRow[]>(),
    winner: 'int4',
    stakeCents: 'numeric',
    potCents: 'numeric',
    rakeCents: 'numeric',
    currency: 'text',
    turns: 'int4',
    attempts: 'int4',
    proposedAt: 'timestamptz',
    endedAt: 'timestamptz',
    /** Position of MatchProposed: the order in which matches were made, and what pages are cut by. */
    position: 'int8',
  },
});
export type MatchRow = RowOf<typeof matches>;

/**
 * Who sits in a match, a row an agent: an agent's matches in their order, and an account's of a day, are found by an index.
 * What is in `seats` cannot be, in any order.
 */
export const matchSeats = defineTable({
  name: 'match_seats',
  key: ['agentId', 'position'],
  indexes: { match_seats_by_account: ['accountId', 'proposedAt', 'matchId'] },
  columns: {
    agentId: 'text',
    /** Of MatchProposed, as in the match. */
    position: 'int8',
    accountId: 'text',
    matchId: 'text',
    proposedAt: 'timestamptz',
  },
});

export const turns = defineTable({
  name: 'turns',
  key: ['matchId', 'turn'],
  columns: {
    matchId: 'text',
    turn: 'int4',
    seat: 'int4',
    /** JSON text: an action may be a bare number or string, which jsonb columns return without their quotes. */
    action: 'text',
    fuel: 'int8',
  },
});
export type TurnRow = RowOf<typeof turns>;
