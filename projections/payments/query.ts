import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf, select } from '../engine/page.js';
import { noPayer, type PayerRow, type PaymentRow, payers, payments } from './table.js';

/** Newest first. */
export const listPayments = (db: DataSource, request: PageRequest & { accountId: string }): Promise<Page<PaymentRow>> =>
  pageOf(db, payments, request, {
    order: ['position'],
    descending: ['position'],
    where: ['account_id = $1'],
    values: [request.accountId],
  });

export const paymentById = async (db: DataSource, paymentId: string): Promise<PaymentRow | undefined> =>
  (await paymentsById(db, [paymentId]))[0];

export const paymentsById = (db: DataSource, paymentIds: readonly string[]): Promise<PaymentRow[]> =>
  select(db, payments, 'WHERE payment_id = ANY($1)', [paymentIds]);

/** Whoever never had to do with the provider is on the free plan. */
export const payerById = async (db: DataSource, accountId: string): Promise<PayerRow> =>
  (await select(db, payers, 'WHERE account_id = $1', [accountId]))[0] ?? noPayer(accountId);
