import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { ledgerSums } from '../../projections/balances/query.js';
import { balances } from '../../projections/balances/table.js';
import { balancesView } from '../../projections/balances/view.js';
import { type RecordedEvent, seededIds } from '../../services/kernel/index.js';
import type { PaymentEvent } from '../../services/payments/index.js';
import { compiled } from '../../services/runtime/package.js';
import type { WalletEvent } from '../../services/wallet/index.js';
import { withFolder } from '../bench/folders.js';
import { readView, withLog } from '../cli/offline.js';
import { type Sandbox, startStripeSandbox } from '../stripe-sandbox/server.js';
import { type KillPoint, killPoints, ordersOf, type TillLine } from './orders.js';
import { Started } from './processes.js';
import type { Phase } from './settle.js';
import { between, type Random, seededRandom } from './workload.js';

export interface PayoutResult {
  readonly seed: number;
  readonly killedIn: readonly Phase[];
  readonly payments: number;
  readonly transfers: number;
  readonly failures: readonly string[];
}

const STUCK_MS = 60_000;

/**
 * Deposits, refunds and withdrawals against a stand-in that repeats, reorders and loses, by a process that is killed
 * around its calls and records. Afterwards every payment was credited once and every withdrawal paid by one transfer.
 */
export function runPayoutSeed(seed: number): Promise<PayoutResult> {
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
    try {
      const plan = Array.from({ length: between(random, 1, 4) }, () => killAt(random));
      const killedIn: Phase[] = [];
      const stuck = (what: string) => ({ seed, killedIn, payments: 0, transfers: 0, failures: [what] });
      const killed = (kill: readonly string[] = []) => killedIn.push((kill[0]?.split(':')[0] ?? 'payout') as Phase);
      for (const kill of [...plan, undefined]) {
        const till = startTill([folder, `${seed}`, stripe.url, secretKey, webhookSecret, ...(kill ?? [])], (url) => {
          webhookUrl = url;
        });
        const how = await Promise.race([till.started.ended, till.paid, sleep(STUCK_MS, 'stuck')]);
        if (how === 'SIGKILL') {
          killed(kill);
          continue;
        }
        if (how !== 'paid') {
          await till.started.end('SIGKILL');
          return stuck(`It ended with ${how}: ${till.started.errors}`);
        }
        people.abort();
        await busy;
        // Its point may come only now, with a webhook that is told once more.
        await Promise.race([stripe.courier.idle(), till.started.ended]);
        const end = await Promise.race([till.started.end('SIGTERM'), sleep(STUCK_MS, 'stuck')]);
        if (end === 'exit 0') break;
        if (end !== 'SIGKILL') return stuck(`It stopped with ${end}: ${till.started.errors}`);
        killed(kill);
      }
      const events = await withLog(folder, (store) => store.readAll({ limit: 10_000 }));
      const failures = [...faultsOf(seed, events, stripe), ...(await ledgerFaults(folder, stripe))];
      const transfers = stripe.books.list('transfer').length;
      return { seed, killedIn, payments: ordersOf(seed).payments.length, transfers, failures };
    } finally {
      people.abort();
      await busy;
      await stripe.stop();
    }
  });
}

const killAt = (random: Random): [KillPoint, string] => {
  const point = killPoints[between(random, 0, killPoints.length - 1)] ?? 'payout:called';
  return [point, `${between(random, 1, point.startsWith('webhook') ? 8 : 3)}`];
};

function startTill(args: readonly string[], onUrl: (url: string) => void) {
  const file = compiled(import.meta.url, './till.js');
  const started = new Started(spawn(execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }));
  const paid = new Promise<'paid'>((resolve) => {
    const { stdout } = started.child;
    if (!stdout) return;
    createInterface(stdout).on('line', (text) => {
      const line = JSON.parse(text) as TillLine;
      if (line.kind === 'open') onUrl(line.url);
      else resolve('paid');
    });
  });
  return { started, paid };
}

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
  for (const { paymentId } of payments) {
    const credits = all.filter(({ type, data }) => type === 'FundsDeposited' && data.depositId === paymentId);
    const charges = stripe.books
      .list('checkout.session')
      .filter((each) => each.status === 'complete' && each.metadata?.agon_payment === paymentId);
    expect(`credits of payment ${paymentId}`, credits.length, 1);
    expect(`charges of payment ${paymentId}`, charges.length, 1);
  }
  for (const { withdrawalId, amountCents } of withdrawals) {
    const paid = all.filter(({ type, data }) => type === 'WithdrawalPaid' && data.withdrawalId === withdrawalId);
    const transfers = stripe.books.list('transfer').filter((each) => each.metadata?.agon_withdrawal === withdrawalId);
    const ends = all.filter(
      ({ type, data }) =>
        /^Withdrawal(Paid|Failed|Refused)$/.test(type) && 'withdrawalId' in data && data.withdrawalId === withdrawalId,
    );
    expect(`ends of withdrawal ${withdrawalId}`, ends.length, 1);
    expect(`transfers of withdrawal ${withdrawalId}`, transfers.length, paid.length);
    for (const { amount } of transfers)
      expect(`cents of withdrawal ${withdrawalId}`, Number(amount), Number(amountCents));
  }
  for (const { requestId } of refunds) {
    const made = stripe.books.list('refund').filter((each) => each.metadata?.agon_refund === requestId);
    const taken = all.filter(({ type, data }) => type === 'PaymentRefunded' && data.refundId === made[0]?.id);
    expect(`refunds of request ${requestId}`, made.length, 1);
    expect(`records of refund ${made[0]?.id}`, taken.length, 1);
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
async function ledgerFaults(folder: string, stripe: Sandbox): Promise<string[]> {
  const rows = await withLog(join(folder), async (store) => (await readView(store, balancesView)).rows(balances));
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
