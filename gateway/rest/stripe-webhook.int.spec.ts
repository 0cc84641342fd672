import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { type Sandbox, startStripeSandbox } from '../../ops/stripe-sandbox/server.js';
import { balancesOf, trialBalance } from '../../projections/balances/query.js';
import { paymentById } from '../../projections/payments/query.js';
import { RegisterOwner } from '../../services/accounts/index.js';
import { derivedId, manualClock, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { AskWithdrawal, TakeNotice, WEBHOOK_BYTES_MAX } from '../../services/payments/index.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-webhook-'));
const SECRET = 'whsec_of_this_spec';
const OTHER = 'whsec_of_connected_accounts';
const KEY = 'sk_test_of_this_spec';
const clock = manualClock('2026-03-01T12:00:00.000Z');
const nowS = () => Date.parse(clock()) / 1000;
let arena: Arena;
let stripe: Sandbox;
let url: string;

beforeAll(async () => {
  // Webhooks are sent by the spec; those of the stand-in go nowhere.
  stripe = await startStripeSandbox({
    secretKey: KEY,
    webhookSecret: SECRET,
    clock,
    webhookUrl: () => 'http://127.0.0.1:9',
  });
  const env = { STRIPE_SECRET_KEY: KEY, STRIPE_WEBHOOK_SECRET: `${SECRET},${OTHER}`, AGON_STRIPE_URL: stripe.url };
  const flags = { dataDir: folder, runner: false };
  arena = await arenaOfSpec(flags, { clock, env });
  url = await arena.listen();
  const meta = newMeta(SYSTEM, { clock });
  await arena.execute(new RegisterOwner({ accountId: 'ada', displayName: 'Ada' }, meta));
  await arena.settled();
});

afterAll(async () => {
  await arena?.stop();
  await stripe?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const hmac = (text: string, secret: string) => createHmac('sha256', secret).update(text).digest('hex');
const signed = (body: string, { secret = SECRET, atS = nowS(), scheme = 'v1' } = {}) =>
  `t=${atS},${scheme}=${hmac(`${atS}.${body}`, secret)}`;

async function send(body: string, signature = signed(body)): Promise<{ status: number; said: string }> {
  const headers = { 'content-type': 'application/json', 'stripe-signature': signature };
  const response = await fetch(`${url}/v1/stripe/webhook`, { method: 'POST', headers, body });
  const { code, outcome } = (await response.json()) as { code?: string; outcome?: string };
  return { status: response.status, said: outcome ?? code ?? '' };
}

const operator = () => ({ authorization: `Bearer ${readFileSync(join(folder, 'operator.token'), 'utf8')}` });

/** A checkout through the REST interface, paid on the stand-in's side: what is left is to hear of it. */
async function paidCheckout(key: string): Promise<{ event(type: string): string }> {
  const query = 'mutation { deposit(accountId: "ada", amountCents: "5000") { paymentId status url detail } }';
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, ...operator() },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = (await response.json()) as {
    data: { deposit: { status: string; detail: string } };
    errors?: unknown[];
  };
  expect(errors ?? []).toEqual([]);
  expect(data.deposit.status).toBe('open');
  const session = stripe.happen.pay(data.deposit.detail);
  return {
    event: (type) => {
      const found = stripe.books.list('event').find((each) => {
        const { object } = each.data as { object: { id: string; payment_intent?: string } };
        return each.type === type && (object.id === session.id || object.payment_intent === session.payment_intent);
      });
      return JSON.stringify(found);
    },
  };
}

const balance = async () => {
  await arena.settled();
  const rows = await balancesOf(arena.database, 'ada');
  return rows.find(({ currency }) => currency === 'USD')?.balanceCents ?? 0n;
};

describe('a webhook', () => {
  it('credits what was paid, once, when it is told so in due form', async () => {
    const { event } = await paidCheckout('first');
    const body = event('checkout.session.completed');
    const before = await balance();
    const changed = (fields: object) => JSON.stringify({ ...JSON.parse(body), ...fields });
    const rich = body.replace('"amount_total":5000', '"amount_total":9000');
    expect(rich).not.toBe(body);

    const table: { name: string; body?: string; signature?: string; status: number; said: string }[] = [
      { name: 'tampered body', body: rich, signature: signed(body), status: 400, said: 'PAYMENTS.BAD_SIGNATURE' },
      { name: 'a space more', body: `${body} `, signature: signed(body), status: 400, said: 'PAYMENTS.BAD_SIGNATURE' },
      {
        name: 'wrong secret',
        signature: signed(body, { secret: 'whsec_x' }),
        status: 400,
        said: 'PAYMENTS.BAD_SIGNATURE',
      },
      { name: 'old', signature: signed(body, { atS: nowS() - 301 }), status: 400, said: 'PAYMENTS.BAD_TIMESTAMP' },
      { name: 'future', signature: signed(body, { atS: nowS() + 301 }), status: 400, said: 'PAYMENTS.BAD_TIMESTAMP' },
      {
        name: 'a day ahead',
        signature: signed(body, { atS: nowS() + 86_400 }),
        status: 400,
        said: 'PAYMENTS.BAD_TIMESTAMP',
      },
      {
        name: 'two times',
        signature: `t=${nowS() + 9e5},${signed(body)}`,
        status: 400,
        said: 'PAYMENTS.BAD_TIMESTAMP',
      },
      { name: 'v0 only', signature: signed(body, { scheme: 'v0' }), status: 400, said: 'PAYMENTS.BAD_SIGNATURE' },
      { name: 'no signature', signature: '', status: 400, said: 'PAYMENTS.BAD_SIGNATURE' },
      { name: 'nonsense', signature: 'nonsense', status: 400, said: 'PAYMENTS.BAD_SIGNATURE' },
      { name: 'unknown type', body: changed({ type: 'tax.settings.updated' }), status: 200, said: 'ignored' },
      { name: 'of somebody else', body: changed({ data: { object: { metadata: {} } } }), status: 200, said: 'ignored' },
      {
        name: 'oversized',
        body: changed({ pad: 'x'.repeat(WEBHOOK_BYTES_MAX) }),
        status: 413,
        said: 'PAYMENTS.TOO_LARGE',
      },
      {
        name: 'far too large',
        body: changed({ pad: 'x'.repeat(3 << 20) }),
        status: 413,
        said: 'HTTP.413',
      },
      { name: 'not JSON', body: 'paid!', status: 400, said: 'PAYMENTS.BAD_SIGNATURE' },
    ];
    for (const { name, status, said, ...row } of table) {
      const sent = row.body ?? body;
      expect({ name, ...(await send(sent, row.signature ?? signed(sent))) }).toEqual({ name, status, said });
    }
    expect(await balance()).toBe(before);

    expect(await send(body, signed(body, { atS: nowS() - 299 }))).toEqual({ status: 200, said: 'taken' });
    expect(await balance()).toBe(before + 5000n);
    // The same event again, and the same news under another id.
    expect(await send(body)).toEqual({ status: 200, said: 'repeated' });
    expect(await send(changed({ id: 'evt_other' }))).toEqual({ status: 200, said: 'known' });
    // The same id with other content is nobody's honest mistake.
    const other = JSON.stringify({ ...JSON.parse(rich), id: JSON.parse(body).id });
    expect(await send(other)).toEqual({ status: 422, said: 'COMMAND.KEY_REUSED' });
    expect(await balance()).toBe(before + 5000n);
  });

  it('is taken with any of the secrets of its endpoints', async () => {
    const { event } = await paidCheckout('connected');
    const body = event('checkout.session.completed');
    expect(await send(body, signed(body, { secret: OTHER }))).toEqual({ status: 200, said: 'taken' });
  });

  it('is taken in any order: refund and dispute before the payment', async () => {
    const before = await balance();
    const { event } = await paidCheckout('reordered');
    const session = JSON.parse(event('checkout.session.completed'));
    const intent = session.data.object.payment_intent as string;
    stripe.happen.refund(intent, 2000, {});
    stripe.happen.dispute(intent);
    const { id } = stripe.books.list('dispute')[0] ?? { id: '' };
    stripe.happen.closeDispute(id, 'won');
    const bodies = ['charge.dispute.closed', 'charge.dispute.created', 'refund.created', 'checkout.session.completed'];
    for (const type of bodies) expect(await send(event(type))).toEqual({ status: 200, said: 'taken' });
    expect(await balance()).toBe(before + 3000n);
    for (const type of bodies) expect(await send(event(type))).toEqual({ status: 200, said: 'repeated' });
    expect(await balance()).toBe(before + 3000n);
  });

  it('tells of a refunded and of a disputed invoice, which the house pays', async () => {
    const query = 'mutation { subscribe(accountId: "ada", planId: "pro") { detail } }';
    const headers = { 'content-type': 'application/json', ...operator() };
    const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    const { data } = (await response.json()) as { data: { subscribe: { detail: string } } };
    stripe.happen.pay(data.subscribe.detail);
    const told = (type: string) => JSON.stringify(stripe.books.list('event').find((each) => each.type === type));
    for (const type of ['checkout.session.completed', 'customer.subscription.updated', 'invoice.paid']) {
      expect(await send(told(type))).toEqual({ status: 200, said: 'taken' });
    }
    const plans = async () => {
      await arena.settled();
      const rows = await trialBalance(arena.database);
      return rows.find(({ account }) => account === 'house:plans')?.balanceCents;
    };
    expect(await plans()).toBe(1900n);
    const [invoice] = stripe.books.list('invoice_payment') as never as [{ payment: { payment_intent: string } }];
    const { payment_intent: intent } = invoice.payment;
    stripe.happen.refund(intent, 400, {});
    expect(await send(told('refund.created'))).toEqual({ status: 200, said: 'taken' });
    expect(await plans()).toBe(1500n);
    const { id } = stripe.happen.dispute(intent);
    expect(await send(told('charge.dispute.created'))).toEqual({ status: 200, said: 'taken' });
    expect(await plans()).toBe(-400n);
    stripe.happen.closeDispute(id, 'won');
    expect(await send(told('charge.dispute.closed'))).toEqual({ status: 200, said: 'taken' });
    expect(await plans()).toBe(1500n);
  });

  it('tells of a transfer that came back, and puts it into the wallet once', async () => {
    const accountId = 'ada';
    const { id } = stripe.books.make('acct', 'account', {});
    const notice = { kind: 'payout-account', accountId, payoutAccountId: id, enabled: true, asOfS: 1 } as const;
    const meta = () => newMeta(SYSTEM, { clock });
    await arena.execute(new TakeNotice({ accountId, notice }, meta()));
    stripe.happen.onboard(id);
    clock.advance(8 * 24 * 3_600_000);
    const withdrawalId = derivedId('withdrawal');
    await arena.execute(new AskWithdrawal({ accountId, withdrawalId, amountCents: '1000', currency: 'USD' }, meta()));
    const isPaid = async () => (await paymentById(arena.database, withdrawalId))?.status;
    await expect.poll(isPaid, { timeout: 20_000 }).toBe('paid');
    const before = await balance();
    const [transfer] = stripe.books.list('transfer');
    stripe.happen.reverse(transfer?.id ?? '', 400);
    stripe.happen.reverse(transfer?.id ?? '', 600);
    const [second, first] = stripe.books.list('event').filter(({ type }) => type === 'transfer.reversed');
    expect(await send(JSON.stringify(second))).toEqual({ status: 200, said: 'taken' });
    expect(await send(JSON.stringify(first))).toEqual({ status: 200, said: 'known' });
    expect(await balance()).toBe(before + 1000n);
    expect(await isPaid()).toBe('reversed');
  });

  it('is answered so that Stripe tries again when the payment cannot be looked up', async () => {
    const refund = { id: 're_x', amount: 1, currency: 'usd', status: 'succeeded', payment_intent: 'pi_missing' };
    const body = JSON.stringify({ id: 'evt_x', type: 'refund.created', created: nowS(), data: { object: refund } });
    expect(await send(body)).toEqual({ status: 502, said: 'PAYMENTS.PROVIDER_REFUSED' });
  });

  it('has a page to come back to, which proves nothing', async () => {
    const before = await balance();
    const text = await (await fetch(`${url}/v1/stripe/return?payment=x&done=1`)).text();
    expect(text).toMatch(/as soon as Stripe confirms/);
    expect(await balance()).toBe(before);
  });
});
