import { defineTable, type RowOf } from '../engine/table.js';

export const postings = defineTable({
  name: 'postings',
  key: ['position', 'line'],
  nullable: ['matchId'],
  indexes: { postings_by_account: ['account', 'currency', 'position'] },
  columns: {
    position: 'int8',
    line: 'int4',
    /** Of the chart of accounts, e.g. player:<account>, escrow, house:rake. */
    account: 'text',
    currency: 'text',
    amountCents: 'numeric',
    eventType: 'text',
    matchId: 'text',
    at: 'timestamptz',
  },
});
export type PostingRow = RowOf<typeof postings>;

export const balances = defineTable({
  name: 'balances',
  key: ['account', 'currency'],
  columns: { account: 'text', currency: 'text', balanceCents: 'numeric', postings: 'int4' },
});
export type BalanceRow = RowOf<typeof balances>;
