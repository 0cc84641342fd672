import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startStripeSandbox } from '../../ops/stripe-sandbox/server.js';
import { MemoryEventStore } from '../adapters/store/memory.js';
import { stripeProvider } from '../adapters/stripe.js';
import {
  AgonError,
  type Command,
  createHandle,
  derivedId,
  manualClock,
  newMeta,
  type RecordedEvent,
  Secret,
  SYSTEM,
} from '../kernel/index.js';
import { ApproveWithdrawal } from './commands.js';
import {
  AskWithdrawal,
  carryOut,
  type PaymentProvider,
  payments,
  RequestCheckout,
  RequestRefund,
  TakeNotice,
} from './index.js';

const DAY_MS = 24 * 3600 * 1000;
const clock = manualClock('2026-03-01T12:00:00.000Z');
const store = new MemoryEventStore();
const handle = createHandle({ store });
const meta = () => newMeta(SYSTEM, { clock });
const send = (command: Command) => handle(payments, command);
let stripe: Sandbox;
let provider: PaymentProvider;

beforeAll(async () => {
  const [secretKey, webhookSecret] = ['sk_test_1', 'whsec_1'];
  stripe = await startStripeSandbox({ secretKey, webhookSecret, clock, webhookUrl: () => 'http://127.0.0.1:9' });
  provider = stripeProvider({
    ...{ secretKey: new Secret(secretKey), webhookSecret: new Secret(webhookSecret), url: stripe.url, clock },
    returnUrl: () => 'http://127.0.0.1/back',
  });
  stripe.books.move('usd', 100_000);
});
afterAll(() => stripe?.stop());

type Outgoing = Parameters<typeof carryOut>[0];
const last = async (accountId: string) =>
  (await store.readStream(`payments-${accountId}`)).at(-1) as RecordedEvent as unknown as Outgoing;

/** A withdrawal whose money is held and whose transfer may be made. */
async function requested(accountId: string): Promise<{ event: Outgoing; withdrawalId: string }> {
  const { payoutAccountId } = await provider.openPayoutAccount(accountId, `key-${accountId}`);
  stripe.happen.onboard(payoutAccountId);
  const notice = { kind: 'payout-account', accountId, payoutAccountId, enabled: true, asOfS: 1 } as const;
  await send(new TakeNotice({ accountId, notice }, meta()));
  const withdrawalId = derivedId('withdrawal', accountId);
  await send(new AskWithdrawal({ accountId, withdrawalId, amountCents: '2500', currency: 'USD' }, meta()));
  await send(new ApproveWithdrawal({ accountId, withdrawalId }, meta()));
  return { event: await last(accountId), withdrawalId };
}
const transfersOf = (withdrawalId: string) =>
  stripe.books.list('transfer').filter(({ metadata }) => metadata?.agon_withdrawal === withdrawalId);

describe('a transfer', () => {
  it('is looked up, not made again, when its record was lost and its key forgotten', async () => {
    const { event, withdrawalId } = await requested('ada');
    const first = await carryOut(event, { provider, store, clock });
    // The process dies here. Two days later, Stripe knows the transfer and not the key.
    clock.advance(2 * DAY_MS);
    const second = await carryOut(event, { provider, store, clock });
    expect(second?.data).toEqual(first?.data);
    expect(transfersOf(withdrawalId)).toHaveLength(1);
    await send(second as Command);
    expect(await carryOut(event, { provider, store, clock })).toBeUndefined();
  });

  it('is not given up because a look-up failed', async () => {
    const { event } = await requested('bob');
    const blind: PaymentProvider = {
      ...provider,
      findTransfer: () => Promise.reject(new AgonError('PAYMENTS.PROVIDER_REFUSED', 'no such parameter')),
    };
    await expect(carryOut(event, { provider: blind, store, clock })).rejects.toMatchObject({
      code: 'PAYMENTS.PROVIDER_REFUSED',
    });
  });

  it('fails when Stripe says that it was not made', async () => {
    const { event, withdrawalId } = await requested('cyd');
    stripe.books.move('usd', -stripe.books.balance('usd'));
    const command = await carryOut(event, { provider, store, clock });
    expect(command).toMatchObject({ type: 'FailWithdrawal', data: { withdrawalId } });
    expect(transfersOf(withdrawalId)).toHaveLength(0);
  });
});

describe('a refund', () => {
  it('is looked up, not made again, when its record was lost and its key forgotten', async () => {
    const accountId = 'eve';
    const paymentId = derivedId('payment', accountId);
    const order = { kind: 'deposit', amountCents: '5000', currency: 'USD', clearingS: 0 } as const;
    await send(new RequestCheckout({ accountId, paymentId, order }, meta()));
    await send((await carryOut(await last(accountId), { provider, store, clock })) as Command);
    const session = stripe.happen.pay(stripe.books.list('checkout.session')[0]?.id ?? '');
    const chargeId = String(session.payment_intent);
    const notice = { kind: 'paid', accountId, paymentId, amountCents: '5000', currency: 'USD', chargeId } as const;
    await send(new TakeNotice({ accountId, notice }, meta()));
    const requestId = derivedId('refund', accountId);
    await send(new RequestRefund({ accountId, paymentId, requestId, amountCents: '2000', reason: 'late' }, meta()));
    const event = await last(accountId);
    const first = await carryOut(event, { provider, store, clock });
    clock.advance(2 * DAY_MS);
    const second = await carryOut(event, { provider, store, clock });
    expect(second).toMatchObject({ type: 'RecordRefund', data: first?.data });
    expect(stripe.books.list('refund')).toMatchObject([{ amount: 2000, metadata: { agon_refund: requestId } }]);
    await send(second as Command);
    expect(await carryOut(event, { provider, store, clock })).toBeUndefined();
    // Somebody was quicker in the dashboard: what Stripe refuses for certain is refused.
    const late = { accountId, paymentId, requestId: derivedId('late'), reason: 'late' };
    await send(new RequestRefund(late, meta()));
    stripe.happen.refund(chargeId, 3000, {});
    expect(await carryOut(await last(accountId), { provider, store, clock })).toMatchObject({ type: 'RefuseRefund' });
  });
});

describe('a checkout', () => {
  it('is opened once, and not again when it is there', async () => {
    const paymentId = derivedId('payment');
    const order = { kind: 'deposit', amountCents: '5000', currency: 'USD', clearingS: 0 } as const;
    await send(new RequestCheckout({ accountId: 'dee', paymentId, order }, meta()));
    const event = await last('dee');
    const opened = await carryOut(event, { provider, store, clock });
    expect(opened).toMatchObject({ type: 'RecordCheckout', data: { paymentId } });
    await send(opened as Command);
    expect(await carryOut(event, { provider, store, clock })).toBeUndefined();
    const sessions = stripe.books.list('checkout.session');
    expect(sessions.filter(({ metadata }) => metadata?.agon_account === 'dee')).toHaveLength(1);
  });
});
