import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, select } from '../engine/page.js';
import { type BalanceRow, balances, type PostingRow, postings } from './table.js';

/** All ledger accounts, or those of one player. */
export const listBalances = (db: DataSource, accountId?: string): Promise<BalanceRow[]> =>
  accountId === undefined
    ? select(db, balances, 'ORDER BY account, currency')
    : select(db, balances, 'WHERE account = $1 ORDER BY currency', [`player:${accountId}`]);

/** What happened to a player's money, oldest first. An event touches an account once in a currency. */
export const statementOf = (
  db: DataSource,
  request: PageRequest & { accountId: string; currency: string },
): Promise<Page<PostingRow>> =>
  pageOf(db, postings, request, {
    order: 'position',
    where: ['account = $1', 'currency = $2'],
    values: [`player:${request.accountId}`, request.currency],
  });

/** What all accounts add up to, per currency. Anything but zero is a fault. */
export function ledgerSums(rows: readonly BalanceRow[]): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const { currency, balanceCents } of rows) sums[currency] = (sums[currency] ?? 0n) + balanceCents;
  return sums;
}
