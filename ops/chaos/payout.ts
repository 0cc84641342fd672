import { setTimeout as sleep } from 'node:timers/promises';
import { ledgerSums } from '../../projections/balances/query.js';
import { balances } from '../../projections/balances/table.js';
import { balancesView } from '../../projections/balances/view.js';
import { derivedId, type EventStore, type RecordedEvent, seededIds } from '../../services/kernel/index.js';
import type { Order, PaymentEvent } from '../../services/payments/index.js';
import type { WalletEvent } from '../../services/wallet/index.js';
import { withFolder } from '../harness/folders.js';
import { type Sandbox, startStripeSandbox } from '../stripe-sandbox/server.js';
import { startChild } from './children.js';
import { verifiedLog, verifiedLogOf } from './outcomes.js';
import { rebuiltFrom } from './rows.js';
import type { Run } from './run.js';
import type { Phase } from './settle.js';
import { between, type Random, seededRandom } from './workload.js';

/** Where a process can be ended: on either side of everything that has to happen once. */
const killPoints = [
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
export type PaymentsLine = { readonly kind: 'open'; readonly url: string } | { readonly kind: 'paid' };

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

export const payout: Run = {
  name: 'payout',
  about: 'a process killed around webhooks, transfers and refunds, with a Stripe that repeats, reorders and loses',
  holds: 'one credit a payment, one transfer a withdrawal, and money sums to zero',
  start: (seeds) => seeds((seed) => runPayments(seed)),
};

const STUCK_MS = 60_000;

/**
 * Deposits, refunds and withdrawals against a stand-in that repeats, reorders and loses, by a process that is killed
 * around its calls and records. Afterwards every payment was credited once and every withdrawal paid by one transfer.
 */
export function runPayments(seed: number, server?: { readonly url: string; open(): Promise<EventStore> }) {
  return withFolder(async (folder) => {
    const random = seededRandom('kills', seed);
    let webhookUrl = 'http://127.0.0.1:9';
    // Of its own: a port that a killed process has left may be the next one's, which must refuse what is not for it.
    const [secretKey, webhookSecret] = ['sk_test_chaos', `whsec_chaos_${seed}`];
    const stripe = await startStripeSandbox({
      secretKey,
      webhookSecret,
      webhookUrl: () => webhookUrl,
      ids: seededIds(`stripe-${seed}`),
      mischief: { seed: `${seed}`, duplicates: 0.3, delayMsMax: 60, lostAnswers: 0.2, retryMsMax: 200 },
      lostCalls: 0.2,
    });
    const people = new AbortController();
    const busy = playPeople(stripe, seed, people.signal);
    const endPeople = () => {
      people.abort();
      return busy;
    };
    const killed: Phase[] = [];
    /** How it ended, if not by its kill. */
    const live = async (kill: readonly string[]): Promise<string> => {
      let hearPaid = (_: 'paid') => {};
      const paid = new Promise<'paid'>((resolve) => {
        hearPaid = resolve;
      });
      const [point = '', nth = '0'] = kill;
      const args = [folder, `${seed}`, stripe.url, secretKey, webhookSecret, point, nth, server?.url ?? ''];
      const child = startChild<PaymentsLine>('payments', args, (line) => {
        if (line.kind === 'open') webhookUrl = line.url;
        else hearPaid('paid');
      });
      const within = (what: Promise<string>) => Promise.race([what, sleep(STUCK_MS, 'stuck')]);
      let how = await within(Promise.race([child.ended, paid]));
      if (how === 'paid') {
        await endPeople();
        // Its point may come only now, with a webhook that is told once more.
        await Promise.race([stripe.dispatcher.idle(), child.ended]);
        how = await within(child.end('SIGTERM'));
      }
      await child.end('SIGKILL');
      return how === 'exit 0' || how === 'SIGKILL' ? how : `${how}: ${child.errors}`;
    };
    try {
      const plan = Array.from({ length: between(random, 1, 4) }, () => killAt(random));
      let how = '';
      for (const kill of [...plan, []]) {
        how = await live(kill);
        if (how !== 'SIGKILL') break;
        killed.push((kill[0]?.split(':')[0] ?? 'payout') as Phase);
      }
      const kills = killed.length;
      if (how !== 'exit 0') return { kills, killed, failures: [`It ended with ${how}`] };
      const failures: string[] = [];
      const log = server ? await verifiedLogOf(await server.open(), failures) : await verifiedLog(folder, failures);
      failures.push(...faultsOf(seed, log, stripe), ...(await ledgerFaults(log, stripe)));
      const transfers = stripe.books.list('transfer').length;
      return { kills, killed, payments: ordersOf(seed).payments.length, transfers, failures };
    } finally {
      await endPeople();
      await stripe.stop();
    }
  });
}

const killAt = (random: Random): string[] => {
  const point = killPoints[between(random, 0, killPoints.length - 1)] ?? 'payout:called';
  return [point, `${between(random, 1, point.startsWith('webhook') ? 8 : 3)}`];
};

/**
 * Pays what can be paid, completes what can be completed; one payment is refunded in part, one disputed and won, and
 * a part of every other transfer comes back.
 */
async function playPeople(stripe: Sandbox, seed: number, signal: AbortSignal): Promise<void> {
  const { payments } = ordersOf(seed);
  const [refunded, disputed] = [payments[0]?.paymentId, payments.at(-1)?.paymentId];
  while (!signal.aborted) {
    for (const account of stripe.books.list('account')) if (!account.payouts_enabled) stripe.happen.onboard(account.id);
    for (const session of stripe.books.list('checkout.session')) {
      if (session.status !== 'open') continue;
      const { payment_intent: intent, metadata } = stripe.happen.pay(session.id);
      if (metadata?.agon_payment === refunded) stripe.happen.refund(String(intent), 50, {});
      if (metadata?.agon_payment === disputed)
        stripe.happen.closeDispute(stripe.happen.dispute(String(intent)).id, 'won');
    }
    for (const [i, transfer] of stripe.books.list('transfer').reverse().entries()) {
      if (i % 2 === 0 && transfer.amount_reversed === 0) stripe.happen.reverse(transfer.id, 40);
    }
    await sleep(10);
  }
}

function faultsOf(seed: number, events: readonly RecordedEvent[], stripe: Sandbox): string[] {
  const { payments, withdrawals, refunds } = ordersOf(seed);
  const all = events as unknown as readonly (PaymentEvent | WalletEvent)[];
  const faults: string[] = [];
  const expect = (what: string, found: number, wanted: number) => {
    if (found !== wanted) faults.push(`${what}: ${found}, not ${wanted}`);
  };
  const count = (types: RegExp, about: object) => {
    const [[name = '', id]] = Object.entries(about) as [[string, unknown]];
    return events.filter(({ type, data }) => types.test(type) && (data as Record<string, unknown>)[name] === id).length;
  };
  const listed = (object: string, name: string, id: string) =>
    stripe.books.list(object).filter(({ metadata }) => metadata?.[name] === id);
  for (const { paymentId } of payments) {
    const sessions = listed('checkout.session', 'agon_payment', paymentId);
    expect(`credits of payment ${paymentId}`, count(/^FundsDeposited$/, { depositId: paymentId }), 1);
    expect(`charges of payment ${paymentId}`, sessions.filter(({ status }) => status === 'complete').length, 1);
  }
  for (const { withdrawalId, amountCents } of withdrawals) {
    const transfers = listed('transfer', 'agon_withdrawal', withdrawalId);
    expect(`ends of withdrawal ${withdrawalId}`, count(/^Withdrawal(Paid|Failed|Refused)$/, { withdrawalId }), 1);
    expect(`transfers of withdrawal ${withdrawalId}`, transfers.length, count(/^WithdrawalPaid$/, { withdrawalId }));
    for (const { amount } of transfers)
      expect(`cents of withdrawal ${withdrawalId}`, Number(amount), Number(amountCents));
  }
  for (const { requestId } of refunds) {
    const made = listed('refund', 'agon_refund', requestId);
    expect(`refunds of request ${requestId}`, made.length, 1);
    expect(`records of refund ${made[0]?.id}`, count(/^PaymentRefunded$/, { refundId: made[0]?.id }), 1);
  }
  for (const { id, amount_reversed: back } of stripe.books.list('transfer')) {
    const again = all.filter(({ type, data }) => type === 'FundsDeposited' && data.depositId.startsWith(`${id}:`));
    expect(`cents that came back of ${id}`, again.length * 40, Number(back));
  }
  const held = all.filter(({ type, data }) => type === 'FundsHeld' && data.purpose.kind === 'withdrawal').length;
  const done = all.filter(({ type }) => type === 'HoldPosted' || type === 'HoldVoided').length;
  expect('ends of holds', done, held);
  return faults;
}

/** The ledger sums to zero, and what it says is at Stripe is what Stripe has. */
async function ledgerFaults(log: readonly RecordedEvent[], stripe: Sandbox): Promise<string[]> {
  const rows = await (await rebuiltFrom(log, [balancesView])).rows(balances);
  const faults = Object.entries(ledgerSums(rows))
    .filter(([, sum]) => sum !== 0n)
    .map(([currency, sum]) => `The ledger sums to ${sum} ${currency}.`);
  const clearing = rows.find(({ account, currency }) => account === 'stripe-clearing' && currency === 'USD');
  const atStripe = BigInt(stripe.books.balance('usd'));
  if (-(clearing?.balanceCents ?? 0n) !== atStripe) {
    faults.push(`Stripe has ${atStripe}, and the ledger says ${-(clearing?.balanceCents ?? 0n)}.`);
  }
  return faults;
}
