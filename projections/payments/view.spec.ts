import { describe, expect, it } from 'vitest';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { createHandle, derivedId, newMeta, type RecordedEvent, SYSTEM } from '../../services/kernel/index.js';
import { payments as context, type Notice, RequestCheckout, TakeNotice } from '../../services/payments/index.js';
import { Projector } from '../engine/projector.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast } from '../views.js';
import { payments } from './table.js';
import { paymentsView } from './view.js';

const accountId = 'ada';
const paymentId = derivedId('payment');
const currency = 'USD';
const of = { accountId, paymentId, currency } as const;
const paid = { kind: 'paid', ...of, amountCents: '2500', chargeId: 'pi_1' } as const;
const refund = (refundId: string, amountCents: string, failed = false) =>
  ({ kind: 'refund', ...of, refundId, amountCents, failed }) as const;
const dispute = (outcome: 'open' | 'won' | 'lost', amountCents = '2500') =>
  ({ kind: 'dispute', ...of, disputeId: 'dp_1', amountCents, outcome }) as const;

/** The rows of a log, by the real deciders and the real view. */
async function shown(events: readonly RecordedEvent[]) {
  const sink = new MemorySink();
  await new Projector(paymentsView, sink, upcast).project(events);
  return sink.rows(payments);
}

/** How a payment of 25.00 stands after each notice of it. */
async function standing(...notices: readonly Notice[]): Promise<readonly string[]> {
  const store = new MemoryEventStore();
  const handle = createHandle({ store });
  const order = { kind: 'deposit', amountCents: '2500', currency, clearingS: 0 } as const;
  await handle(context, new RequestCheckout({ accountId, paymentId, order }, newMeta(SYSTEM)));
  const stands: string[] = [];
  for (const notice of [paid, ...notices]) {
    await handle(context, new TakeNotice({ accountId, notice }, newMeta(SYSTEM)));
    const [row] = await shown(await store.readAll({ after: 0, limit: 100 }));
    stands.push(`${row?.status} ${row?.returnedCents}`);
  }
  await store.close();
  return stands.slice(1);
}

describe('a payment that is shown', () => {
  it('is partly refunded until all of it went back', async () => {
    expect(await standing(refund('re_1', '500'), refund('re_2', '700'), refund('re_3', '1300'))).toEqual([
      'partly_refunded 500',
      'partly_refunded 1200',
      'refunded 2500',
    ]);
  });

  it('has back what a refund that failed had taken, and nothing for one that never took anything', async () => {
    const failing = [
      refund('re_1', '500'),
      refund('re_2', '700'),
      refund('re_1', '500', true),
      refund('re_3', '9', true),
    ];
    expect(await standing(...failing, refund('re_2', '700', true))).toEqual([
      'partly_refunded 500',
      'partly_refunded 1200',
      'partly_refunded 700',
      'partly_refunded 700',
      'received 0',
    ]);
  });

  it('never has more taken than was paid, whatever refunds and disputes add up to', async () => {
    expect(await standing(refund('re_1', '500'), dispute('open'), refund('re_2', '500'), dispute('won'))).toEqual([
      'partly_refunded 500',
      'disputed 2500',
      'disputed 2500',
      'partly_refunded 1000',
    ]);
  });

  it('stays charged back when the rest of it is refunded', async () => {
    expect(await standing(dispute('open', '1000'), dispute('lost', '1000'), refund('re_1', '1500'))).toEqual([
      'disputed 1000',
      'charged_back 1000',
      'charged_back 2500',
    ]);
  });
});
