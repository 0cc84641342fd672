import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { manualClock, seededIds } from '../../services/kernel/index.js';
import type { Mischief } from './deliver.js';
import { signatureOf } from './deliver.js';
import { type Sandbox, type SandboxOptions, startStripeSandbox } from './server.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-sandbox-'));
const clock = manualClock('2026-03-01T12:00:00.000Z');
const heard: { id: string; type: string }[] = [];
let refusals = 0;
const receiver = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString();
  const signature = `${request.headers['stripe-signature']}`;
  const timeS = Number(/t=(\d+)/.exec(signature)?.[1]);
  const authentic = signature === signatureOf(body, 'whsec_1', timeS);
  if (authentic && refusals-- <= 0) heard.push(JSON.parse(body));
  else authentic || heard.push({ id: 'forged', type: 'forged' });
  response.writeHead(refusals >= 0 ? 500 : 200).end();
});
let sandbox: Sandbox | undefined;

beforeAll(() => new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve)));
afterEach(async () => {
  await sandbox?.stop();
  sandbox = undefined;
  heard.length = 0;
  refusals = 0;
});
afterAll(() => {
  receiver.close();
  rmSync(folder, { recursive: true, force: true });
});

const start = async (options: Partial<SandboxOptions> = {}): Promise<Sandbox> => {
  sandbox = await startStripeSandbox({
    secretKey: 'sk_test_1',
    webhookSecret: 'whsec_1',
    ids: seededIds('spec'),
    webhookUrl: () => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    ...options,
  });
  return sandbox;
};

const call = async (method: string, path: string, form: Record<string, string> = {}, headers = {}) => {
  const text = new URLSearchParams(form).toString();
  const response = await fetch(`${sandbox?.url}${path}${method === 'GET' && text ? `?${text}` : ''}`, {
    method,
    redirect: 'manual',
    headers: { authorization: 'Bearer sk_test_1', ...headers },
    ...(method === 'POST' ? { body: new URLSearchParams(form) } : {}),
  });
  const said = await response.text();
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what each test says about it.
  const body: any = response.headers.get('content-type')?.includes('json') ? JSON.parse(said) : said;
  return { status: response.status, body, headers: response.headers };
};

const session = {
  mode: 'payment',
  success_url: 'http://127.0.0.1/done',
  'line_items[0][quantity]': '1',
  'line_items[0][price_data][currency]': 'usd',
  'line_items[0][price_data][unit_amount]': '5000',
  'line_items[0][price_data][product_data][name]': 'Deposit <script>',
  'payment_intent_data[metadata][agon_payment]': 'p1',
};
const open = async (): Promise<string> => (await call('POST', '/v1/checkout/sessions', session)).body.id;

describe("the stand-in's API", () => {
  it('keeps the first answer to a key for a day, and refuses the key for anything else', async () => {
    await start({ clock });
    const key = { 'idempotency-key': 'k1' };
    const first = await call('POST', '/v1/checkout/sessions', session, key);
    const again = await call('POST', '/v1/checkout/sessions', session, key);
    expect(again.body).toEqual(first.body);
    expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    const other = await call('POST', '/v1/checkout/sessions', { ...session, mode: 'subscription' }, key);
    expect(other).toMatchObject({ status: 400, body: { error: { type: 'idempotency_error' } } });
    clock.advance(24 * 3600 * 1000);
    expect((await call('POST', '/v1/checkout/sessions', session, key)).body.id).not.toBe(first.body.id);
  });

  it('keeps a failure of what ran, and not one of what was not understood', async () => {
    await start();
    const key = { 'idempotency-key': 'k2' };
    expect((await call('POST', '/v1/transfers', { amount: 'x' }, key)).status).toBe(400);
    const { body: account } = await call('POST', '/v1/accounts');
    const transfer = { amount: '100', currency: 'usd', destination: account.id };
    const refused = await call('POST', '/v1/transfers', transfer, key);
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { code: 'insufficient_capabilities_for_transfer' } },
    });
    sandbox?.happen.onboard(account.id);
    expect((await call('POST', '/v1/transfers', transfer, key)).body).toEqual(refused.body);
    const poor = await call('POST', '/v1/transfers', transfer, { 'idempotency-key': 'k3' });
    expect(poor.body.error.code).toBe('balance_insufficient');
  });

  it('lists in pages, newest first', async () => {
    const { books } = await start();
    for (let i = 0; i < 5; i++) books.make('tr', 'transfer', { transfer_group: i < 4 ? 'g' : 'other', n: i });
    const first = (await call('GET', '/v1/transfers', { transfer_group: 'g', limit: '3' })).body;
    expect([first.data.map((each: { n: number }) => each.n), first.has_more]).toEqual([[3, 2, 1], true]);
    const starting_after = first.data[2].id;
    const rest = (await call('GET', '/v1/transfers', { transfer_group: 'g', limit: '3', starting_after })).body;
    expect([rest.data.map((each: { n: number }) => each.n), rest.has_more]).toEqual([[0], false]);
  });

  it.each([
    ['no key', 'GET', '/v1/transfers', { authorization: '' }, 401],
    ['another key', 'GET', '/v1/transfers', { authorization: 'Bearer sk_test_2' }, 401],
    ['an unknown thing', 'GET', '/v1/payment_intents/pi_1', {}, 404],
    ['an unknown address', 'POST', '/v1/tax', {}, 404],
    ['a page of somebody else', 'POST', '/dashboard/dispute', { origin: 'http://evil.example' }, 403],
  ])('refuses %s', async (_what, method, path, headers, status) => {
    await start();
    expect((await call(method, path, {}, headers)).status).toBe(status);
  });
});

describe("the stand-in's pages", () => {
  it('can be paid and declined by a click, and lead back', async () => {
    await start();
    const id = await open();
    expect((await call('GET', `/pay/${id}`)).body).toMatch(/Deposit &#60;script&#62;.*50\.00 USD.*Pay.*Decline/s);
    expect((await call('POST', `/pay/${id}/decline`)).headers.get('location')).toBe(`/pay/${id}?declined`);
    expect((await call('GET', `/pay/${id}?declined`)).body).toMatch(/declined/);
    const paid = await call('POST', `/pay/${id}/pay`);
    expect([paid.status, paid.headers.get('location')]).toEqual([303, 'http://127.0.0.1/done']);
    expect((await call('POST', `/pay/${id}/pay`)).status).toBe(400);
    const { body } = await call('GET', `/v1/checkout/sessions/${id}`);
    expect(body).toMatchObject({ status: 'complete', payment_status: 'paid' });
    const intent = body.payment_intent as string;
    expect((await call('POST', '/dashboard/refund', { payment_intent: intent, amount: '1000' })).status).toBe(303);
    expect((await call('POST', '/dashboard/dispute', { payment_intent: intent })).status).toBe(303);
    const dispute = sandbox?.books.list('dispute')[0]?.id ?? '';
    expect((await call('GET', '/dashboard')).body).toMatch(/Dispute won/);
    expect((await call('POST', '/dashboard/close-dispute', { dispute, outcome: 'lost' })).status).toBe(303);
    expect(sandbox?.books.balance('usd')).toBe(-1000);
  });
});

describe('the delivery of webhooks', () => {
  const unkind: Mischief = { seed: 's', duplicates: 0.5, delayMsMax: 200, lostAnswers: 0.3, retryMsMax: 50 };

  it('repeats, reorders and goes on until it is accepted, always signed', async () => {
    const { happen, dispatcher, books } = await start({ mischief: unkind });
    refusals = 3;
    for (let i = 0; i < 4; i++) happen.pay(await open());
    await dispatcher.idle();
    const sent = books.list('event').map(({ id }) => id);
    expect(new Set(heard.map(({ id }) => id))).toEqual(new Set(sent));
    expect(heard.length).toBeGreaterThan(sent.length);
    const firsts = [...new Set(heard.map(({ id }) => id))];
    expect(firsts).not.toEqual(sent.toReversed());
  });

  it('goes on after a restart, with everything it knew', async () => {
    const file = join(folder, 'stripe.json');
    const first = await start({
      file,
      mischief: { ...unkind, delayMsMax: 0 },
      webhookUrl: () => 'http://127.0.0.1:9/',
    });
    const id = await open();
    first.happen.pay(id);
    await first.stop();
    expect(heard).toEqual([]);
    const second = await start({ file });
    expect((await call('GET', `/v1/checkout/sessions/${id}`)).body.status).toBe('complete');
    await second.dispatcher.idle();
    expect(heard.map(({ type }) => type)).toContain('checkout.session.completed');
  });
});
