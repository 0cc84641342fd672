import { setTimeout as sleep } from 'node:timers/promises';
import { payerById, paymentById } from '../../projections/payments/query.js';
import type { PaymentRow } from '../../projections/payments/table.js';
import { AgonError, derivedId } from '../../services/kernel/index.js';
import {
  AskWithdrawal,
  CancelWithdrawal,
  EndPlan,
  OFFER_CURRENCY,
  type Order,
  packNamed,
  planNamed,
  RequestCheckout,
  RequestPayoutAccount,
  RequestRefund,
  realCurrency,
} from '../../services/payments/index.js';
import { BuyCredits, FreezeWallet, GrantCredits, SetBudget, UnfreezeWallet } from '../../services/wallet/index.js';
import { metaOf, type RequestContext } from '../auth/actor.js';
import { type GatewayPorts, providerIn } from '../ports.js';
import { type AskPorts, asks, assertAccount, type Receipt, send } from './ask.js';

type Ports = AskPorts & Pick<GatewayPorts, 'load' | 'database' | 'payments' | 'depositClearingS'>;

const WAIT_MS = 15_000;
const BEAT_MS = 10;

type Grant = Omit<GrantCredits['data'], 'currency'>;

export async function grantCredits(ports: Ports, context: RequestContext, data: Grant): Promise<Receipt> {
  const meta = metaOf(ports, context, 'GrantCredits');
  await assertAccount(ports, data.accountId);
  return send(ports, data.accountId, new GrantCredits({ ...data, currency: 'PLAY' }, meta));
}

const freeze = asks(FreezeWallet, ({ accountId }) => accountId);
const unfreeze = asks(UnfreezeWallet, ({ accountId }) => accountId);

type Freeze = Pick<FreezeWallet['data'], 'accountId' | 'reason'> & { readonly frozen: boolean };

/** Stops or allows withdrawals from a wallet. Play goes on. */
export const freezeWallet = (ports: Ports, context: RequestContext, { frozen, ...data }: Freeze) =>
  (frozen ? freeze : unfreeze)(ports, context, data);

/** A cap that is left out is lifted. */
export async function setBudget(ports: Ports, context: RequestContext, data: SetBudget['data']): Promise<Receipt> {
  const meta = metaOf(ports, context, 'SetBudget');
  await assertAccount(ports, data.accountId);
  return send(ports, data.accountId, new SetBudget(data, meta));
}

/** Opens a checkout. The wallet is credited when the provider has confirmed it. */
export async function deposit(ports: Ports, context: RequestContext, data: Amount): Promise<PaymentRow> {
  const { accountId, amountCents } = data;
  const [currency, clearingS] = [real(data.currency), ports.depositClearingS];
  return checkout(ports, context, accountId, { kind: 'deposit', amountCents, currency, clearingS });
}

type Amount = { readonly accountId: string; readonly amountCents: string; readonly currency: string };
type Pack = { readonly accountId: string; readonly packId: string };

export async function buyCredits(ports: Ports, context: RequestContext, pack: Pack): Promise<PaymentRow> {
  const { accountId, packId } = pack;
  const { creditCents, priceCents: amountCents } = packNamed(packId);
  const order = { kind: 'credits', packId, creditCents, amountCents, currency: OFFER_CURRENCY } as const;
  return checkout(ports, context, accountId, order);
}

/** With money that is in the wallet. */
export async function buyCreditsFromWallet(ports: Ports, context: RequestContext, pack: Pack): Promise<Receipt> {
  const { accountId, packId } = pack;
  const { creditCents, priceCents: amountCents } = packNamed(packId);
  const meta = metaOf(ports, context, 'BuyCredits');
  const paid = { amountCents, currency: OFFER_CURRENCY };
  return send(ports, accountId, new BuyCredits({ accountId, packId, creditCents, paid }, meta));
}

type Plan = { readonly accountId: string; readonly planId: string };

export async function subscribe(ports: Ports, context: RequestContext, plan: Plan): Promise<PaymentRow> {
  const { accountId, planId } = plan;
  const { priceCents: amountCents } = planNamed(planId);
  if (amountCents === '0')
    throw new AgonError('PAYMENTS.FREE_PLAN', `The plan ${planId} costs nothing: end the other one.`);
  return checkout(ports, context, accountId, { kind: 'plan', planId, amountCents, currency: OFFER_CURRENCY });
}

async function checkout(ports: Ports, context: RequestContext, accountId: string, order: Order): Promise<PaymentRow> {
  providerIn(ports);
  const meta = metaOf(ports, context, 'RequestCheckout');
  await assertAccount(ports, accountId);
  const paymentId = derivedId(meta.id, 'payment');
  await send(ports, paymentId, new RequestCheckout({ accountId, paymentId, order }, meta));
  return settled(ports, paymentId, ['requested']);
}

const end = asks(EndPlan, ({ accountId }) => accountId);

export async function endPlan(ports: Ports, context: RequestContext, data: { accountId: string }): Promise<Receipt> {
  providerIn(ports);
  return end(ports, context, data);
}

type Refund = Omit<RequestRefund['data'], 'requestId'>;

/** Gives a payment, or a part of it, back the way it came. */
export async function refundPayment(ports: Ports, context: RequestContext, data: Refund): Promise<PaymentRow> {
  providerIn(ports);
  const meta = metaOf(ports, context, 'RequestRefund');
  const { paymentId } = data;
  await send(ports, paymentId, new RequestRefund({ ...data, requestId: derivedId(meta.id, 'refund') }, meta));
  return settled(ports, paymentId, ['refund_requested']);
}

/** Sets up the account that withdrawals go to. */
export async function openPayoutAccount(
  ports: Ports,
  context: RequestContext,
  { accountId }: { accountId: string },
): Promise<{ accountId: string; url: string }> {
  const provider = providerIn(ports);
  const meta = metaOf(ports, context, 'RequestPayoutAccount');
  await assertAccount(ports, accountId);
  await send(ports, accountId, new RequestPayoutAccount({ accountId }, meta));
  const payer = () => payerById(ports.database, accountId);
  const { payoutAccountId, payoutDetail } = await until(payer, (row) => row.payoutDetail !== 'requested');
  if (payoutAccountId === null)
    throw new AgonError('PAYMENTS.NO_ANSWER', `There is no payout account yet: ${payoutDetail}.`);
  return { accountId, url: await provider.onboardingUrl(payoutAccountId) };
}

/** Pays money out to the payout account. It is held until it is paid. */
export async function withdraw(
  ports: Ports,
  context: RequestContext,
  { currency, ...data }: Amount,
): Promise<PaymentRow> {
  providerIn(ports);
  const meta = metaOf(ports, context, 'AskWithdrawal');
  const withdrawalId = derivedId(meta.id, 'withdrawal');
  await send(ports, withdrawalId, new AskWithdrawal({ ...data, withdrawalId, currency: real(currency) }, meta));
  return settled(ports, withdrawalId, ['asked', 'requested']);
}

type Cancel = CancelWithdrawal['data'];
const cancel = asks(CancelWithdrawal, ({ withdrawalId }) => withdrawalId);

/** Stops a withdrawal that is not paid yet, and gives the money back. */
export async function cancelWithdrawal(ports: Ports, context: RequestContext, data: Cancel): Promise<PaymentRow> {
  const { id } = await cancel(ports, context, data);
  return settled(ports, id, ['asked', 'requested']);
}

/** The row once it has left these states, or as it is when that takes too long. */
async function settled({ database }: Ports, paymentId: string, waiting: readonly string[]): Promise<PaymentRow> {
  const look = () => paymentById(database, paymentId);
  const row = await until(look, (found) => found !== undefined && !waiting.includes(found.status));
  if (!row) throw new AgonError('PAYMENTS.UNKNOWN', `There is no payment ${paymentId} yet. Look again in a moment.`);
  return row;
}

async function until<T>(look: () => Promise<T>, good: (found: T) => boolean): Promise<T> {
  let found = await look();
  for (let waitedMs = 0; !good(found) && waitedMs < WAIT_MS; waitedMs += BEAT_MS) {
    await sleep(BEAT_MS);
    found = await look();
  }
  return found;
}

function real(currency: string) {
  const parsed = realCurrency.safeParse(currency);
  if (parsed.success) return parsed.data;
  throw new AgonError('PAYMENTS.BAD_CURRENCY', `${currency} is not one of ${realCurrency.options.join(', ')}.`);
}
