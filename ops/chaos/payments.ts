import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { argv, exit, kill, pid } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripeProvider } from '../../services/adapters/stripe.js';
import { systemClock as clock, isAgonError, newMeta, Secret, SYSTEM } from '../../services/kernel/index.js';
import {
  AskWithdrawal,
  CancelWithdrawal,
  type PaymentProvider,
  RequestCheckout,
  RequestPayoutAccount,
  RequestRefund,
  takeWebhook,
} from '../../services/payments/index.js';
import { followPayments } from '../../services/payments/part.js';
import { openWriteSide } from '../harness/write-side.js';
import { tell } from './children.js';
import { type KillPoint, ordersOf, type PaymentsLine } from './payout.js';

// Started by the chaos run: a write side with its log, policies, calls to the stand-in and the server for its webhooks.
// It ends itself at the point that it is given, as a power cut would.
const [folder = '', seed = '', stripeUrl = '', secretKey = '', webhookSecret = '', ...rest] = argv.slice(3);
const [point = '', nth = '0', storeUrl = ''] = rest;
const say: (line: PaymentsLine) => void = tell;

let passed = 0;
const dieAt = (here: KillPoint) => {
  if (here !== point) return;
  passed += 1;
  if (passed === Number(nth)) kill(pid, 'SIGKILL');
};

const killing: Parameters<typeof openWriteSide>[1] = async (command, carryOut) => {
  const handled = await carryOut();
  if (command.type === 'RecordTransfer') dieAt('payout:recorded');
  if (command.type === 'CancelWithdrawal') dieAt('payout:stopped');
  if (command.type === 'RecordRefund') dieAt('refund:recorded');
  return handled;
};
const { store, engines, load, execute, settled, close } = await openWriteSide(folder, killing, storeUrl);
const stripe = stripeProvider({
  secretKey: new Secret(secretKey),
  webhookSecret: new Secret(webhookSecret),
  url: stripeUrl,
  clock,
  returnUrl: () => 'http://127.0.0.1/back',
});
const provider: PaymentProvider = {
  ...stripe,
  // The stand-in answers at once or not at all; what is left are the waits between the tries.
  callMsMax: 4_000,
  createTransfer: async (order) => {
    dieAt('payout:asked');
    const paid = await stripe.createTransfer(order);
    dieAt('payout:called');
    return paid;
  },
  createRefund: async (order) => {
    dieAt('refund:asked');
    const made = await stripe.createRefund(order);
    dieAt('refund:called');
    return made;
  },
};

const onRetry = () => {};
const outgoing = await followPayments({ engines, clock, onRetry }, { load, provider, execute });
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  dieAt('webhook:heard');
  const signature = `${request.headers['stripe-signature']}`;
  const status = await takeWebhook({ provider, clock, execute }, Buffer.concat(chunks), signature).then(
    () => 200,
    () => 500,
  );
  dieAt('webhook:recorded');
  response.writeHead(status).end();
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
say({ kind: 'open', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });

process.once('SIGTERM', async () => {
  server.closeAllConnections();
  server.close();
  await settled(outgoing);
  await outgoing.stop();
  await close();
  exit(0);
});

const { payments, withdrawals, refunds, cancelled, accounts } = ordersOf(Number(seed));
const meta = (id: string) => newMeta(SYSTEM, { id: `${id}:asked`, clock });
for (const accountId of accounts) await execute(new RequestPayoutAccount({ accountId }, meta(accountId)));
for (const data of payments) await execute(new RequestCheckout(data, meta(data.paymentId)));
for (const data of withdrawals) {
  await ask(data);
  for (const each of cancelled) if (each.withdrawalId === data.withdrawalId) await cancel(each);
}
// By now every payment is there.
for (const data of refunds) await execute(new RequestRefund(data, meta(data.requestId)));
for (;;) {
  const events = await store.readAll({ limit: 10_000 });
  const over = events.filter(({ type }) => /^(Withdrawal(Paid|Failed|Refused)|RefundMade)$/.test(type)).length;
  if (over >= withdrawals.length + refunds.length) break;
  await sleep(20);
}
say({ kind: 'paid' });

/** Money can be withdrawn once it is there, by an account that can receive it. */
async function ask(data: (typeof withdrawals)[number]): Promise<void> {
  const needed = payments.filter(({ accountId }) => accountId === data.accountId).length;
  for (;;) {
    const wallet = await store.readStream(`wallet-${data.accountId}`);
    const there = wallet.filter(({ type }) => type === 'FundsDeposited').length >= needed;
    try {
      if (there) return void (await execute(new AskWithdrawal(data, meta(data.withdrawalId))));
    } catch (error) {
      if (!isAgonError(error, 'PAYMENTS.NO_PAYOUT_ACCOUNT') && !isAgonError(error, 'PAYMENTS.DISPUTED')) throw error;
    }
    await sleep(10);
  }
}

async function cancel({ afterMs, ...data }: (typeof cancelled)[number]): Promise<void> {
  await sleep(afterMs);
  await execute(new CancelWithdrawal(data, newMeta(SYSTEM, { id: `${data.withdrawalId}:cancelled`, clock }))).catch(
    (error: unknown) => {
      if (!isAgonError(error, 'PAYMENTS.NOT_CANCELLABLE')) throw error;
    },
  );
}
