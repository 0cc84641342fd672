import { defineTable } from '../engine/table.js';

export interface RunnerRow {
  readonly runnerId: string;
  readonly publicKey: string;
  readonly status: 'registered' | 'revoked';
  /** Why it was revoked; empty while it is trusted. */
  readonly reason: string;
  readonly registeredAt: string;
  /** When it last claimed, kept or reported a match. */
  readonly seenAt: string;
  readonly claimed: number;
  readonly played: number;
}

export const runners = defineTable<RunnerRow>({
  name: 'runners',
  key: ['runnerId'],
  columns: {
    runnerId: 'text',
    publicKey: 'text',
    status: 'text',
    reason: 'text',
    registeredAt: 'timestamptz',
    seenAt: 'timestamptz',
    claimed: 'int4',
    played: 'int4',
  },
});

/** A match in the hands of a runner, for as long as it is. */
export interface LeaseRow {
  readonly matchId: string;
  readonly runnerId: string;
  readonly attempt: number;
  readonly leaseUntil: string;
}

export const leases = defineTable<LeaseRow>({
  name: 'leases',
  key: ['matchId'],
  indexes: { leases_by_runner: ['runnerId', 'matchId'] },
  columns: { matchId: 'text', runnerId: 'text', attempt: 'int4', leaseUntil: 'timestamptz' },
});
