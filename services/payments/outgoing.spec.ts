import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startStripeSandbox } from '../../ops/stripe-sandbox/server.js';
import { MemoryEventStore } from '../adapters/store/memory.js';
import { stripeProvider } from '../adapters/stripe.js';
import {
  AgonError,
  type Command,
  createHandle,
  derivedId,
  Folds,
  type Load,
  manualClock,
  newMeta,
  type RecordedEvent,
  Secret,
  SYSTEM,
} from '../kernel/index.js';
import { FreezeWallet, wallet } from '../wallet/index.js';
import { ApproveWithdrawal } from './commands.js';
import {
  AskWithdrawal,
  CancelWithdrawal,
  type Notice,
  type PaymentProvider,
  payments,
  RequestCheckout,
  RequestRefund,
  TakeNotice,
} from './index.js';
import { carryOut } from './outgoing.js';
import { paidIn, withdrawals } from './policies.js';

const DAY_MS = 24 * 3600 * 1000;
const clock = manualClock('2026-03-01T12:00:00.000Z');
const store = new MemoryEventStore();
const handle = createHandle({ store });
const meta = () => newMeta(SYSTEM, { clock });
const send = (command: Command) =>
  handle(wallet.commands.some(({ spec }) => spec.type === command.type) ? wallet : payments, command);
let stripe: Sandbox;
let provider: PaymentProvider;

beforeAll(async () => {
  const [secretKey, webhookSecret] = ['sk_test_1', 'whsec_1'];
  stripe = await startStripeSandbox({ secretKey, webhookSecret, clock, webhookUrl: () => 'http://127.0.0.1:9' });
  provider = stripeProvider({
    secretKey: new Secret(secretKey),
    webhookSecret: new Secret(webhookSecret),
    url: stripe.url,
    clock,
    returnUrl: () => 'http://127.0.0.1/back',
  });
  stripe.books.move('usd', 100_000);
});
afterAll(() => stripe?.stop());

const load: Load = (...asked) => new Folds({ store }).load(...asked);
const ports = () => ({ provider, load, clock });
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
    const first = await carryOut(event, ports());
    // The process dies here. Two days later, Stripe knows the transfer and not the key.
    clock.advance(2 * DAY_MS);
    const second = await carryOut(event, ports());
    expect(second?.data).toEqual(first?.data);
    expect(transfersOf(withdrawalId)).toHaveLength(1);
    await send(second as Command);
    expect(await carryOut(event, ports())).toBeUndefined();
  });

  it('is not given up because a look-up failed', async () => {
    const { event } = await requested('bob');
    const blind: PaymentProvider = {
      ...provider,
      findTransfer: () => Promise.reject(new AgonError('PAYMENTS.PROVIDER_REFUSED', 'no such parameter')),
    };
    await expect(carryOut(event, { ...ports(), provider: blind })).rejects.toMatchObject({
      code: 'PAYMENTS.PROVIDER_REFUSED',
    });
  });

  it('fails when Stripe says that it was not made', async () => {
    const { event, withdrawalId } = await requested('cyd');
    stripe.books.move('usd', -stripe.books.balance('usd'));
    const command = await carryOut(event, ports());
    expect(command).toMatchObject({ type: 'FailWithdrawal', data: { withdrawalId } });
    expect(transfersOf(withdrawalId)).toHaveLength(0);
  });
});

describe('a withdrawal under way', () => {
  /** The policies on what happened to this account, until nothing more comes of it. */
  const reacted = async (accountId: string) => {
    for (let position = 0; position < (await store.lastPosition()); position += 1) {
      const [event] = (await store.readAll({ after: position, limit: 1 })) as [RecordedEvent];
      if ((event.data as { accountId?: string }).accountId !== accountId) continue;
      for (const policy of [paidIn, withdrawals]) {
        if (policy.types.includes(event.type)) for (const command of policy.react(event)) await send(command);
      }
    }
  };
  /** 50.00 are paid in and cleared, and all of it is to be paid out. */
  const underWay = async (accountId: string) => {
    const paymentId = derivedId('payment', accountId);
    const money = { amountCents: '5000', currency: 'USD' } as const;
    const order = { kind: 'deposit', ...money, clearingS: 0 } as const;
    await send(new RequestCheckout({ accountId, paymentId, order }, meta()));
    const tell = (notice: Notice) => send(new TakeNotice({ accountId, notice }, meta()));
    await tell({ kind: 'paid', accountId, paymentId, ...money, chargeId: 'pi_1' });
    const { payoutAccountId } = await provider.openPayoutAccount(accountId, `key-${accountId}`);
    stripe.happen.onboard(payoutAccountId);
    await tell({ kind: 'payout-account', accountId, payoutAccountId, enabled: true, asOfS: 1 });
    await reacted(accountId);
    const withdrawalId = derivedId('withdrawal', accountId);
    await send(new AskWithdrawal({ accountId, withdrawalId, ...money }, meta()));
    await reacted(accountId);
    const event = await last(accountId);
    expect(event.type).toBe('WithdrawalRequested');
    stripe.books.move('usd', 5_000);
    return {
      event,
      withdrawalId,
      dispute: { kind: 'dispute', accountId, paymentId, ...money, disputeId: 'dp_1' } as const,
      tell,
    };
  };
  const carriedOut = async (event: Outgoing) => {
    const command = await carryOut(event, ports());
    if (command) await send(command);
    await reacted(event.data.accountId);
  };
  const typesOf = async (stream: string) => (await store.readStream(stream)).map(({ type }) => type);

  it('is not paid after a chargeback: what was held pays what is owed', async () => {
    const { event, withdrawalId, dispute, tell } = await underWay('fay');
    await tell({ ...dispute, outcome: 'open' });
    await tell({ ...dispute, outcome: 'lost' });
    await reacted('fay');
    await carriedOut(event);
    const stopped = await last('fay');
    expect(stopped).toMatchObject({ type: 'WithdrawalStopped', data: { withdrawalId, reason: 'owed' } });
    clock.advance(provider.callMsMax);
    await carriedOut(stopped);
    expect(transfersOf(withdrawalId)).toHaveLength(0);
    expect((await typesOf('wallet-fay')).slice(-3)).toEqual(['WalletUnfrozen', 'HoldVoided', 'DebtRepaid']);
    expect((await load(wallet, 'fay', 'tail')).state.purses.USD).toMatchObject({ availableCents: 0n, owedCents: 0n });
    // Heard of again, nothing more comes of any of it.
    for (const again of [event, stopped]) expect(await carryOut(again, ports())).toBeUndefined();
  });

  it('is stopped by a dispute before the wallet has heard of it, and by anybody who freezes the wallet', async () => {
    const { event, dispute, tell } = await underWay('gus');
    await tell({ ...dispute, outcome: 'open' });
    expect(await carryOut(event, ports())).toMatchObject({ type: 'CancelWithdrawal', data: { reason: 'disputed' } });
    const { event: other } = await underWay('hal');
    await send(new FreezeWallet({ accountId: 'hal', reason: 'a match is looked into' }, meta()));
    expect(await carryOut(other, ports())).toMatchObject({ type: 'CancelWithdrawal', data: { reason: 'frozen' } });
  });

  it('is paid if its transfer was made before it was stopped', async () => {
    const { event, withdrawalId } = await underWay('ivy');
    await carryOut(event, ports());
    await send(new CancelWithdrawal({ accountId: 'ivy', withdrawalId, reason: 'asked for' }, meta()));
    await carriedOut(await last('ivy'));
    expect(await last('ivy')).toMatchObject({ type: 'WithdrawalPaid' });
    expect((await typesOf('wallet-ivy')).at(-1)).toBe('HoldPosted');
    expect(transfersOf(withdrawalId)).toHaveLength(1);
  });

  it('is not given up while a transfer that was begun may still turn up', async () => {
    const { event, withdrawalId } = await underWay('joe');
    await send(new CancelWithdrawal({ accountId: 'joe', withdrawalId, reason: 'asked for' }, meta()));
    const stopped = await last('joe');
    await expect(carryOut(stopped, ports())).rejects.toMatchObject({ code: 'PAYMENTS.NO_ANSWER' });
    // A call that nobody waited for any more.
    await provider.createTransfer(event.data as Parameters<PaymentProvider['createTransfer']>[0]);
    clock.advance(provider.callMsMax);
    expect(await carryOut(stopped, ports())).toMatchObject({ type: 'RecordTransfer' });
  });

  it('is not begun when it was cancelled during the look-up', async () => {
    const { event, withdrawalId } = await underWay('kim');
    const slow: PaymentProvider = {
      ...provider,
      findTransfer: async (id) => {
        await send(new CancelWithdrawal({ accountId: 'kim', withdrawalId, reason: 'asked for' }, meta()));
        return provider.findTransfer(id);
      },
    };
    expect(await carryOut(event, { ...ports(), provider: slow })).toBeUndefined();
    expect(transfersOf(withdrawalId)).toHaveLength(0);
  });
});

describe('a refund', () => {
  it('is looked up, not made again, when its record was lost and its key forgotten', async () => {
    const accountId = 'eve';
    const paymentId = derivedId('payment', accountId);
    const order = { kind: 'deposit', amountCents: '5000', currency: 'USD', clearingS: 0 } as const;
    await send(new RequestCheckout({ accountId, paymentId, order }, meta()));
    await send((await carryOut(await last(accountId), ports())) as Command);
    const session = stripe.happen.pay(stripe.books.list('checkout.session')[0]?.id ?? '');
    const chargeId = String(session.payment_intent);
    const notice = { kind: 'paid', accountId, paymentId, amountCents: '5000', currency: 'USD', chargeId } as const;
    await send(new TakeNotice({ accountId, notice }, meta()));
    const requestId = derivedId('refund', accountId);
    await send(new RequestRefund({ accountId, paymentId, requestId, amountCents: '2000', reason: 'late' }, meta()));
    const event = await last(accountId);
    const first = await carryOut(event, ports());
    clock.advance(2 * DAY_MS);
    const second = await carryOut(event, ports());
    expect(second).toMatchObject({ type: 'RecordRefund', data: first?.data });
    expect(stripe.books.list('refund')).toMatchObject([{ amount: 2000, metadata: { agon_refund: requestId } }]);
    await send(second as Command);
    expect(await carryOut(event, ports())).toBeUndefined();
    // Somebody was quicker in the dashboard: what Stripe refuses for certain is refused.
    const late = { accountId, paymentId, requestId: derivedId('late'), reason: 'late' };
    await send(new RequestRefund(late, meta()));
    stripe.happen.refund(chargeId, 3000, {});
    expect(await carryOut(await last(accountId), ports())).toMatchObject({ type: 'RefuseRefund' });
  });
});

describe('a checkout', () => {
  it('is opened once, and not again when it is there', async () => {
    const paymentId = derivedId('payment');
    const order = { kind: 'deposit', amountCents: '5000', currency: 'USD', clearingS: 0 } as const;
    await send(new RequestCheckout({ accountId: 'dee', paymentId, order }, meta()));
    const event = await last('dee');
    const opened = await carryOut(event, ports());
    expect(opened).toMatchObject({ type: 'RecordCheckout', data: { paymentId } });
    await send(opened as Command);
    expect(await carryOut(event, ports())).toBeUndefined();
    const sessions = stripe.books.list('checkout.session');
    expect(sessions.filter(({ metadata }) => metadata?.agon_account === 'dee')).toHaveLength(1);
  });
});
