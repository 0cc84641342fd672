import Stripe from 'stripe';
import { AgonError, type Clock, derivedId, formatMoney, type Secret } from '../kernel/index.js';
import type { CheckoutOrder, Notice, Order, PaymentProvider, RealCurrency, TransferOrder } from '../payments/index.js';

const TIMEOUT_MS = 20_000;
const RETRIES = 2;
/** Both ways: an old webhook is a replay, and one from the future would be good for replays until then. */
const TOLERANCE_S = 300;
const PAGE = 100;

interface StripeOptions {
  readonly secretKey: Secret;
  readonly webhookSecret: Secret;
  /** Stripe's own, or one that speaks like it on this machine. */
  readonly url: string;
  readonly clock: Clock;
  /** Where people come back to from Stripe's pages. */
  returnUrl(): string;
}

/** Stripe behind the port: its words in, ours out, and the only file that knows its SDK. */
export function stripeProvider(options: StripeOptions): PaymentProvider {
  const { secretKey, webhookSecret, clock, returnUrl } = options;
  const { protocol, hostname, port } = new URL(options.url);
  const key = secretKey.reveal();
  const stripe = new Stripe(key, {
    protocol: protocol === 'http:' ? 'http' : 'https',
    host: hostname.replace(/^\[|\]$/g, ''),
    ...(port ? { port } : {}),
    timeout: TIMEOUT_MS,
    maxNetworkRetries: RETRIES,
    telemetry: false,
    appInfo: { name: 'agon' },
  });
  const mode = key.includes('_live_') ? 'live' : 'test';

  /** Whose payment this is. Stripe's refunds and disputes carry no metadata of ours, but their payment does. */
  const paymentOf: Whose = async (intent) => {
    if (intent === null) return undefined;
    const found = typeof intent === 'string' ? await answered(() => stripe.paymentIntents.retrieve(intent)) : intent;
    return ours(found.metadata) ?? planOf(found.id);
  };

  /** What was paid for a plan carries our mark on the subscription that the invoice is of. */
  const planOf: Whose = async (intent) => {
    const { data } = await answered(() =>
      stripe.invoicePayments.list({
        payment: { type: 'payment_intent', payment_intent: `${intent}` },
        expand: ['data.invoice'],
        limit: 1,
      }),
    );
    const invoice = data[0]?.invoice;
    return invoice && typeof invoice === 'object' && !('deleted' in invoice) ? planBilled(invoice) : undefined;
  };

  return {
    title: hostname === 'api.stripe.com' ? `Stripe, ${mode} mode` : `Stripe's stand-in at ${options.url}`,
    // Every try, and as much again for the waits between them and for Stripe to finish what nobody waits for any more.
    callMsMax: 2 * TIMEOUT_MS * (1 + RETRIES),

    async openCheckout(order) {
      const back = returnUrl();
      // Stripe refuses a key that comes with other parameters, and ours may have another address by the time it asks
      // again. A session that was made before and never recorded is nobody's: its address was never shown.
      const idempotencyKey = `agon-checkout-${derivedId(order.paymentId, back)}`;
      const session = await answered(() =>
        stripe.checkout.sessions.create(checkoutOf(order, back), { idempotencyKey }),
      );
      if (!session.url) throw new AgonError('PAYMENTS.PROVIDER_REFUSED', `Session ${session.id} has no address.`);
      return { sessionId: session.id, url: session.url };
    },

    async openPayoutAccount(accountId, idempotencyKey) {
      const account = await answered(() =>
        stripe.accounts.create(
          {
            controller: {
              fees: { payer: 'application' },
              losses: { payments: 'application' },
              stripe_dashboard: { type: 'express' },
            },
            capabilities: { transfers: { requested: true } },
            metadata: { agon_account: accountId },
          },
          { idempotencyKey },
        ),
      );
      return { payoutAccountId: account.id };
    },

    async onboardingUrl(account) {
      const { url } = await answered(() =>
        stripe.accountLinks.create({
          account,
          type: 'account_onboarding',
          refresh_url: returnUrl(),
          return_url: returnUrl(),
        }),
      );
      return url;
    },

    async findTransfer(withdrawalId) {
      return answered(async () => {
        for await (const transfer of stripe.transfers.list({ transfer_group: groupOf(withdrawalId), limit: PAGE })) {
          if (transfer.metadata.agon_withdrawal === withdrawalId) return { transferId: transfer.id };
        }
        return undefined;
      });
    },

    async createTransfer(order) {
      const { idempotencyKey } = order;
      const transfer = await answered(() => stripe.transfers.create(transferOf(order), { idempotencyKey }));
      return { transferId: transfer.id };
    },

    async findRefund({ chargeId, requestId }) {
      return answered(async () => {
        for await (const refund of stripe.refunds.list({ payment_intent: chargeId, limit: PAGE })) {
          if (refund.metadata?.agon_refund === requestId) return { refundId: refund.id };
        }
        return undefined;
      });
    },

    async createRefund({ accountId, paymentId, requestId, chargeId, amountCents, idempotencyKey }) {
      const metadata = { agon_account: accountId, agon_payment: paymentId, agon_refund: requestId };
      const order = { payment_intent: chargeId, amount: Number(amountCents), metadata };
      const refund = await answered(() => stripe.refunds.create(order, { idempotencyKey }));
      return { refundId: refund.id };
    },

    async endPlan(subscriptionId) {
      await answered(() => stripe.subscriptions.cancel(subscriptionId)).catch((error: unknown) => {
        // Gone already, which is what was wanted.
        if (!(error instanceof AgonError) || error.code !== 'PAYMENTS.PROVIDER_REFUSED') throw error;
      });
    },

    async readWebhook(body, signature) {
      const event = verified(body, signature);
      return { eventId: event.id, notice: await noticeOf(event, paymentOf) };
    },
  };

  function verified(body: Buffer, signature: string): Stripe.Event {
    const nowMs = Date.parse(clock());
    const secrets = webhookSecret.reveal().split(',');
    let failure: unknown;
    for (const secret of secrets) {
      try {
        const event = stripe.webhooks.constructEvent(body, signature, secret, TOLERANCE_S, undefined, nowMs);
        assertNotAhead(signature, nowMs);
        return event;
      } catch (error) {
        // Whoever signed it with one of the secrets is told what is wrong with it, not that the others did not.
        if (failure === undefined || error instanceof AgonError || isTooOld(error)) failure = error;
      }
    }
    if (failure instanceof AgonError) throw failure;
    if (isTooOld(failure)) {
      throw new AgonError('PAYMENTS.BAD_TIMESTAMP', `The webhook was signed more than ${TOLERANCE_S} s ago.`);
    }
    throw new AgonError(
      'PAYMENTS.BAD_SIGNATURE',
      'The webhook has no signature (scheme v1) of this body with the secret of this endpoint.',
    );
  }
}

const isTooOld = (error: unknown) => error instanceof Error && /timestamp outside/i.test(error.message);

/** The SDK looks at the age alone, and takes what is dated in the future. */
function assertNotAhead(signature: string, nowMs: number): void {
  const times = signature.split(',').filter((part) => part.startsWith('t='));
  const aheadS = Number(times[0]?.slice(2)) - Math.floor(nowMs / 1000);
  if (times.length === 1 && aheadS <= TOLERANCE_S) return;
  throw new AgonError('PAYMENTS.BAD_TIMESTAMP', `The webhook is dated more than ${TOLERANCE_S} s ahead.`);
}

/** What is certain and what is not. Only Stripe's own word that a request was wrong means that nothing was done. */
async function answered<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeError)) throw error;
    const { statusCode, code, message } = error;
    const refused = error instanceof Stripe.errors.StripeInvalidRequestError && [400, 404].includes(statusCode ?? 0);
    if (refused) throw new AgonError('PAYMENTS.PROVIDER_REFUSED', `Stripe refused: ${message}`, { reason: code });
    throw new AgonError('PAYMENTS.NO_ANSWER', `Stripe gave no clear answer (${error.type}): ${message}`);
  }
}

const groupOf = (withdrawalId: string) => `agon-withdrawal-${withdrawalId}`;

const transferOf = ({ accountId, withdrawalId, amountCents, currency, payoutAccountId }: TransferOrder) => ({
  amount: Number(amountCents),
  currency: currency.toLowerCase(),
  destination: payoutAccountId,
  transfer_group: groupOf(withdrawalId),
  metadata: { agon_account: accountId, agon_withdrawal: withdrawalId },
});

function checkoutOf({ accountId, paymentId, order }: CheckoutOrder, returnUrl: string) {
  const metadata = {
    agon_account: accountId,
    agon_payment: paymentId,
    ...(order.kind === 'plan' ? { agon_plan: order.planId } : {}),
  };
  const line = {
    quantity: 1,
    price_data: {
      currency: order.currency.toLowerCase(),
      unit_amount: Number(order.amountCents),
      product_data: { name: titleOf(order) },
      ...(order.kind === 'plan' ? { recurring: { interval: 'month' as const } } : {}),
    },
  };
  return {
    line_items: [line],
    client_reference_id: accountId,
    success_url: `${returnUrl}?payment=${paymentId}&done=1`,
    cancel_url: `${returnUrl}?payment=${paymentId}`,
    metadata,
    ...(order.kind === 'plan'
      ? { mode: 'subscription' as const, subscription_data: { metadata } }
      : { mode: 'payment' as const, payment_intent_data: { metadata } }),
  };
}

function titleOf(order: Order): string {
  if (order.kind === 'plan') return `Agon plan: ${order.planId}`;
  return order.kind === 'credits'
    ? `${formatMoney(BigInt(order.creditCents))} compute credits`
    : 'Deposit into an Agon wallet';
}

type PaymentRef = { accountId: string; paymentId: string };
type PlanInvoice = { accountId: string; planId: string; invoiceId: string };
/** Whose payment, or whose plan, this is. */
type Whose = (intent: string | Stripe.PaymentIntent | null) => Promise<PaymentRef | PlanInvoice | undefined>;

/** One of Stripe's events in our words; undefined for what is none of our business. */
async function noticeOf(event: Stripe.Event, whose: Whose): Promise<Notice | undefined> {
  switch (event.type) {
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded': {
      const session = event.data.object;
      const payment = ours(session.metadata);
      // Some ways to pay take days: completed is not yet paid.
      if (!payment || session.payment_status !== 'paid') return undefined;
      const chargeId = idOf(session.payment_intent ?? session.subscription) ?? session.id;
      return { kind: 'paid', ...payment, ...amountOf(session.amount_total ?? 0, session.currency ?? ''), chargeId };
    }
    case 'checkout.session.async_payment_failed':
    case 'checkout.session.expired': {
      const payment = ours(event.data.object.metadata);
      const reason = event.type === 'checkout.session.expired' ? 'expired' : 'declined';
      return payment && { kind: 'unpaid', ...payment, reason };
    }
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed': {
      const { id: refundId, amount, currency, status, payment_intent: intent } = event.data.object;
      const owner = await whose(intent);
      const failed = status === 'failed' || status === 'canceled';
      if (!owner) return undefined;
      return 'planId' in owner
        ? { ...claimOf(owner, refundId, 'refund', !failed), ...amountOf(amount, currency) }
        : { kind: 'refund', ...owner, ...amountOf(amount, currency), refundId, failed };
    }
    case 'charge.dispute.created':
    case 'charge.dispute.updated':
    case 'charge.dispute.funds_withdrawn':
    case 'charge.dispute.funds_reinstated':
    case 'charge.dispute.closed': {
      const { id: disputeId, amount, currency, status, payment_intent: intent } = event.data.object;
      // A warning is a question of the bank: no money moves.
      if (status.startsWith('warning') || status === 'prevented') return undefined;
      const owner = await whose(intent);
      const outcome = status === 'won' ? 'won' : status === 'lost' ? 'lost' : 'open';
      if (!owner) return undefined;
      return 'planId' in owner
        ? { ...claimOf(owner, disputeId, 'dispute', outcome !== 'won'), ...amountOf(amount, currency) }
        : { kind: 'dispute', ...owner, ...amountOf(amount, currency), disputeId, outcome };
    }
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted':
      return planNotice(event.data.object, event.created);
    case 'invoice.paid': {
      const { amount_paid: amount, currency } = event.data.object;
      const billed = planBilled(event.data.object);
      return billed && amount > 0 ? { kind: 'plan-paid', ...billed, ...amountOf(amount, currency) } : undefined;
    }
    case 'transfer.reversed': {
      const { id: transferId, metadata, amount_reversed: amount, currency } = event.data.object;
      const { agon_account: accountId, agon_withdrawal: withdrawalId } = metadata;
      if (!accountId || !withdrawalId || amount === 0) return undefined;
      return { kind: 'transfer-reversed', accountId, withdrawalId, transferId, ...amountOf(amount, currency) };
    }
    case 'account.updated': {
      const { id: payoutAccountId, metadata, payouts_enabled, capabilities } = event.data.object;
      const accountId = metadata?.agon_account;
      if (!accountId) return undefined;
      const enabled = Boolean(payouts_enabled) && capabilities?.transfers === 'active';
      return { kind: 'payout-account', accountId, payoutAccountId, enabled, asOfS: event.created };
    }
    default:
      return undefined;
  }
}

function planNotice(subscription: Stripe.Subscription, asOfS: number): Notice | undefined {
  const { id: subscriptionId, metadata, status, created: startedS } = subscription;
  const { agon_account: accountId, agon_plan: planId } = metadata;
  if (!accountId || !planId) return undefined;
  return { kind: 'plan', accountId, planId, subscriptionId, status: stageOf(status), asOfS, startedS };
}

function planBilled({ id: invoiceId, parent }: Stripe.Invoice): PlanInvoice | undefined {
  const { agon_account: accountId, agon_plan: planId } = parent?.subscription_details?.metadata ?? {};
  return invoiceId && accountId && planId ? { accountId, planId, invoiceId } : undefined;
}

const claimOf = (owner: PlanInvoice, claimId: string, cause: 'refund' | 'dispute', stands: boolean) =>
  ({ kind: 'plan-claim', ...owner, claimId, cause, stands }) as const;

function ours(metadata: Stripe.Metadata | null): PaymentRef | undefined {
  const { agon_account: accountId, agon_payment: paymentId } = metadata ?? {};
  return accountId && paymentId ? { accountId, paymentId } : undefined;
}

const idOf = (reference: string | { id: string } | null) =>
  reference === null || typeof reference === 'string' ? reference : reference.id;

/** Stripe writes currencies small. One that we never asked for is refused where the notice is taken. */
const amountOf = (amount: number, currency: string) => ({
  amountCents: `${amount}`,
  currency: currency.toUpperCase() as RealCurrency,
});

function stageOf(status: Stripe.Subscription.Status) {
  if (status === 'active' || status === 'trialing') return 'active' as const;
  if (status === 'past_due') return 'late' as const;
  if (status === 'unpaid' || status === 'paused') return 'unpaid' as const;
  return status === 'canceled' || status === 'incomplete_expired' ? ('ended' as const) : ('incomplete' as const);
}
