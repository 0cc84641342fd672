import { derivedId } from '../../services/kernel/index.js';
import type { Order } from '../../services/payments/index.js';
import { between, seededRandom } from './workload.js';

/** Where a process can be ended: on either side of everything that has to happen once. */
export const killPoints = [
  'webhook:heard',
  'webhook:recorded',
  'payout:asked',
  'payout:called',
  'payout:recorded',
  'payout:stopped',
  'refund:asked',
  'refund:called',
  'refund:recorded',
] as const;
export type KillPoint = (typeof killPoints)[number];

/** What the process says, a line each. */
export type TillLine = { readonly kind: 'open'; readonly url: string } | { readonly kind: 'paid' };

const ACCOUNTS = ['ada', 'bob'] as const;
const DEPOSITS = 3;
const WITHDRAWALS = 2;

/** What is paid in and out under a seed. Some want more than they have, and are refused. */
export function ordersOf(seed: number) {
  const random = seededRandom('payout', seed);
  const id = (...name: (string | number)[]) => derivedId('payout', seed, ...name);
  const currency = 'USD' as const;
  const payments = ACCOUNTS.flatMap((accountId) =>
    Array.from({ length: DEPOSITS }, (_, i) => {
      const amountCents = `${between(random, 100, 9_000)}`;
      const order: Order = { kind: 'deposit', amountCents, currency, clearingS: 0 };
      return { accountId, paymentId: id(accountId, 'pay', i), order };
    }),
  );
  const withdrawals = ACCOUNTS.flatMap((accountId) =>
    Array.from({ length: WITHDRAWALS }, (_, i) => {
      const amountCents = `${between(random, 100, 6_000)}`;
      return { accountId, withdrawalId: id(accountId, 'out', i), amountCents, currency };
    }),
  );
  // The house gives back a part of the second payment of each.
  const refunds = ACCOUNTS.map((accountId, i) => {
    const paymentId = payments[i * DEPOSITS + 1]?.paymentId ?? '';
    return { accountId, paymentId, requestId: id(accountId, 'refund'), amountCents: '70', reason: 'chaos' };
  });
  // One is called off right after it was asked for: nobody knows whether that is too late.
  const cancelled = withdrawals.slice(0, 1).map(({ accountId, withdrawalId }) => ({
    accountId,
    withdrawalId,
    reason: 'chaos',
    afterMs: between(random, 0, 60),
  }));
  return { accounts: ACCOUNTS, payments, withdrawals, refunds, cancelled };
}
