import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError, formatMoney, parseMoney } from '../../services/kernel/index.js';
import type { CreditPack, Plan } from '../../services/payments/index.js';
import { colour, EXIT, type OutputOptions, print, table } from './output.js';
import { askArena } from './remote.js';

interface PaymentShown {
  readonly id: string;
  readonly paymentId: string;
  readonly kind: string;
  readonly amountCents: string;
  readonly currency: string;
  readonly status: string;
  readonly returnedCents: string;
  readonly url: string | null;
  readonly detail: string;
  readonly requestedAt: string;
}

const FIELDS =
  '{ id paymentId accountId kind amountCents currency status returnedCents url detail requestedAt updatedAt }';
const WAIT_BEAT_MS = 500;
/** The provider's pages lapse within a day, and an hour later it has said so. */
const WAIT_MS_MAX = 25 * 3_600_000;

export interface CheckoutFlags extends OutputOptions {
  /** Wait until it is paid or given up. */
  readonly wait?: boolean;
}

const centsOf = (text: string): string => {
  const cents = parseMoney(text);
  if (cents <= 0n) throw new AgonError('MONEY.INVALID', `"${text}" is not more than zero.`);
  return cents.toString();
};
/** With how much of it went back, where that is not all of it or nothing. */
const statusOf = ({ status, returnedCents, amountCents }: PaymentShown) =>
  returnedCents === '0' || returnedCents === amountCents
    ? status
    : `${status} (${formatMoney(BigInt(returnedCents))} of ${formatMoney(BigInt(amountCents))})`;
const moneyOf = ({ amountCents, currency }: PaymentShown) => `${formatMoney(BigInt(amountCents))} ${currency}`;

export async function deposit(
  dataDir: string,
  accountId: string,
  amount: string,
  flags: CheckoutFlags & { currency: string },
): Promise<number> {
  const mutation = `mutation Deposit($accountId: String!, $amountCents: String!, $currency: String!) {
    payment: deposit(accountId: $accountId, amountCents: $amountCents, currency: $currency) ${FIELDS}
  }`;
  const variables = { accountId, amountCents: centsOf(amount), currency: flags.currency };
  return checkout(dataDir, mutation, variables, flags);
}

export async function buyCredits(
  dataDir: string,
  accountId: string,
  packId: string,
  flags: CheckoutFlags & { fromWallet?: boolean },
): Promise<number> {
  if (flags.fromWallet) {
    const buy = `mutation Buy($accountId: String!, $packId: String!) {
      bought: buyCreditsFromWallet(accountId: $accountId, packId: $packId) { id events position repeated }
    }`;
    const { bought } = await askArena<{ bought: object }>(dataDir, buy, { accountId, packId });
    print(flags, bought, `${colour.green('bought')}: the pack ${packId}, from the wallet of ${accountId}`);
    return EXIT.ok;
  }
  const mutation = `mutation Buy($accountId: String!, $packId: String!) {
    payment: buyCredits(accountId: $accountId, packId: $packId) ${FIELDS}
  }`;
  return checkout(dataDir, mutation, { accountId, packId }, flags);
}

export function subscribe(dataDir: string, accountId: string, planId: string, flags: CheckoutFlags): Promise<number> {
  const mutation = `mutation Subscribe($accountId: String!, $planId: String!) {
    payment: subscribe(accountId: $accountId, planId: $planId) ${FIELDS}
  }`;
  return checkout(dataDir, mutation, { accountId, planId }, flags);
}

async function checkout(
  dataDir: string,
  mutation: string,
  variables: Record<string, unknown>,
  flags: CheckoutFlags,
): Promise<number> {
  const { payment } = await askArena<{ payment: PaymentShown }>(dataDir, mutation, variables);
  if (payment.status === 'failed') throw new AgonError('PAYMENTS.PROVIDER_REFUSED', payment.detail);
  const where = `${moneyOf(payment)} can be paid at ${colour.cyan(payment.url ?? 'a page that is still being made')}`;
  if (!flags.wait) {
    print(flags, payment, where);
    return EXIT.ok;
  }
  if (!flags.json) print(flags, payment, where);
  const ended = await untilEnded(dataDir, payment);
  print(flags, ended, ended.status === 'received' ? `${colour.green('received')}: ${moneyOf(ended)}` : ended.status);
  return ended.status === 'received' ? EXIT.ok : EXIT.failed;
}

async function untilEnded(dataDir: string, payment: PaymentShown): Promise<PaymentShown> {
  const query = `query Payment($id: ID!) { node(id: $id) { ... on Payment ${FIELDS} } }`;
  for (let waitedMs = 0; waitedMs < WAIT_MS_MAX; waitedMs += WAIT_BEAT_MS) {
    const { node: found } = await askArena<{ node: PaymentShown | null }>(dataDir, query, { id: payment.id });
    if (found && found.status !== 'open' && found.status !== 'requested') return found;
    await sleep(WAIT_BEAT_MS);
  }
  throw new AgonError('PAYMENTS.NO_ANSWER', `Payment ${payment.paymentId} was neither paid nor given up in a day.`);
}

async function paymentsOf(dataDir: string, accountId: string): Promise<readonly PaymentShown[]> {
  const query = `query Payments($accountId: String!) { payments(accountId: $accountId, first: 50) { nodes ${FIELDS} } }`;
  return (await askArena<{ payments: { nodes: PaymentShown[] } }>(dataDir, query, { accountId })).payments.nodes;
}

export async function showPayments(dataDir: string, accountId: string, options: OutputOptions): Promise<number> {
  const found = await paymentsOf(dataDir, accountId);
  const rows = found.map((row) => [row.requestedAt, row.kind, moneyOf(row), statusOf(row), row.url ?? row.detail]);
  const head = ['when', 'what', 'amount', 'status', ''];
  print(options, found, table(head, rows, ['left', 'left', 'right', 'left', 'left']));
  return EXIT.ok;
}

export async function withdraw(
  dataDir: string,
  accountId: string,
  amount: string,
  flags: OutputOptions & { currency: string },
): Promise<number> {
  const mutation = `mutation Withdraw($accountId: String!, $amountCents: String!, $currency: String!) {
    payment: withdraw(accountId: $accountId, amountCents: $amountCents, currency: $currency) ${FIELDS}
  }`;
  const variables = { accountId, amountCents: centsOf(amount), currency: flags.currency };
  const { payment } = await askArena<{ payment: PaymentShown }>(dataDir, mutation, variables);
  const { status, detail } = payment;
  const good = !['refused', 'failed'].includes(status);
  print(flags, payment, `${good ? colour.green(status) : colour.red(status)}: ${moneyOf(payment)} (${detail})`);
  return good ? EXIT.ok : EXIT.failed;
}

/** Stops a withdrawal. One whose transfer may be under way is over when the provider has said what became of it. */
export async function cancelWithdrawal(
  dataDir: string,
  accountId: string,
  withdrawalId: string,
  flags: OutputOptions & { reason: string },
): Promise<number> {
  const mutation = `mutation Cancel($accountId: String!, $withdrawalId: String!, $reason: String!) {
    payment: cancelWithdrawal(accountId: $accountId, withdrawalId: $withdrawalId, reason: $reason) ${FIELDS}
  }`;
  const variables = { accountId, withdrawalId, reason: flags.reason };
  const { payment } = await askArena<{ payment: PaymentShown }>(dataDir, mutation, variables);
  print(flags, payment, `${colour.green(payment.status)}: ${moneyOf(payment)} (${payment.detail})`);
  return EXIT.ok;
}

/** Gives back a payment; the wallet follows when the provider confirms it. */
export async function refund(
  dataDir: string,
  accountId: string,
  paymentId: string,
  flags: OutputOptions & { amount?: string; reason: string },
): Promise<number> {
  const mutation = `mutation Refund($accountId: String!, $paymentId: String!, $amountCents: String, $reason: String!) {
    payment: refundPayment(accountId: $accountId, paymentId: $paymentId, amountCents: $amountCents, reason: $reason) ${FIELDS}
  }`;
  const amountCents = flags.amount === undefined ? null : centsOf(flags.amount);
  const variables = { accountId, paymentId, amountCents, reason: flags.reason };
  const { payment } = await askArena<{ payment: PaymentShown }>(dataDir, mutation, variables);
  const { status, detail } = payment;
  const good = status !== 'refund_refused' && status !== 'received';
  const so = statusOf(payment);
  print(flags, payment, `${good ? colour.green(so) : colour.red(so)}: ${moneyOf(payment)} (${detail})`);
  return good ? EXIT.ok : EXIT.failed;
}

export async function onboard(dataDir: string, accountId: string, options: OutputOptions): Promise<number> {
  const mutation = `mutation Onboard($accountId: String!) { openPayoutAccount(accountId: $accountId) { accountId url } }`;
  const { openPayoutAccount: link } = await askArena<{ openPayoutAccount: { url: string } }>(dataDir, mutation, {
    accountId,
  });
  print(options, link, `Set up the payout account of ${accountId} at ${colour.cyan(link.url)}`);
  return EXIT.ok;
}

interface Offers {
  readonly plans: readonly Plan[];
  readonly creditPacks: readonly CreditPack[];
  readonly payer?: { readonly plan: Plan; readonly planStatus: string };
}

const PLAN = '{ planId title priceCents agentsMax matchesPerDayMax requestsPerMinuteMax priority }';

/** The plans with their limits, and which one an owner is on. */
export async function showPlans(
  dataDir: string,
  accountId: string | undefined,
  options: OutputOptions,
): Promise<number> {
  const query = accountId
    ? `query Plans($accountId: String!) { plans ${PLAN} creditPacks { packId creditCents priceCents } payer(accountId: $accountId) { plan ${PLAN} planStatus } }`
    : `{ plans ${PLAN} creditPacks { packId creditCents priceCents } }`;
  const found = await askArena<Offers>(dataDir, query, accountId ? { accountId } : {});
  const rows = found.plans.map((plan) => [
    plan.planId === found.payer?.plan.planId ? colour.green(plan.planId) : plan.planId,
    `${formatMoney(BigInt(plan.priceCents))} USD`,
    ...[plan.agentsMax, plan.matchesPerDayMax, plan.requestsPerMinuteMax, plan.priority].map(String),
  ]);
  const head = ['plan', 'a month', 'agents', 'matches a day', 'requests a minute', 'priority'];
  const align = ['left', 'right', 'right', 'right', 'right', 'right'] as const;
  const packs = found.creditPacks.map(
    ({ packId, creditCents, priceCents }) =>
      `  ${packId}: ${formatMoney(BigInt(creditCents))} credits for ${formatMoney(BigInt(priceCents))} USD`,
  );
  const whose = found.payer ? [`${accountId} is on ${found.payer.plan.planId} (${found.payer.planStatus}).`, ''] : [];
  print(options, found, [...whose, table(head, rows, align), '', 'compute credits', ...packs].join('\n'));
  return EXIT.ok;
}

export async function endPlan(dataDir: string, accountId: string, options: OutputOptions): Promise<number> {
  const mutation = `mutation End($accountId: String!) { endPlan(accountId: $accountId) { id events position repeated } }`;
  const { endPlan: receipt } = await askArena<{ endPlan: { events: string[] } }>(dataDir, mutation, { accountId });
  print(options, receipt, receipt.events.length > 0 ? 'The plan is being ended.' : 'There is no plan to end.');
  return EXIT.ok;
}
