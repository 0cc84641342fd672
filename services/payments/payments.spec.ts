import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, derivedId, fold } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import {
  ApproveWithdrawal,
  FailCheckout,
  FailWithdrawal,
  RecordCheckout,
  RecordRefund,
  RecordTransfer,
  RefuseRefund,
  RefuseWithdrawal,
} from './commands.js';
import { paymentDecider } from './decider.js';
import {
  AskWithdrawal,
  beyondPlan,
  CancelWithdrawal,
  EndPlan,
  type Notice,
  type Order,
  type PaymentEvent,
  payments,
  planInForce,
  planNamed,
  plans,
  RequestCheckout,
  RequestRefund,
  TakeNotice,
} from './index.js';

const given = specification(payments);
const accountId = 'ada';
const paymentId = derivedId('payment');
const withdrawalId = derivedId('withdrawal');
const meta = (actor?: Actor) => metaOf('c1', actor);
const payment = { accountId, paymentId };
const money = { amountCents: '5000', currency: 'USD' } as const;
const order: Order = { kind: 'deposit', ...money, clearingS: 0 };

const event = <Type extends PaymentEvent['type']>(type: Type, data: Extract<PaymentEvent, { type: Type }>['data']) =>
  ({ type, data }) as Extract<PaymentEvent, { type: Type }>;
const requested = event('CheckoutRequested', { ...payment, order });
const opened = event('CheckoutOpened', { ...payment, sessionId: 'cs_1', url: 'https://example.org/pay' });
const received = event('PaymentReceived', { ...payment, order, chargeId: 'pi_1' });
const all = [{ depositId: paymentId, amountCents: '5000' }];
const refunded = event('PaymentRefunded', { ...payment, ...money, refundId: 're_1', order, taken: all });
const back = (depositId: string, returnedCents = '5000') => ({ depositId, returnedCents });
const refundFailed = event('RefundFailed', { ...payment, ...money, refundId: 're_1', order, ...back('re_1:failed') });
const disputed = event('DisputeOpened', { ...payment, ...money, disputeId: 'dp_1', order, taken: all });
const won = (returnedCents = '5000') =>
  event('DisputeWon', {
    ...payment,
    ...money,
    disputeId: 'dp_1',
    order,
    ...back('dp_1:won', returnedCents),
  });
const lost = event('DisputeLost', { ...payment, ...money, disputeId: 'dp_1', order });

const tell = (notice: Notice) => new TakeNotice({ accountId: notice.accountId, notice }, meta());
const paid: Notice = { kind: 'paid', ...payment, ...money, chargeId: 'pi_1' };
const unpaid: Notice = { kind: 'unpaid', ...payment, reason: 'expired' };
const refund = (failed = false, refundId = 're_1') =>
  ({ kind: 'refund', ...payment, ...money, refundId, failed }) as const;
const dispute = (outcome: 'open' | 'won' | 'lost', disputeId = 'dp_1') =>
  ({ kind: 'dispute', ...payment, ...money, disputeId, outcome }) as const;

describe('a checkout', () => {
  const ask = (amountCents = '5000', actor?: Actor) =>
    new RequestCheckout({ ...payment, order: { ...order, amountCents } }, meta(actor));

  it('is asked for once, within sane amounts, by its owner or staff', () => {
    given([]).when(ask()).then([requested]);
    given([requested]).when(ask()).thenRefused('PAYMENTS.EXISTS');
    for (const amount of ['99', '10000001']) given([]).when(ask(amount)).thenRefused('PAYMENTS.BAD_AMOUNT');
    expect(allowed(ask('5000', { id: 'ada', role: 'owner' }))).toBe(true);
    expect(allowed(ask('5000', { id: 'bob', role: 'owner' }))).toBe(false);
  });

  it('opens once, and a page made again is nobody’s', () => {
    const record = new RecordCheckout({ ...payment, sessionId: 'cs_1', url: 'https://example.org/pay' }, meta());
    given([requested]).when(record).then([opened]);
    given([requested, opened]).when(record).then([]);
    given([]).when(record).thenRefused('PAYMENTS.UNKNOWN');
  });

  it('fails while it is not paid, and never afterwards', () => {
    const failed = event('CheckoutFailed', { ...payment, reason: 'expired' });
    given([requested, opened]).when(tell(unpaid)).then([failed]);
    given([requested, opened, failed]).when(tell(unpaid)).then([]);
    given([requested, opened, received]).when(tell(unpaid)).then([]);
    given([requested])
      .when(new FailCheckout({ ...payment, reason: 'expired' }, meta()))
      .then([failed]);
  });
});

describe('the proof of payment', () => {
  it('is the provider’s notice, and is taken once', () => {
    given([requested, opened]).when(tell(paid)).then([received]);
    given([requested, opened, received]).when(tell(paid)).then([]);
    given([]).when(tell(paid)).thenRefused('PAYMENTS.UNKNOWN');
  });

  it('counts before the page is recorded, and after the page was given up', () => {
    given([requested]).when(tell(paid)).then([received]);
    given([requested, event('CheckoutFailed', { ...payment, reason: 'expired' })])
      .when(tell(paid))
      .then([received]);
  });

  it('is refused over another amount or currency', () => {
    given([requested])
      .when(tell({ ...paid, amountCents: '50000' }))
      .thenRefused('PAYMENTS.OTHER_AMOUNT');
    given([requested])
      .when(tell({ ...paid, currency: 'EUR' }))
      .thenRefused('PAYMENTS.OTHER_AMOUNT');
  });

  it('comes from the webhook alone: not even an operator may say it', () => {
    for (const role of ['owner', 'operator', 'admin', 'runner'] as const) {
      expect(allowed(new TakeNotice({ accountId, notice: paid }, meta({ id: 'ada', role })))).toBe(false);
    }
    expect(allowed(new TakeNotice({ accountId, notice: paid }, meta({ id: 'stripe', role: 'system' })))).toBe(true);
    expect(() => new TakeNotice({ accountId: 'bob', notice: paid }, meta())).toThrow();
  });
});

describe('refunds and disputes', () => {
  const paidFor = [requested, opened, received];

  it('take back, once each', () => {
    given(paidFor).when(tell(refund())).then([refunded]);
    given([...paidFor, refunded])
      .when(tell(refund()))
      .then([]);
    given(paidFor)
      .when(tell(dispute('open')))
      .then([disputed]);
    given([...paidFor, disputed])
      .when(tell(dispute('open')))
      .then([]);
  });

  it('give back what failed and what was won', () => {
    given([...paidFor, refunded])
      .when(tell(refund(true)))
      .then([refundFailed]);
    given([...paidFor, disputed])
      .when(tell(dispute('won')))
      .then([won()]);
    given([...paidFor, disputed])
      .when(tell(dispute('lost')))
      .then([lost]);
    given([...paidFor, disputed, lost])
      .when(tell(dispute('won')))
      .then([]);
  });

  it('say how many other disputes are still open', () => {
    const other = event('DisputeOpened', { ...disputed.data, disputeId: 'dp_2', taken: [] });
    given([...paidFor, disputed, other])
      .when(tell(dispute('won')))
      .then([won('0')]);
  });

  it('never take more than was paid, and take from what came back', () => {
    const half = { ...refund(false, 're_2'), amountCents: '2000' };
    const taken = (...parts: [string, string][]) =>
      event('PaymentRefunded', {
        ...payment,
        ...money,
        amountCents: '2000',
        refundId: 're_2',
        order,
        taken: parts.map(([depositId, amountCents]) => ({ depositId, amountCents })),
      });
    given([...paidFor, disputed])
      .when(tell(half))
      .then([taken()]);
    given([...paidFor, disputed, taken()])
      .when(tell(dispute('won')))
      .then([won('3000')]);
    given([...paidFor, disputed, won()])
      .when(tell(half))
      .then([taken(['dp_1:won', '2000'])]);
  });

  it('are kept when they come before their payment, and count with it', () => {
    const kept = event('NoticeKept', { ...payment, notice: refund() });
    given([requested]).when(tell(refund())).then([kept]);
    given([requested, kept]).when(tell(paid)).then([received, refunded]);
  });

  const some = (amountCents: string, refundId: string, failed = false) => ({
    ...refund(failed, refundId),
    amountCents,
  });
  const notices = [paid, some('2000', 're_1'), some('2000', 're_1', true), some('1500', 're_2')] as const;
  const disputes = [dispute('open'), dispute('won'), { ...dispute('open', 'dp_2'), amountCents: '1000' }] as const;
  const told = [...notices, ...disputes, { ...dispute('lost', 'dp_2'), amountCents: '1000' }] as const;
  /** What these events leave in the wallet. */
  const inWallet = (events: readonly PaymentEvent[]) =>
    events.reduce((sum, { type, data }) => {
      if (type === 'PaymentReceived') return sum + Number(data.order.amountCents);
      if ('returnedCents' in data) return sum + Number(data.returnedCents);
      return 'taken' in data ? data.taken.reduce((rest, part) => rest - Number(part.amountCents), sum) : sum;
    }, 0);

  it('come to the same in any order, however often each is told', () => {
    const anyOrder = fc
      .array(fc.constantFrom(...told))
      .chain((more) => fc.shuffledSubarray([...told, ...more], { minLength: told.length + more.length }));
    fc.assert(
      fc.property(anyOrder, (heard) => {
        const log: PaymentEvent[] = [requested];
        for (const notice of heard) {
          log.push(...paymentDecider.decide(tell(notice), fold(paymentDecider, log)));
          expect(inWallet(log)).toBeGreaterThanOrEqual(0);
        }
        // 50.00 paid; a refund of 20.00 failed, one of 15.00 stands; one dispute won, one of 10.00 lost.
        expect(inWallet(log)).toBe(2500);
        expect(fold(paymentDecider, log).payments[paymentId]).toMatchObject({
          status: 'received',
          refunds: { re_1: { stage: 'failed' }, re_2: { stage: 'counted' } },
          disputes: { dp_1: { stage: 'won' }, dp_2: { stage: 'lost' } },
          kept: [],
        });
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('a refund that staff ask for', () => {
  const paidFor = [requested, opened, received];
  const asking = { ...payment, requestId: derivedId('refund') };
  const ask = (amountCents?: string, requestId = asking.requestId, actor?: Actor) =>
    new RequestRefund({ ...asking, requestId, reason: 'late', ...(amountCents ? { amountCents } : {}) }, meta(actor));
  const idempotencyKey = `agon-refund-${asking.requestId}`;
  const askedFor = (amountCents: string) =>
    event('RefundRequested', { ...asking, ...money, amountCents, chargeId: 'pi_1', idempotencyKey, reason: 'late' });
  const made = event('RefundMade', { ...asking, refundId: 're_1' });
  const refusedEvent = event('RefundRefused', { ...asking, reason: 'no' });
  const other = derivedId('other refund');

  it('fixes its key before anybody is asked, for what is left at most', () => {
    given(paidFor)
      .when(ask())
      .then([askedFor('5000')]);
    given(paidFor)
      .when(ask('2000'))
      .then([askedFor('2000')]);
    given(paidFor).when(ask('5001')).thenRefused('PAYMENTS.REFUND_TOO_LARGE');
    given([...paidFor, refunded])
      .when(ask('1'))
      .thenRefused('PAYMENTS.REFUND_TOO_LARGE');
    given([requested, opened]).when(ask()).thenRefused('PAYMENTS.NOT_REFUNDABLE');
    expect(allowed(ask('1', other, { id: 'ada', role: 'owner' }))).toBe(false);
    expect(allowed(ask('1', other, { id: 'op', role: 'operator' }))).toBe(true);
  });

  it('leaves no more for the next than is not on its way', () => {
    given([...paidFor, askedFor('3000')])
      .when(ask('2001', other))
      .thenRefused('PAYMENTS.REFUND_TOO_LARGE');
    given([...paidFor, askedFor('3000'), made])
      .when(ask('2001', other))
      .thenRefused('PAYMENTS.REFUND_TOO_LARGE');
    const next = event('RefundRequested', {
      ...askedFor('5000').data,
      requestId: other,
      idempotencyKey: `agon-refund-${other}`,
    });
    given([...paidFor, askedFor('3000'), refusedEvent])
      .when(ask(undefined, other))
      .then([next]);
    given([...paidFor, askedFor('3000')])
      .when(ask('1'))
      .thenRefused('PAYMENTS.EXISTS');
  });

  it('is made or refused once', () => {
    const record = new RecordRefund({ ...asking, refundId: 're_1' }, meta());
    const refuse = new RefuseRefund({ ...asking, reason: 'no' }, meta());
    given([...paidFor, askedFor('3000')])
      .when(record)
      .then([made]);
    given([...paidFor, askedFor('3000'), made])
      .when(record)
      .then([]);
    given([...paidFor, askedFor('3000'), made])
      .when(refuse)
      .then([]);
    given([...paidFor, askedFor('3000')])
      .when(refuse)
      .then([refusedEvent]);
    given(paidFor).when(record).thenRefused('PAYMENTS.UNKNOWN');
  });
});

describe('a plan', () => {
  const told = (
    status: 'incomplete' | 'active' | 'late' | 'unpaid' | 'ended',
    asOfS: number,
    subscriptionId = 'sub_1',
    startedS = Number(subscriptionId.slice(4)),
  ) => ({ kind: 'plan', accountId, planId: 'pro', subscriptionId, status, asOfS, startedS }) as const;
  const changed = ({ kind: _kind, ...data }: ReturnType<typeof told>) => event('PlanChanged', data);
  const noted = ({ kind: _kind, ...data }: ReturnType<typeof told>) => event('PlanNoted', data);
  const ending = (subscriptionId: string) => event('PlanEndRequested', { accountId, subscriptionId });

  it('follows the latest word about it', () => {
    given([])
      .when(tell(told('active', 10)))
      .then([changed(told('active', 10))]);
    given([changed(told('active', 10))])
      .when(tell(told('late', 9)))
      .then([]);
    given([changed(told('active', 10))])
      .when(tell(told('late', 11)))
      .then([changed(told('late', 11))]);
    given([changed(told('ended', 10))])
      .when(tell(told('active', 11)))
      .then([]);
  });

  it('takes the later stage of one second', () => {
    given([changed(told('active', 10))])
      .when(tell(told('incomplete', 10)))
      .then([]);
    given([changed(told('incomplete', 10))])
      .when(tell(told('active', 10)))
      .then([changed(told('active', 10))]);
  });

  it('is not ended by the end of an older one', () => {
    given([changed(told('active', 10, 'sub_2'))])
      .when(tell(told('ended', 11, 'sub_1')))
      .then([noted(told('ended', 11, 'sub_1'))]);
  });

  it('is not brought back by a late word about one that is over', () => {
    const over = [changed(told('ended', 9, 'sub_1')), changed(told('ended', 20, 'sub_2'))];
    given(over)
      .when(tell(told('active', 5, 'sub_1')))
      .then([]);
    given([
      changed(told('active', 10, 'sub_2')),
      noted(told('ended', 30, 'sub_1')),
      changed(told('ended', 20, 'sub_2')),
    ])
      .when(tell(told('active', 25, 'sub_1')))
      .then([]);
  });

  it('replaces an older one, whose end is asked for once', () => {
    const [older, newer] = [told('active', 10, 'sub_1'), told('active', 9, 'sub_2')];
    given([changed(older)])
      .when(tell(newer))
      .then([changed(newer), ending('sub_1')]);
    given([changed(newer)])
      .when(tell(older))
      .then([noted(older), ending('sub_1')]);
    given([changed(older), changed(newer), ending('sub_1')])
      .when(tell(told('late', 11, 'sub_1')))
      .then([noted(told('late', 11, 'sub_1'))]);
    // One that nobody has paid for yet replaces nothing, and may still lapse by itself.
    given([changed(older)])
      .when(tell(told('incomplete', 11, 'sub_2')))
      .then([noted(told('incomplete', 11, 'sub_2'))]);
  });

  it('is the one that still runs when the newer one has ended', () => {
    const [older, newer] = [told('active', 10, 'sub_1'), told('active', 12, 'sub_2')];
    given([changed(older), changed(newer), ending('sub_1')])
      .when(tell(told('ended', 13, 'sub_2')))
      .then([noted(told('ended', 13, 'sub_2')), changed(older)]);
  });

  it('comes to the same in any order, and nobody is left to pay for two', () => {
    const life = (subscriptionId: string, from: number, statuses: readonly Parameters<typeof told>[0][]) =>
      statuses.map((status, i) => told(status, from + i, subscriptionId));
    const heard = [
      ...life('sub_1', 1, ['incomplete', 'active', 'late', 'active', 'ended']),
      ...life('sub_2', 4, ['incomplete', 'active', 'late']),
      ...life('sub_3', 3, ['active', 'unpaid']),
      ...life('sub_4', 8, ['incomplete', 'active', 'ended']),
      ...life('sub_5', 2, ['incomplete']),
    ];
    const anyOrder = fc
      .array(fc.constantFrom(...heard))
      .chain((more) => fc.shuffledSubarray([...heard, ...more], { minLength: heard.length + more.length }));
    fc.assert(
      fc.property(anyOrder, (notices) => {
        const log: PaymentEvent[] = [];
        for (const notice of notices) log.push(...paymentDecider.decide(tell(notice), fold(paymentDecider, log)));
        const { plan, planEndings, subscriptions } = fold(paymentDecider, log);
        expect(plan).toMatchObject({ subscriptionId: 'sub_2', status: 'late', asOfS: 6 });
        expect(planEndings).toContain('sub_3');
        expect(new Set(planEndings).size).toBe(planEndings.length);
        expect(plan).toEqual(subscriptions.sub_2);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is paid at one page at a time', () => {
    const order: Order = { kind: 'plan', planId: 'team', amountCents: '9900', currency: 'USD' };
    const page = event('CheckoutRequested', { accountId, paymentId: derivedId('page'), order });
    const failed = event('CheckoutFailed', { accountId, paymentId: derivedId('page'), reason: 'expired' });
    const ask = new RequestCheckout({ ...payment, order }, meta());
    given([page]).when(ask).thenRefused('PAYMENTS.PLAN_CHECKOUT_OPEN');
    given([page, failed])
      .when(ask)
      .then([event('CheckoutRequested', { ...payment, order })]);
    given([requested])
      .when(new RequestCheckout({ accountId, paymentId: derivedId('page'), order }, meta()))
      .then([page]);
  });

  it('is had once at a time, and ended by asking', () => {
    const plan: Order = { kind: 'plan', planId: 'team', amountCents: '9900', currency: 'USD' };
    given([changed(told('active', 10))])
      .when(new RequestCheckout({ ...payment, order: plan }, meta()))
      .thenRefused('PAYMENTS.PLAN_RUNS');
    const end = new EndPlan({ accountId }, meta());
    given([changed(told('active', 10))])
      .when(end)
      .then([ending('sub_1')]);
    given([changed(told('active', 10)), ending('sub_1')])
      .when(end)
      .then([]);
    given([]).when(end).then([]);
  });

  it('is paid once an invoice', () => {
    const bill = { accountId, planId: 'pro', invoiceId: 'in_1', amountCents: '1900', currency: 'USD' } as const;
    given([])
      .when(tell({ kind: 'plan-paid', ...bill }))
      .then([event('PlanPaid', bill)]);
    given([event('PlanPaid', bill)])
      .when(tell({ kind: 'plan-paid', ...bill }))
      .then([]);
  });

  it('holds while it is charged for, and is the free one when it is not', () => {
    const inForce = (planStatus: string) => planInForce({ planId: 'team', planStatus }).planId;
    expect(['active', 'late'].map(inForce)).toEqual(['team', 'team']);
    expect(['incomplete', 'unpaid', 'ended'].map(inForce)).toEqual(['free', 'free', 'free']);
    given([changed(told('late', 10))])
      .when(tell(told('unpaid', 10)))
      .then([changed(told('unpaid', 10))]);
  });

  it('refuses what is beyond it, and says which plan allows more', () => {
    const refused = (planId: string, count: number) => beyondPlan(planNamed(planId), 'agentsMax', count, accountId);
    expect(refused('free', 3)).toMatchObject({
      code: 'PAYMENTS.PLAN_LIMIT',
      message: expect.stringMatching(/free.*3 agents.*subscribe ada pro/),
    });
    expect(refused('team', 200).message).toMatch(/no larger plan/);
  });

  const claim = { accountId, planId: 'pro', invoiceId: 'in_1', ...money, cause: 'refund' } as const;
  const claimed = (stands: boolean) => ({ kind: 'plan-claim', ...claim, claimId: 're_1', stands }) as const;
  const taken = event('PlanPaymentTaken', { ...claim, claimId: 're_1' });
  const returned = (returnedCents: string) =>
    event('PlanPaymentReturned', { ...claim, claimId: 're_1', returnedCents });

  it('is paid back by the house once, and what failed or was won comes back once', () => {
    given([])
      .when(tell(claimed(true)))
      .then([taken]);
    given([taken])
      .when(tell(claimed(true)))
      .then([]);
    given([taken])
      .when(tell(claimed(false)))
      .then([returned('5000')]);
    given([])
      .when(tell(claimed(false)))
      .then([returned('0')]);
    given([returned('0')])
      .when(tell(claimed(true)))
      .then([]);
  });

  it('allows more the more it costs', () => {
    for (const limit of ['agentsMax', 'matchesPerDayMax', 'requestsPerMinuteMax', 'priority'] as const) {
      const values = plans.map((plan) => plan[limit]);
      expect(values).toEqual([...new Set(values)].sort((a, b) => a - b));
    }
  });
});

describe('a withdrawal', () => {
  const asked = event('WithdrawalAsked', { accountId, withdrawalId, amountCents: '2500', currency: 'USD' });
  const ready = event('PayoutAccountChanged', { accountId, payoutAccountId: 'acct_1', enabled: true, asOfS: 5 });
  const idempotencyKey = `agon-withdrawal-${withdrawalId}`;
  const toPay = event('WithdrawalRequested', { ...asked.data, payoutAccountId: 'acct_1', idempotencyKey });
  const done = event('WithdrawalPaid', { ...asked.data, transferId: 'tr_1' });
  const id = { accountId, withdrawalId };
  const ask = (actor?: Actor) => new AskWithdrawal({ ...id, amountCents: '2500', currency: 'USD' }, meta(actor));
  const approve = new ApproveWithdrawal(id, meta());
  const record = (transferId = 'tr_1') => new RecordTransfer({ ...id, transferId }, meta());
  const fail = new FailWithdrawal({ ...id, reason: 'no' }, meta());

  it('needs an account that can receive', () => {
    given([]).when(ask()).thenRefused('PAYMENTS.NO_PAYOUT_ACCOUNT');
    given([event('PayoutAccountChanged', { ...ready.data, enabled: false })])
      .when(ask())
      .thenRefused('PAYMENTS.NO_PAYOUT_ACCOUNT');
    given([ready]).when(ask()).then([asked]);
    expect(allowed(ask({ id: 'bob', role: 'owner' }))).toBe(false);
  });

  it('fixes its key before anybody is asked to pay', () => {
    given([ready, asked]).when(approve).then([toPay]);
    given([ready, asked, toPay]).when(approve).then([]);
  });

  it('is paid once, by one transfer', () => {
    given([ready, asked, toPay]).when(record()).then([done]);
    given([ready, asked, toPay, done]).when(record()).then([]);
    given([ready, asked, toPay, done]).when(record('tr_2')).thenRefused('PAYMENTS.OTHER_TRANSFER');
  });

  it('is neither asked for nor approved while a payment is disputed', () => {
    const paidFor = [requested, opened, received, ready];
    given([...paidFor, disputed])
      .when(ask())
      .thenRefused('PAYMENTS.DISPUTED');
    given([...paidFor, disputed, lost])
      .when(ask())
      .then([asked]);
    given([...paidFor, asked, disputed])
      .when(approve)
      .then([event('WithdrawalFailed', { ...asked.data, reason: 'a payment is disputed' })]);
    given([...paidFor, asked, disputed, won()])
      .when(approve)
      .then([toPay]);
  });

  it('is cancelled by staff: at once before its key is fixed, and stopped after it', () => {
    const cancel = (actor?: Actor) => new CancelWithdrawal({ ...id, reason: 'no' }, meta(actor));
    const failed = event('WithdrawalFailed', { ...asked.data, reason: 'no' });
    const stopped = event('WithdrawalStopped', { ...asked.data, reason: 'no' });
    given([ready, asked]).when(cancel()).then([failed]);
    given([ready, asked, failed]).when(approve).then([]);
    given([ready, asked, toPay]).when(cancel()).then([stopped]);
    given([ready, asked, toPay, stopped]).when(cancel()).then([]);
    given([ready, asked, toPay, stopped]).when(fail).then([failed]);
    given([ready, asked, toPay, stopped]).when(record()).then([done]);
    given([ready, asked, toPay, stopped])
      .when(tell(cameBack('2500')))
      .then([done, reversed('2500', '2500')]);
    given([ready, asked, toPay, done]).when(cancel()).thenRefused('PAYMENTS.NOT_CANCELLABLE');
    expect(allowed(cancel({ id: 'ada', role: 'owner' }))).toBe(false);
  });

  it('fails only while it may be paid, and is never paid after it failed', () => {
    const failed = event('WithdrawalFailed', { ...asked.data, reason: 'no' });
    given([ready, asked, toPay]).when(fail).then([failed]);
    given([ready, asked, toPay, done]).when(fail).then([]);
    given([ready, asked, toPay, failed]).when(record()).thenRefused('PAYMENTS.OTHER_TRANSFER');
    given([ready, asked, toPay, failed]).when(approve).then([]);
  });

  const cameBack = (amountCents: string, transferId = 'tr_1') =>
    ({ kind: 'transfer-reversed', ...id, transferId, amountCents, currency: 'USD' }) as const;
  const reversed = (amountCents: string, totalCents: string) =>
    event('WithdrawalReversed', { ...id, currency: 'USD', transferId: 'tr_1', amountCents, totalCents });

  it('comes back as far as its transfer was reversed, every part of it once', () => {
    const isPaid = [ready, asked, toPay, done];
    given(isPaid)
      .when(tell(cameBack('1000')))
      .then([reversed('1000', '1000')]);
    given([...isPaid, reversed('1000', '1000')])
      .when(tell(cameBack('1000')))
      .then([]);
    given([...isPaid, reversed('1000', '1000')])
      .when(tell(cameBack('2500')))
      .then([reversed('1500', '2500')]);
    // The first of two, heard of last.
    given([...isPaid, reversed('2500', '2500')])
      .when(tell(cameBack('1000')))
      .then([]);
  });

  it('was paid if it came back, whoever hears of what first', () => {
    given([ready, asked, toPay])
      .when(tell(cameBack('2500')))
      .then([done, reversed('2500', '2500')]);
    given([ready, asked, toPay, done, reversed('2500', '2500')])
      .when(record())
      .then([]);
  });

  it('does not come back by another transfer, or more of it than was paid', () => {
    const isPaid = [ready, asked, toPay, done];
    given(isPaid)
      .when(tell(cameBack('100', 'tr_2')))
      .thenRefused('PAYMENTS.OTHER_TRANSFER');
    given([ready, asked])
      .when(tell(cameBack('100')))
      .thenRefused('PAYMENTS.OTHER_TRANSFER');
    given(isPaid)
      .when(tell(cameBack('2501')))
      .thenRefused('PAYMENTS.OTHER_AMOUNT');
  });

  it('is refused when the wallet has not enough, and not afterwards', () => {
    const refuse = new RefuseWithdrawal({ ...id, reason: 'insufficient', availableCents: '1' }, meta());
    const refusedEvent = event('WithdrawalRefused', { ...asked.data, reason: 'insufficient', availableCents: '1' });
    given([ready, asked]).when(refuse).then([refusedEvent]);
    given([ready, asked, toPay]).when(refuse).then([]);
  });

  it('is told by the latest word about the account, whatever order it came in', () => {
    const said = (enabled: boolean, asOfS: number) =>
      ({ kind: 'payout-account', accountId, payoutAccountId: 'acct_1', enabled, asOfS }) as const;
    given([ready])
      .when(tell(said(false, 4)))
      .then([]);
    given([ready])
      .when(tell(said(false, 6)))
      .then([event('PayoutAccountChanged', { ...ready.data, enabled: false, asOfS: 6 })]);
  });
});
