import { defineTable, type RowOf, text } from '../engine/table.js';

export const runners = defineTable({
  name: 'runners',
  key: ['runnerId'],
  columns: {
    runnerId: 'text',
    publicKey: 'text',
    status: text<'registered' | 'revoked'>(),
    /** Why it was revoked; empty while it is trusted. */
    reason: 'text',
    registeredAt: 'timestamptz',
    /** When it last claimed, kept or reported a match. */
    seenAt: 'timestamptz',
    claimed: 'int4',
    played: 'int4',
  },
});
export type RunnerRow = RowOf<typeof runners>;

/** A match in the hands of a runner, for as long as it is. */
export const leases = defineTable({
  name: 'leases',
  key: ['matchId'],
  indexes: { leases_by_runner: ['runnerId', 'matchId'] },
  columns: { matchId: 'text', runnerId: 'text', attempt: 'int4', leaseUntil: 'timestamptz' },
});
export type LeaseRow = RowOf<typeof leases>;
