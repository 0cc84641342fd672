import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { argv, exit, kill, pid, stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { LmdbCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { stripeProvider } from '../../services/adapters/stripe.js';
import { contexts } from '../../services/index.js';
import {
  type Command,
  systemClock as clock,
  createHandle,
  Folds,
  invariant,
  isAgonError,
  newMeta,
  Secret,
  SYSTEM,
} from '../../services/kernel/index.js';
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
import { folderLayout } from '../../services/runtime/data-folder.js';
import { runPolicy } from '../../services/runtime/policies.js';
import { type KillPoint, ordersOf, type TillLine } from './orders.js';

// Started by the chaos run: a write side with its log, policies, calls to the stand-in and the door for its webhooks.
// It ends itself at the point that it is given, as a power cut would.
const [folder = '', seed = '', stripeUrl = '', secretKey = '', webhookSecret = '', point = '', nth = '0'] =
  argv.slice(2);
const tell = (line: TillLine) => stdout.write(`${JSON.stringify(line)}\n`);

let passed = 0;
const dieAt = (here: KillPoint) => {
  if (here !== point) return;
  passed += 1;
  if (passed === Number(nth)) kill(pid, 'SIGKILL');
};

const paths = folderLayout(folder);
const store = await LmdbEventStore.open(paths.log);
const checkpoints = new LmdbCheckpoints(paths.bus);
const folds = new Folds({ store });
const { load } = folds;
const handle = createHandle({ store, folds });
const execute = async (command: Command) => {
  const context = contexts.find(({ commands }) => commands.some(({ spec }) => spec.type === command.type));
  invariant(context, `${command.type} belongs to a context.`);
  const handled = await handle(context, command);
  if (command.type === 'RecordTransfer') dieAt('payout:recorded');
  if (command.type === 'CancelWithdrawal') dieAt('payout:stopped');
  if (command.type === 'RecordRefund') dieAt('refund:recorded');
  return handled;
};
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

const bus = new EmbeddedBus(store, checkpoints);
const policies = contexts.flatMap((context) => context.policies ?? []);
const consumers = await Promise.all(policies.map((policy) => runPolicy(bus, policy, execute)));
const onRetry = () => {};
const outgoing = await followPayments({ store, load, checkpoints, provider, clock, execute, onRetry });
const door = createServer(async (request, response) => {
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
await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
tell({ kind: 'open', url: `http://127.0.0.1:${(door.address() as AddressInfo).port}` });

process.once('SIGTERM', async () => {
  door.closeAllConnections();
  door.close();
  await settled();
  await outgoing.stop();
  await bus.close();
  await checkpoints.close();
  await store.close();
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
tell({ kind: 'paid' });

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

async function settled(): Promise<void> {
  for (let last = -1; last !== (await store.lastPosition()); ) {
    last = await store.lastPosition();
    while ([...consumers, outgoing].some((consumer) => consumer.position() < last)) await sleep(1);
  }
}
