import { stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Option } from 'commander';
import type { PaymentRow } from '../../projections/payments/table.js';
import { AgonError, formatMoney, parseMoney } from '../../services/kernel/index.js';
import type { CreditPack, Plan } from '../../services/payments/index.js';
import { type AddCommand, type AgonCommand, lazy } from './command.js';
import { estimateMatch } from './estimate.js';
import { colour, type Flags, type Outcome, table } from './output.js';
import { ask, askArena, RECEIPT, type Receipt } from './remote.js';

/** The ledger's queries bring the database's driver; only these commands wait for it. */
const ledgers = () => import('./ledger.js');

const wait = ['--wait', 'until it is paid or given up', false] as const;

type Checkout = Flags & { readonly wait: boolean };

/** `agon wallet`, `agon plan` and `agon ledger`: who has what, and whether it adds up. */
export function addMoneyCommands(program: AgonCommand): void {
  const wallet = program.group('wallet', 'Look at wallets, pay in and out, and cap spending.');
  const ofAccount = ofAccountIn(wallet);
  addPaymentCommands(ofAccount);
  addPurchaseCommands(ofAccount);
  addPlanCommands(program);
  addWalletCommands(wallet, ofAccount);
  addLedgerCommands(program);
}

const ofAccountIn =
  (add: AddCommand): AddCommand =>
  (name, summary) =>
    add(name, summary).argument('<account>', 'whose wallet');

function addPaymentCommands(ofAccount: AddCommand): void {
  const currency = new Option('--currency <code>', 'of the amount').choices(['USD', 'EUR', 'GBP']).default('USD');
  const amount = ['<amount>', 'like 12 or 12.50'] as const;
  ofAccount('deposit', 'Open a page on which money can be paid into a wallet.')
    .argument(...amount)
    .addOption(currency)
    .option(...wait)
    .example('agon wallet deposit ada 25')
    .does(async (dataDir, accountId: string, cash: string, flags: Checkout & { currency: string }) => {
      const field = 'deposit(accountId: String!, amountCents: String!, currency: String!)';
      return checkout(dataDir, field, flags, { accountId, amountCents: centsOf(cash), currency: flags.currency });
    });
  ofAccount('withdraw', 'Pay money out of a wallet to its payout account. Exits 1 if it is refused.')
    .argument(...amount)
    .addOption(currency)
    .does(async (dataDir, accountId: string, cash: string, flags: Flags & { currency: string }) => {
      const field = 'mutation withdraw(accountId: String!, amountCents: String!, currency: String!)';
      const variables = { accountId, amountCents: centsOf(cash), currency: flags.currency };
      return outcomeOf(await ask<Payment>(dataDir, field, PAYMENT, variables));
    });
  // One whose transfer may be under way is over when the provider has said what became of it.
  ofAccount('cancel-withdrawal', 'Stop a withdrawal that is not paid yet, and give the money back. For staff.')
    .argument('<withdrawal>', 'its id, see "agon wallet payments --json"')
    .option('--reason <text>', 'why', 'cancelled')
    .does(async (dataDir, accountId: string, withdrawalId: string, flags: Flags & { reason: string }) => {
      const field = 'mutation cancelWithdrawal(accountId: String!, withdrawalId: String!, reason: String!)';
      const variables = { accountId, withdrawalId, reason: flags.reason };
      return outcomeOf(await ask<Payment>(dataDir, field, PAYMENT, variables), []);
    });
  ofAccount('onboard', 'Set up the account that withdrawals go to.').does(async (dataDir, accountId: string) => {
    const field = 'mutation openPayoutAccount(accountId: String!)';
    const link = await ask<{ url: string }>(dataDir, field, '{ accountId url }', { accountId });
    return { json: link, text: `Set up the payout account of ${accountId} at ${colour.cyan(link.url)}` };
  });
}

function addPurchaseCommands(ofAccount: AddCommand): void {
  const buying = 'Buy a pack of compute credits: at a page on which it can be paid, or from the wallet.';
  ofAccount('buy-credits', buying)
    .argument('<pack>', 'see "agon plan list"')
    .option(...wait)
    .option('--from-wallet', 'pay with money that is in the wallet, at once', false)
    .does(async (dataDir, accountId: string, packId: string, flags: Checkout & { fromWallet: boolean }) => {
      const given = '(accountId: String!, packId: String!)';
      if (!flags.fromWallet) return checkout(dataDir, `buyCredits${given}`, flags, { accountId, packId });
      const field = `mutation buyCreditsFromWallet${given}`;
      const receipt = await ask<Receipt>(dataDir, field, RECEIPT, { accountId, packId });
      const text = `${colour.green('bought')}: the pack ${packId}, from the wallet of ${accountId}`;
      return { json: receipt, text };
    });
  // The wallet follows when the provider confirms it.
  ofAccount('refund', 'Give a payment back the way it came, or a part of it. Exits 1 if it is refused.')
    .argument('<payment>', 'its id, see "agon wallet payments --json"')
    .option('--amount <amount>', 'like 12.50; all that is left when left out')
    .option('--reason <text>', 'why', 'refund')
    .does(async (dataDir, accountId: string, paymentId: string, flags: Flags & { amount?: string; reason: string }) => {
      const field =
        'mutation refundPayment(accountId: String!, paymentId: String!, amountCents: String, reason: String!)';
      const amountCents = flags.amount === undefined ? null : centsOf(flags.amount);
      const variables = { accountId, paymentId, amountCents, reason: flags.reason };
      const payment = await ask<Payment>(dataDir, field, PAYMENT, variables);
      return outcomeOf(payment, ['refund_refused', 'received'], statusOf(payment));
    });
  ofAccount('payments', 'Show the newest payments and withdrawals.').does(async (dataDir, accountId: string) => {
    const field = 'payments(accountId: String!, first: Int)';
    const variables = { accountId, first: 50 };
    const { nodes } = await ask<{ nodes: Payment[] }>(dataDir, field, `{ nodes ${PAYMENT} }`, variables);
    const rows = nodes.map((row) => [row.requestedAt, row.kind, moneyOf(row), statusOf(row), row.url ?? row.detail]);
    return { json: nodes, text: table(['when', 'what', '>amount', 'status', ''], rows) };
  });
}

function addPlanCommands(program: AgonCommand): void {
  const plan = program.group('plan', 'Plans: what they allow, and who is on which.');
  const ofAccount = ofAccountIn(plan);
  plan('list', 'Show the plans with their limits, and the packs of compute credits.').does((dataDir) =>
    showPlans(dataDir),
  );
  ofAccount('show', "Show an owner's plan among the others.").does((dataDir, accountId: string) =>
    showPlans(dataDir, accountId),
  );
  ofAccount('subscribe', 'Open a page on which a plan can be taken.')
    .argument('<plan>', 'pro or team')
    .option(...wait)
    .does((dataDir, accountId: string, planId: string, flags: Checkout) =>
      checkout(dataDir, 'subscribe(accountId: String!, planId: String!)', flags, { accountId, planId }),
    );
  ofAccount('end', 'End the plan; the free one is what remains.').does(async (dataDir, accountId: string) => {
    const field = 'mutation endPlan(accountId: String!)';
    const receipt = await ask<Receipt>(dataDir, field, RECEIPT, { accountId });
    const text = receipt.events.length > 0 ? 'The plan is being ended.' : 'There is no plan to end.';
    return { json: receipt, text };
  });
}

interface BudgetFlags extends Flags {
  readonly currency: string;
  readonly agent?: string;
  readonly perRun?: string;
  readonly perDay?: string;
  readonly total?: string;
}

function addWalletCommands(wallet: AddCommand, ofAccount: AddCommand): void {
  ofAccount('show', 'Show what a wallet holds, what of it can be withdrawn, and its budgets.').does(
    lazy(ledgers, 'showWallet'),
  );
  ofAccount('statement', "Show every movement of a wallet's money, from the log.")
    .option('--currency <code>', 'only this currency')
    .option('--csv', 'comma-separated values for a spreadsheet')
    .does(lazy(ledgers, 'showStatement'));
  ofAccount('budget', 'Cap what a wallet, or one of its agents, may spend. Caps that are not given are lifted.')
    .option('--currency <code>', 'what is capped', 'COMPUTE')
    .option('--agent <id>', 'only what this agent spends')
    .option('--per-run <amount>', 'the most that one match or run may cost')
    .option('--per-day <amount>', 'the most a day, in UTC')
    .option('--total <amount>', 'the most in total')
    .example('agon wallet budget ada --agent ada.mine --per-day 50 --total 1000')
    .does(async (dataDir, accountId: string, flags: BudgetFlags) => {
      const cents = (text: string | undefined) => (text === undefined ? null : parseMoney(text).toString());
      const caps = 'perRunCents: String, perDayCents: String, totalCents: String';
      const field = `mutation setBudget(accountId: String!, currency: String!, agentId: String, ${caps})`;
      const receipt = await ask<Receipt>(dataDir, field, RECEIPT, {
        accountId,
        currency: flags.currency,
        agentId: flags.agent ?? null,
        perRunCents: cents(flags.perRun),
        perDayCents: cents(flags.perDay),
        totalCents: cents(flags.total),
      });
      const text = `${colour.green('set')}: the budget of ${flags.agent ?? accountId} in ${flags.currency}`;
      return { json: receipt, text };
    });
  wallet('estimate', 'Say what a match would cost each seat. Exits 1 if one of them could not pay.')
    .argument('<agents...>', 'by seat')
    .option('--stake <amount>', 'what each seat stakes, like 5 or 2.50', '0')
    .option('--currency <code>', 'of the stake', 'PLAY')
    .does(estimateMatch);
}

function addLedgerCommands(program: AgonCommand): void {
  const ledger = program.group('ledger', 'Check the double-entry ledger.');
  const check = 'Recompute the ledger from the log and compare it row by row. Exits 1 and names the rows that differ.';
  ledger('check', check).does(lazy(ledgers, 'checkLedgerOf'));
  ledger('trial-balance', 'Show all accounts, recomputed from the log. Exits 1 if they do not sum to zero.')
    .option('--csv', 'comma-separated values for a spreadsheet')
    .does(lazy(ledgers, 'showTrialBalance'));
}

/** As the arena tells it: amounts come as texts. */
interface Payment extends Omit<PaymentRow, 'amountCents' | 'returnedCents'> {
  readonly id: string;
  readonly amountCents: string;
  readonly returnedCents: string;
}

const PAYMENT =
  '{ id paymentId accountId kind amountCents currency status returnedCents url detail requestedAt updatedAt }';
const WAIT_BEAT_MS = 500;
/** The provider's pages lapse within a day, and an hour later it has said so. */
const WAIT_MS_MAX = 25 * 3_600_000;

const centsOf = (text: string): string => {
  const cents = parseMoney(text);
  if (cents <= 0n) throw new AgonError('MONEY.INVALID', `"${text}" is not more than zero.`);
  return cents.toString();
};
/** With how much of it went back, where that is not all of it or nothing. */
const statusOf = ({ status, returnedCents, amountCents }: Payment) =>
  returnedCents === '0' || returnedCents === amountCents
    ? status
    : `${status} (${formatMoney(BigInt(returnedCents))} of ${formatMoney(BigInt(amountCents))})`;
const moneyOf = ({ amountCents, currency }: Payment) => `${formatMoney(BigInt(amountCents))} ${currency}`;

/** What has become of a payment; the statuses that are named mean that it was not done. */
function outcomeOf(payment: Payment, bad = ['refused', 'failed'], status = payment.status): Outcome {
  const good = !bad.includes(payment.status);
  const said = good ? colour.green(status) : colour.red(status);
  return { json: payment, text: `${said}: ${moneyOf(payment)} (${payment.detail})`, good };
}

/** Opens a page on which something is paid. With --wait, exits 1 if it is not. */
async function checkout(dataDir: string, field: string, flags: Checkout, variables: object): Promise<Outcome> {
  const payment = await ask<Payment>(dataDir, `mutation ${field}`, PAYMENT, variables);
  if (payment.status === 'failed') throw new AgonError('PAYMENTS.PROVIDER_REFUSED', payment.detail);
  const text = `${moneyOf(payment)} can be paid at ${colour.cyan(payment.url ?? 'a page that is still being made')}`;
  if (!flags.wait) return { json: payment, text };
  if (!flags.json) stdout.write(`${text}\n`);
  const ended = await untilEnded(dataDir, payment);
  const good = ended.status === 'received';
  return { json: ended, text: good ? `${colour.green('received')}: ${moneyOf(ended)}` : ended.status, good };
}

async function untilEnded(dataDir: string, { id, paymentId }: Payment): Promise<Payment> {
  for (let waitedMs = 0; waitedMs < WAIT_MS_MAX; waitedMs += WAIT_BEAT_MS) {
    const found = await ask<Payment | null>(dataDir, 'node(id: ID!)', `{ ... on Payment ${PAYMENT} }`, { id });
    if (found && found.status !== 'open' && found.status !== 'requested') return found;
    await sleep(WAIT_BEAT_MS);
  }
  throw new AgonError('PAYMENTS.NO_ANSWER', `Payment ${paymentId} was neither paid nor given up in a day.`);
}

interface Offers {
  readonly plans: readonly Plan[];
  readonly creditPacks: readonly CreditPack[];
  readonly payer?: { readonly plan: Plan; readonly planStatus: string };
}

/** The plans with their limits, and which one an owner is on. */
async function showPlans(dataDir: string, accountId?: string): Promise<Outcome> {
  const plan = '{ planId title priceCents agentsMax matchesPerDayMax requestsPerMinuteMax priority }';
  const offers = `plans ${plan} creditPacks { packId creditCents priceCents }`;
  const query = accountId
    ? `query ($accountId: String!) { ${offers} payer(accountId: $accountId) { plan ${plan} planStatus } }`
    : `{ ${offers} }`;
  const found = await askArena<Offers>(dataDir, query, accountId ? { accountId } : {});
  const rows = found.plans.map((each) => [
    each.planId === found.payer?.plan.planId ? colour.green(each.planId) : each.planId,
    `${formatMoney(BigInt(each.priceCents))} USD`,
    ...[each.agentsMax, each.matchesPerDayMax, each.requestsPerMinuteMax, each.priority],
  ]);
  const head = ['plan', '>a month', '>agents', '>matches a day', '>requests a minute', '>priority'];
  const packs = found.creditPacks.map(
    ({ packId, creditCents, priceCents }) =>
      `  ${packId}: ${formatMoney(BigInt(creditCents))} credits for ${formatMoney(BigInt(priceCents))} USD`,
  );
  const whose = found.payer ? [`${accountId} is on ${found.payer.plan.planId} (${found.payer.planStatus}).`, ''] : [];
  return { json: found, text: [...whose, table(head, rows), '', 'compute credits', ...packs].join('\n') };
}
