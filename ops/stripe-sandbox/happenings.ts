import type { Books, Thing } from './books.js';

/** Tells the world: an event, with the object as it is now. */
export type Emit = (type: string, object: Thing) => void;

/** Something that cannot happen to a thing in its state. */
export class Impossible extends Error {}

export type Happenings = ReturnType<typeof happeningsOf>;

/** What people and banks do on Stripe's side. Each changes the books and emits what Stripe would. */
export function happeningsOf(books: Books, emit: Emit) {
  const openSession = (id: string) => {
    const session = books.get(id);
    if (session.status !== 'open') throw new Impossible(`The session is ${String(session.status)}.`);
    return session;
  };

  /** Changes a thing, and tells what has become of it. */
  const become = (event: string, id: string, fields: Record<string, unknown>): Thing => {
    const thing = books.change(id, fields);
    emit(event, thing);
    return thing;
  };

  const metadataOf = (data: unknown) => (data as { metadata?: Record<string, string> } | undefined)?.metadata ?? {};

  const paid = (intentId: string): Thing => {
    const intent = books.find(intentId);
    if (intent?.status !== 'succeeded') throw new Impossible(`There is no paid payment ${intentId}.`);
    return intent;
  };

  function payOnce(session: Thing): Record<string, unknown> {
    const { amount_total: amount, currency, payment_intent_data: data } = session;
    const metadata = metadataOf(data);
    const intent = books.make('pi', 'payment_intent', { amount, currency, metadata, status: 'processing' });
    emit('payment_intent.created', intent);
    const of = { amount, currency, metadata, payment_intent: intent.id };
    const charge = books.make('ch', 'charge', { ...of, paid: true, amount_refunded: 0, status: 'succeeded' });
    emit('charge.succeeded', charge);
    const status = { status: 'succeeded', amount_received: amount, latest_charge: charge.id };
    become('payment_intent.succeeded', intent.id, status);
    return { payment_intent: intent.id };
  }

  function payMonthly(session: Thing): Record<string, unknown> {
    const { amount_total: amount, currency, subscription_data: data } = session;
    const metadata = metadataOf(data);
    const subscription = books.make('sub', 'subscription', { metadata, status: 'incomplete' });
    emit('customer.subscription.created', subscription);
    const parent = {
      type: 'subscription_details',
      subscription_details: { subscription: subscription.id, metadata },
    };
    // The payment of an invoice carries no metadata of the subscription's.
    const { payment_intent } = payOnce({ ...session, payment_intent_data: {} });
    const bill = { amount_paid: amount, amount_due: amount, currency, parent, status: 'paid' };
    const invoice = books.make('in', 'invoice', bill);
    const payment = { type: 'payment_intent', payment_intent };
    books.make('inpay', 'invoice_payment', {
      invoice: invoice.id,
      payment,
      amount_paid: amount,
      currency,
      status: 'paid',
    });
    emit('invoice.paid', invoice);
    become('customer.subscription.updated', subscription.id, { status: 'active' });
    return { subscription: subscription.id };
  }

  return {
    pay(sessionId: string): Thing {
      const session = openSession(sessionId);
      const paidBy = session.mode === 'subscription' ? payMonthly(session) : payOnce(session);
      books.move(String(session.currency), Number(session.amount_total));
      const completed = { ...paidBy, status: 'complete', payment_status: 'paid', url: null };
      return become('checkout.session.completed', sessionId, completed);
    },

    decline(sessionId: string): Thing {
      const { amount_total: amount, currency } = openSession(sessionId);
      const error = { type: 'card_error', code: 'card_declined', message: 'Your card was declined.' };
      const intent = { amount, currency, metadata: {}, status: 'requires_payment_method', last_payment_error: error };
      emit('payment_intent.payment_failed', books.make('pi', 'payment_intent', intent));
      return books.get(sessionId);
    },

    expire(sessionId: string): Thing {
      openSession(sessionId);
      return become('checkout.session.expired', sessionId, { status: 'expired', url: null });
    },

    onboard(accountId: string): Thing {
      const ready = { payouts_enabled: true, details_submitted: true, capabilities: { transfers: 'active' } };
      return become('account.updated', accountId, ready);
    },

    refund(intentId: string, amount: number, metadata: Record<string, string>, fails = false): Thing {
      const intent = paid(intentId);
      const charge = books.get(String(intent.latest_charge));
      const left = Number(charge.amount) - Number(charge.amount_refunded);
      if (amount < 1 || amount > left) throw new Impossible(`${left} are left to be refunded, not ${amount}.`);
      const { currency } = intent;
      const of = { amount, currency, charge: charge.id, payment_intent: intentId, metadata };
      const refund = books.make('re', 'refund', { ...of, status: fails ? 'pending' : 'succeeded' });
      emit('refund.created', refund);
      if (fails) {
        return become('refund.failed', refund.id, { status: 'failed', failure_reason: 'lost_or_stolen_card' });
      }
      books.move(String(currency), -amount);
      const total = Number(charge.amount_refunded) + amount;
      const refunded = { amount_refunded: total, refunded: total === charge.amount };
      become('charge.refunded', charge.id, refunded);
      return refund;
    },

    dispute(intentId: string): Thing {
      const intent = paid(intentId);
      if (books.list('dispute').some((each) => each.payment_intent === intentId)) {
        throw new Impossible(`${intentId} is disputed already.`);
      }
      const { amount, currency, latest_charge: charge } = intent;
      const of = { amount, currency, charge, payment_intent: intentId, metadata: {}, reason: 'fraudulent' };
      const dispute = books.make('dp', 'dispute', { ...of, status: 'needs_response' });
      books.move(String(currency), -Number(amount));
      emit('charge.dispute.created', dispute);
      emit('charge.dispute.funds_withdrawn', dispute);
      return dispute;
    },

    closeDispute(disputeId: string, outcome: 'won' | 'lost'): Thing {
      const dispute = books.find(disputeId);
      if (dispute?.status !== 'needs_response') throw new Impossible(`There is no open dispute ${disputeId}.`);
      const closed = books.change(disputeId, { status: outcome });
      if (outcome === 'won') {
        books.move(String(closed.currency), Number(closed.amount));
        emit('charge.dispute.funds_reinstated', closed);
      }
      emit('charge.dispute.closed', closed);
      return closed;
    },

    reverse(transferId: string, amount: number): Thing {
      const transfer = books.find(transferId);
      const before = Number(transfer?.amount_reversed);
      if (transfer?.object !== 'transfer' || amount < 1 || before + amount > Number(transfer.amount)) {
        throw new Impossible(`${amount} of transfer ${transferId} cannot be reversed.`);
      }
      books.move(String(transfer.currency), amount);
      const total = before + amount;
      const reversed = { amount_reversed: total, reversed: total === transfer.amount };
      return become('transfer.reversed', transferId, reversed);
    },

    cancel(subscriptionId: string): Thing {
      const canceled = { status: 'canceled', canceled_at: books.nowS() };
      return become('customer.subscription.deleted', subscriptionId, canceled);
    },
  };
}
