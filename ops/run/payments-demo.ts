import { setTimeout as sleep } from 'node:timers/promises';
import { payerById, paymentById } from '../../projections/payments/query.js';
import type { PaymentRow } from '../../projections/payments/table.js';
import { AgonError, type CommandMeta, derivedId, invariant, newMeta, SYSTEM } from '../../services/kernel/index.js';
import {
  AskWithdrawal,
  OFFER_CURRENCY,
  type Order,
  packNamed,
  planNamed,
  RequestCheckout,
  RequestPayoutAccount,
} from '../../services/payments/index.js';
import type { Sandbox } from '../stripe-sandbox/server.js';
import type { Arena } from './arena.js';
import { ladderResult, playLadder } from './ladder.js';

const STUCK_MS = 60_000;
const BEAT_MS = 20;

/** What the house does with real money in a demo: who pays in how often, and what becomes of it. */
const PAYERS = ['bronze', 'silver', 'gold'] as const;
const DEPOSITS_EACH = 4;
/** Bronze loses most of what it paid in: what is taken back afterwards is with somebody else. */
const STAKED = { matches: 12, stake: { stakeCents: '5000', currency: OFFER_CURRENCY } };

export interface CashierResult {
  /** Played for what was paid in; those without enough left are void. */
  readonly matches: { readonly settled: number; readonly voided: number };
  readonly deposits: number;
  readonly refunds: number;
  readonly chargebacks: number;
  readonly withdrawals: number;
}

/**
 * Deposits, matches for what was paid in, a pack of credits, a plan, refunds, a chargeback and a withdrawal, all the way through the stand-in and its
 * webhooks. Ids come from the seed, so that a demo that is taken up again repeats nothing.
 */
export async function playPayments(arena: Arena, seed: string): Promise<CashierResult> {
  const { sandbox } = arena;
  invariant(sandbox, 'The demo of payments runs on the stand-in.');
  const deposit: Order = { kind: 'deposit', amountCents: '5000', currency: OFFER_CURRENCY, clearingS: 0 };
  const { creditCents, priceCents } = packNamed('small');
  const pack: Order = {
    kind: 'credits',
    packId: 'small',
    creditCents,
    amountCents: priceCents,
    currency: OFFER_CURRENCY,
  };
  const plan: Order = {
    kind: 'plan',
    planId: 'pro',
    amountCents: planNamed('pro').priceCents,
    currency: OFFER_CURRENCY,
  };
  for (const accountId of PAYERS) {
    for (let i = 0; i < DEPOSITS_EACH; i++) await pay(arena, sandbox, seed, `${accountId}-${i}`, accountId, deposit);
  }
  const staked = `${seed}/staked`;
  await playLadder(arena, { ...STAKED, seed: staked });
  const matches = await ladderResult(arena, staked, STAKED.matches);
  await pay(arena, sandbox, seed, 'credits', 'gold', pack);
  await pay(arena, sandbox, seed, 'plan', 'silver', plan);
  await refund(arena, sandbox, seed, 'silver-0', 1500);
  await refund(arena, sandbox, seed, 'bronze-0', 5000);
  await chargeBack(arena, sandbox, seed, 'bronze-1');
  await withdraw(arena, sandbox, seed, 'gold', '2000');
  await sandbox.dispatcher.idle();
  await arena.settled();
  return { matches, deposits: PAYERS.length * DEPOSITS_EACH, refunds: 2, chargebacks: 1, withdrawals: 1 };
}

const idOf = (seed: string, name: string) => derivedId('cashier', seed, name);
const metaOf = (arena: Arena, id: string): CommandMeta =>
  newMeta(SYSTEM, { id: derivedId(id, 'ask'), clock: arena.clock });

async function pay(arena: Arena, sandbox: Sandbox, seed: string, name: string, accountId: string, order: Order) {
  const paymentId = idOf(seed, name);
  await arena.execute(new RequestCheckout({ accountId, paymentId, order }, metaOf(arena, paymentId)));
  const opened = await until(arena, paymentId, (row) => row.status !== 'requested');
  if (opened.status === 'open') sandbox.happen.pay(opened.detail);
  await until(arena, paymentId, (row) => row.status !== 'open');
}

const received = async (arena: Arena, seed: string, name: string): Promise<string | undefined> => {
  const row = await paymentById(arena.database, idOf(seed, name));
  return row?.status === 'received' ? row.detail : undefined;
};

async function refund(arena: Arena, sandbox: Sandbox, seed: string, name: string, amount: number): Promise<void> {
  const charge = await received(arena, seed, name);
  if (charge === undefined) return;
  sandbox.happen.refund(charge, amount, {});
  await until(arena, idOf(seed, name), (row) => row.returnedCents === BigInt(amount));
}

async function chargeBack(arena: Arena, sandbox: Sandbox, seed: string, name: string): Promise<void> {
  const charge = await received(arena, seed, name);
  if (charge === undefined) return;
  const { id } = sandbox.happen.dispute(charge);
  await until(arena, idOf(seed, name), (row) => row.status === 'disputed');
  sandbox.happen.closeDispute(id, 'lost');
  await until(arena, idOf(seed, name), (row) => row.status === 'charged_back');
}

async function withdraw(arena: Arena, sandbox: Sandbox, seed: string, accountId: string, amountCents: string) {
  await arena.execute(new RequestPayoutAccount({ accountId }, metaOf(arena, idOf(seed, 'payout-account'))));
  const payer = () => payerById(arena.database, accountId);
  const { payoutAccountId, payoutsEnabled } = await poll(payer, (row) => row.payoutAccountId !== null);
  if (payoutAccountId !== null && !payoutsEnabled) sandbox.happen.onboard(payoutAccountId);
  await poll(payer, (row) => row.payoutsEnabled);
  const withdrawalId = idOf(seed, 'withdrawal');
  const data = { accountId, withdrawalId, amountCents, currency: OFFER_CURRENCY } as const;
  await arena.execute(new AskWithdrawal(data, metaOf(arena, withdrawalId)));
  await until(arena, withdrawalId, (row) => !['asked', 'requested'].includes(row.status));
}

const until = (arena: Arena, paymentId: string, good: (row: PaymentRow) => boolean): Promise<PaymentRow> =>
  poll(
    () => paymentById(arena.database, paymentId),
    (row): row is PaymentRow => row !== undefined && good(row),
  ) as Promise<PaymentRow>;

async function poll<T>(look: () => Promise<T>, good: (found: T) => boolean): Promise<T> {
  for (let waitedMs = 0; waitedMs < STUCK_MS; waitedMs += BEAT_MS) {
    const found = await look();
    if (good(found)) return found;
    await sleep(BEAT_MS);
  }
  throw new AgonError(
    'PAYMENTS.STUCK',
    `A payment of the demo has not moved for ${STUCK_MS / 1000} s: ${JSON.stringify(await look(), (_key, value) => (typeof value === 'bigint' ? `${value}` : value))}.`,
  );
}
