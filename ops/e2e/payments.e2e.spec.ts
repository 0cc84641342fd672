import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../projections/sinks/database.js';
import { startPostgres } from '../engines/postgres.js';
import { run, type Served, serve, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
afterAll(() => folder.remove());

describe('an arena without a key for Stripe', () => {
  const data = join(folder.path, 'play');
  let arena: Served;
  beforeAll(async () => {
    arena = await serve(data, '--no-ladder', '--no-runner');
  });
  afterAll(() => arena?.stop('SIGKILL'));

  it('plays for credits, and says so', async () => {
    await run('owner', 'register', 'ada', '--data', data);
    const status = JSON.parse((await run('status', '--data', data, '--json')).stdout);
    const { detail } = status.parts.find(({ part }: { part: string }) => part === 'payments');
    expect(detail).toMatch(/play credits only/);
    const refused = await run('wallet', 'deposit', 'ada', '25', '--data', data);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/PAYMENTS\.NOT_CONFIGURED.*STRIPE_SECRET_KEY.*--stripe-sandbox/);
    const webhook = await fetch(`${arena.url}/v1/stripe/webhook`, { method: 'POST' });
    expect([webhook.status, ((await webhook.json()) as { code: string }).code]).toEqual([
      503,
      'PAYMENTS.NOT_CONFIGURED',
    ]);
  });

  it('shows the plans and their limits', async () => {
    const { stdout } = await run('plan', 'show', 'ada', '--data', data, '--json');
    expect(JSON.parse(stdout)).toMatchObject({ payer: { plan: { planId: 'free', agentsMax: 3 } } });
    expect((await run('plan', 'list', '--data', data)).stdout).toMatch(/team +99\.00 USD/);
  });
});

describe('an arena with the stand-in for Stripe', () => {
  const data = join(folder.path, 'paid');
  let arena: Served;
  beforeAll(async () => {
    const quick = ['--deposit-clearing-s', '0'];
    arena = await serve(data, '--no-ladder', '--no-runner', '--stripe-sandbox', '0', ...quick);
    await run('owner', 'register', 'ada', '--data', data);
  });
  afterAll(() => arena?.stop('SIGKILL'));

  const agon = async (...args: string[]) => {
    const ran = await run(...args, '--data', data, '--json');
    return { ...ran, said: ran.stdout ? JSON.parse(ran.stdout) : undefined };
  };
  const click = (url: string) => fetch(url, { method: 'POST', redirect: 'manual' });

  it('takes a deposit when it was paid, not when somebody comes back from the page', async () => {
    const { said: opened } = await agon('wallet', 'deposit', 'ada', '25');
    expect(opened).toMatchObject({ status: 'open', amountCents: '2500', currency: 'USD' });
    expect((await fetch(`${arena.url}/v1/stripe/return?payment=${opened.paymentId}&done=1`)).status).toBe(200);
    const before = (await agon('wallet', 'payments', 'ada')).said;
    expect(before).toMatchObject([{ status: 'open' }]);
    expect((await click(`${opened.url}/decline`)).status).toBe(303);
    expect((await click(`${opened.url}/pay`)).status).toBe(303);
    const received = async () => (await agon('wallet', 'payments', 'ada')).said[0].status;
    await expect.poll(received, { timeout: 30_000, interval: 200 }).toBe('received');
  });

  it('gives a part of it back, and sells credits for what is in the wallet', async () => {
    const [{ paymentId }] = (await agon('wallet', 'payments', 'ada')).said;
    const status = async () => (await agon('wallet', 'payments', 'ada')).said[0].status;
    expect((await agon('wallet', 'refund', 'ada', paymentId, '--amount', '5')).code).toBe(0);
    await expect.poll(status, { timeout: 30_000, interval: 200 }).toBe('partly_refunded');
    const { stdout } = await run('wallet', 'payments', 'ada', '--data', data);
    expect(stdout).toMatch(/25\.00 USD +partly_refunded \(5\.00 of 25\.00\)/);
    const more = await agon('wallet', 'refund', 'ada', paymentId, '--amount', '21');
    expect([more.code, more.stderr]).toEqual([1, expect.stringMatching(/PAYMENTS\.REFUND_TOO_LARGE.*2000 cents/)]);
    const bought = await agon('wallet', 'buy-credits', 'ada', 'small', '--from-wallet');
    expect([bought.code, bought.said.events]).toEqual([0, ['CreditsBought']]);
    const { said: wallet } = await agon('wallet', 'show', 'ada');
    expect(wallet.purses).toMatchObject([
      { currency: 'COMPUTE', availableCents: '100000' },
      { currency: 'USD', availableCents: '1500' },
    ]);
    const poor = await agon('wallet', 'buy-credits', 'ada', 'large', '--from-wallet');
    expect([poor.code, poor.stderr]).toEqual([1, expect.stringMatching(/WALLET\.INSUFFICIENT_FUNDS/)]);
  });

  it('sells a plan, and shows its limits', async () => {
    const { said: opened } = await agon('plan', 'subscribe', 'ada', 'pro');
    expect((await click(`${opened.url}/pay`)).status).toBe(303);
    const plan = async () => (await agon('plan', 'show', 'ada')).said.payer.plan.planId;
    await expect.poll(plan, { timeout: 30_000, interval: 200 }).toBe('pro');
    expect((await agon('plan', 'end', 'ada')).said.events).toEqual(['PlanEndRequested']);
    await expect.poll(plan, { timeout: 30_000, interval: 200 }).toBe('free');
  });

  it('pays out to an account that can receive, and refuses before', async () => {
    const early = await agon('wallet', 'withdraw', 'ada', '10');
    expect([early.code, early.stderr]).toEqual([1, expect.stringMatching(/PAYMENTS\.NO_PAYOUT_ACCOUNT.*onboard/)]);
    const { said: link } = await agon('wallet', 'onboard', 'ada');
    expect((await click(link.url.replace('?', '/complete?'))).status).toBe(303);
    const paid = async () => (await agon('wallet', 'withdraw', 'ada', '10')).said?.status;
    await expect.poll(paid, { timeout: 30_000, interval: 200 }).toBe('paid');
    const rich = await agon('wallet', 'withdraw', 'ada', '1000');
    expect([rich.code, rich.said]).toMatchObject([1, { status: 'refused' }]);
  });
});

describe('the demo with payments', () => {
  const data = join(folder.path, 'demo');

  it('balances the ledger, and names the row that was altered by hand', async () => {
    const demo = await run('demo', '--matches', '40', '--payments', '--data', data, '--json');
    expect(demo.code, demo.stderr).toBe(0);
    const told = JSON.parse(demo.stdout);
    expect(told).toMatchObject({
      settled: 40,
      ledgerSum: 0,
      payments: { deposits: 12, refunds: 2, chargebacks: 1, withdrawals: 1 },
    });
    expect(told.payments.matches.settled).toBeGreaterThan(0);
    expect(told.payments.matches.settled + told.payments.matches.voided).toBe(12);
    const good = await run('ledger', 'check', '--data', data);
    expect([good.code, good.stdout]).toEqual([0, expect.stringMatching(/checked: \d+ postings/)]);
    expect(good.stdout).toMatch(/house:rake +USD/);
    // What was charged back had been played with, and lost.
    expect(good.stdout).toMatch(/owed:bronze +USD/);

    const postgres = await startPostgres({ folder: join(data, 'postgres') });
    const db = await openDatabase(postgres.url);
    const [row] = await db.query(
      `SELECT position, line, amount_cents FROM postings WHERE event_type = 'FundsClawedBack' LIMIT 1`,
    );
    await db.query('ALTER TABLE postings DISABLE TRIGGER ALL');
    await db.query('UPDATE postings SET amount_cents = amount_cents + 1 WHERE position = $1 AND line = $2', [
      row.position,
      row.line,
    ]);
    await db.destroy();
    await postgres.stop();
    const bad = await run('ledger', 'check', '--data', data, '--json');
    expect(bad.code).toBe(1);
    const { position, line, amount_cents: amount } = row;
    expect(JSON.parse(bad.stdout)).toMatchObject({
      good: false,
      differences: [
        `postings (position ${position}, line ${line}): amount_cents is ${BigInt(amount) + 1n}, and the log says ${amount}.`,
      ],
      faults: [],
    });
  }, 300_000);
});
