import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, select } from '../engine/page.js';
import { type BalanceRow, balances, postings } from './table.js';

/** Ledger accounts, in order of name and currency. */
export const listBalances = (db: DataSource, request: PageRequest): Promise<Page<BalanceRow>> =>
  pageOf(db, balances, request, { order: ['account', 'currency'] });

/** What a player has, in every currency. */
export const balancesOf = (db: DataSource, accountId: string): Promise<BalanceRow[]> =>
  select(db, balances, 'WHERE account = $1 ORDER BY currency', [`player:${accountId}`]);

/** The chart of accounts: what all players have, and what all of them owe, is one line a currency each. */
export async function trialBalance(db: DataSource): Promise<BalanceRow[]> {
  const rows: Record<string, string>[] = await db.query(`
    SELECT CASE WHEN account LIKE 'player:%' THEN 'player' WHEN account LIKE 'owed:%' THEN 'owed' ELSE account END AS account,
      currency, sum(balance_cents)::text AS balance, sum(postings)::text AS postings
    FROM balances GROUP BY 1, 2 ORDER BY 1, 2`);
  return rows.map(({ account = '', currency = '', balance = '0', postings: count }) => {
    return { account, currency, balanceCents: BigInt(balance), postings: Number(count) };
  });
}

/** What happened to a player's money, oldest first. An event touches an account once in a currency. */
export const statementOf = (db: DataSource, request: PageRequest & { accountId: string; currency: string }) =>
  pageOf(db, postings, request, {
    order: ['position'],
    where: ['account = $1', 'currency = $2'],
    values: [`player:${request.accountId}`, request.currency],
  });

/** What all accounts add up to, per currency. Anything but zero is a fault. */
export function ledgerSums(rows: readonly BalanceRow[]): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const { currency, balanceCents } of rows) sums[currency] = (sums[currency] ?? 0n) + balanceCents;
  return sums;
}
