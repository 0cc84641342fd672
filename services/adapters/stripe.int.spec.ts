import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startStripeMock, whyNoStripeMock } from '../../ops/engines/stripe-mock.js';
import { signatureOf } from '../../ops/stripe-sandbox/deliver.js';
import { type Sandbox, startStripeSandbox } from '../../ops/stripe-sandbox/server.js';
import { derivedId, manualClock, Secret, seededIds } from '../kernel/index.js';
import type { Order, PaymentProvider } from '../payments/index.js';
import { stripeProvider } from './stripe.js';

const SECRET_KEY = 'sk_test_123';
const clock = manualClock('2026-03-01T12:00:00.000Z');
const providerAt = (url: string, secretKey = SECRET_KEY, port = 4600) =>
  stripeProvider({
    secretKey: new Secret(secretKey),
    webhookSecret: new Secret('whsec_0,whsec_1'),
    url,
    clock,
    returnUrl: () => `http://127.0.0.1:${port}/v1/stripe/return`,
  });

const money = { amountCents: '5000', currency: 'USD' } as const;
const orders: readonly Order[] = [
  { kind: 'deposit', ...money, clearingS: 0 },
  { kind: 'credits', ...money, packId: 'small', creditCents: '100000' },
  { kind: 'plan', ...money, planId: 'pro' },
];
const withdrawalId = derivedId('withdrawal');
const transfer = (payoutAccountId: string, amountCents = '2500') => ({
  accountId: 'ada',
  withdrawalId,
  amountCents,
  currency: money.currency,
  payoutAccountId,
  idempotencyKey: `agon-withdrawal-${withdrawalId}`,
});
const checkout = (order: Order) => ({ accountId: 'ada', paymentId: derivedId('payment', order.kind), order });

const whyNot = whyNoStripeMock();
describe.skipIf(whyNot)(`our calls, to stripe-mock${whyNot ? ` (${whyNot})` : ''}`, () => {
  let mock: Awaited<ReturnType<typeof startStripeMock>>;
  let provider: PaymentProvider;
  beforeAll(async () => {
    mock = await startStripeMock();
    provider = providerAt(mock.url);
  });
  afterAll(() => mock?.stop());

  it.each(orders)('open a checkout for $kind in the form that Stripe wants', async (order) => {
    expect((await provider.openCheckout(checkout(order))).sessionId).toMatch(/^cs_/);
  });

  it('open payout accounts and lead to their onboarding', async () => {
    expect((await provider.openPayoutAccount('ada', 'key')).payoutAccountId).toMatch(/^acct_/);
    expect(await provider.onboardingUrl('acct_1')).toMatch(/^https:/);
  });

  it('transfer, look transfers up, and end plans', async () => {
    expect((await provider.createTransfer(transfer('acct_1'))).transferId).toMatch(/^tr_/);
    // Whatever it lists is not ours: the look-up goes by our own mark.
    expect(await provider.findTransfer(withdrawalId)).toBeUndefined();
    await provider.endPlan('sub_1');
  });

  it('refund, and look refunds up', async () => {
    const ids = { accountId: 'ada', paymentId: derivedId('payment'), requestId: derivedId('refund') };
    const order = { ...ids, chargeId: 'pi_1', amountCents: '100', idempotencyKey: 'refund' };
    expect((await provider.createRefund(order)).refundId).toMatch(/^re_/);
    expect(await provider.findRefund(order)).toBeUndefined();
  });

  it('ask whose invoice a payment was for', async () => {
    const clockS = Date.parse(clock()) / 1000;
    const refund = { id: 're_1', amount: 1, currency: 'usd', status: 'succeeded', payment_intent: 'pi_1' };
    const body = JSON.stringify({ id: 'evt_1', type: 'refund.created', created: clockS, data: { object: refund } });
    const signature = signatureOf(body, 'whsec_1', clockS);
    // Nobody we know: what matters is that the look-up is understood.
    expect(await provider.readWebhook(Buffer.from(body), signature)).toEqual({ eventId: 'evt_1', notice: undefined });
  });

  it('would be refused if they were not well formed', async () => {
    const order = { ...transfer('acct_1'), amountCents: 'many' };
    await expect(provider.createTransfer(order)).rejects.toMatchObject({ code: 'PAYMENTS.PROVIDER_REFUSED' });
  });
});

describe('our calls, to the stand-in', () => {
  let sandbox: Sandbox;
  let provider: PaymentProvider;
  beforeAll(async () => {
    sandbox = await startStripeSandbox({
      secretKey: SECRET_KEY,
      webhookSecret: 'whsec_1',
      webhookUrl: () => 'http://127.0.0.1:9',
      clock,
      ids: seededIds('adapter'),
    });
    provider = providerAt(sandbox.url);
  });
  afterAll(() => sandbox?.stop());

  it('give one page for one payment, however often it is asked for', async () => {
    const [order] = orders as [Order];
    const first = await provider.openCheckout(checkout(order));
    expect(await provider.openCheckout(checkout(order))).toEqual(first);
    expect(sandbox.books.list('checkout.session')).toHaveLength(1);
    sandbox.happen.pay(first.sessionId);
  });

  it('open a page after the arena has moved, though it was asked for before', async () => {
    const order = { ...checkout(orders[0] as Order), paymentId: derivedId('payment', 'moved') };
    const { sessionId } = await provider.openCheckout(order);
    const moved = await providerAt(sandbox.url, SECRET_KEY, 4601).openCheckout(order);
    expect(moved.sessionId).not.toBe(sessionId);
  });

  it.each([-301, 301])('tell that a webhook of any of the secrets is %d seconds off', async (offS) => {
    const nowS = Math.floor(Date.parse(clock()) / 1000);
    for (const secret of ['whsec_0', 'whsec_1']) {
      await expect(
        provider.readWebhook(Buffer.from('{}'), signatureOf('{}', secret, nowS + offS)),
      ).rejects.toMatchObject({
        code: 'PAYMENTS.BAD_TIMESTAMP',
      });
    }
  });

  it('pay a withdrawal once, and find it again', async () => {
    expect(await provider.findTransfer(withdrawalId)).toBeUndefined();
    const { payoutAccountId } = await provider.openPayoutAccount('ada', 'key');
    sandbox.happen.onboard(payoutAccountId);
    const paid = await provider.createTransfer(transfer(payoutAccountId));
    expect(await provider.createTransfer(transfer(payoutAccountId))).toEqual(paid);
    expect(await provider.findTransfer(withdrawalId)).toEqual(paid);
    expect(sandbox.books.list('transfer')).toHaveLength(1);
    // The same key for something else says nothing about whether the first was paid.
    const other = provider.createTransfer(transfer(payoutAccountId, '9900'));
    await expect(other).rejects.toMatchObject({ code: 'PAYMENTS.NO_ANSWER' });
  });

  it('find a transfer behind a hundred others of its group', async () => {
    for (let i = 0; i < 120; i++) {
      sandbox.books.make('tr', 'transfer', { transfer_group: `agon-withdrawal-${withdrawalId}`, metadata: {} });
    }
    expect(await provider.findTransfer(withdrawalId)).toMatchObject({ transferId: expect.stringMatching(/^tr_/) });
  });

  it('tell what was refused for certain from what was not', async () => {
    const refused = { ...transfer('acct_nobody'), idempotencyKey: 'other' };
    await expect(provider.createTransfer(refused)).rejects.toMatchObject({ code: 'PAYMENTS.PROVIDER_REFUSED' });
    const broke = { ...transfer(sandbox.books.list('account')[0]?.id ?? '', '999999'), idempotencyKey: 'rich' };
    await expect(provider.createTransfer(broke)).rejects.toMatchObject({
      code: 'PAYMENTS.PROVIDER_REFUSED',
      message: expect.stringMatching(/insufficient funds/),
    });
    const nobody = providerAt('http://127.0.0.1:9').createTransfer(transfer('acct_1'));
    await expect(nobody).rejects.toMatchObject({ code: 'PAYMENTS.NO_ANSWER' });
    const stranger = providerAt(sandbox.url, 'sk_test_wrong').createTransfer(transfer('acct_1'));
    await expect(stranger).rejects.toMatchObject({ code: 'PAYMENTS.NO_ANSWER' });
  });
});
