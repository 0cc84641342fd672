import type { DataSource } from 'typeorm';
import { select } from '../engine/page.js';
import { type BalanceRow, balances } from './table.js';

/** All ledger accounts, or those of one player. */
export const listBalances = (db: DataSource, accountId?: string): Promise<BalanceRow[]> =>
  accountId === undefined
    ? select(db, balances, 'ORDER BY account, currency')
    : select(db, balances, 'WHERE account = $1 ORDER BY currency', [`player:${accountId}`]);

/** What all accounts add up to, per currency. Anything but zero is a fault. */
export function ledgerSums(rows: readonly BalanceRow[]): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const { currency, balanceCents } of rows) sums[currency] = (sums[currency] ?? 0n) + balanceCents;
  return sums;
}
