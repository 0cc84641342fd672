import { defineTable } from '../engine/table.js';

export interface PostingRow {
  readonly position: bigint;
  readonly line: number;
  /** Of the chart of accounts, e.g. player:<account>, escrow, house:rake. */
  readonly account: string;
  readonly currency: string;
  readonly amountCents: bigint;
  readonly eventType: string;
  readonly matchId: string | null;
  readonly at: string;
}

export const postings = defineTable<PostingRow>({
  name: 'postings',
  key: ['position', 'line'],
  nullable: ['matchId'],
  indexes: { postings_by_account: ['account', 'currency', 'position'] },
  columns: {
    position: 'int8',
    line: 'int4',
    account: 'text',
    currency: 'text',
    amountCents: 'numeric',
    eventType: 'text',
    matchId: 'text',
    at: 'timestamptz',
  },
});

export interface BalanceRow {
  readonly account: string;
  readonly currency: string;
  readonly balanceCents: bigint;
  readonly postings: number;
}

export const balances = defineTable<BalanceRow>({
  name: 'balances',
  key: ['account', 'currency'],
  columns: { account: 'text', currency: 'text', balanceCents: 'numeric', postings: 'int4' },
});
