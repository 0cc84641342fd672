import { Option } from 'commander';
import { estimateMatch } from './estimate.js';
import type { Lent, OutputOptions } from './output.js';
import {
  buyCredits,
  cancelWithdrawal,
  deposit,
  endPlan,
  onboard,
  refund,
  showPayments,
  showPlans,
  subscribe,
  withdraw,
} from './payments.js';

/** The ledger's queries bring the database's driver; only these commands wait for it. */
const money = () => import('./money.js');

/** `agon wallet`, `agon plan` and `agon ledger`: who has what, and whether it adds up. */
export function addMoneyCommands({ program, command, run, dataDirOf }: Lent): void {
  const wallet = program
    .command('wallet')
    .description('Look at wallets, pay in and out, and cap spending.')
    .exitOverride();
  const account = ['<account>', 'whose wallet'] as const;
  const currency = new Option('--currency <code>', 'of the amount').choices(['USD', 'EUR', 'GBP']).default('USD');
  const wait = ['--wait', 'until it is paid or given up', false] as const;
  command(wallet, 'deposit', 'Open a page on which money can be paid into a wallet.')
    .argument(...account)
    .argument('<amount>', 'like 12 or 12.50')
    .addOption(currency)
    .option(...wait)
    .addHelpText('after', '\nExample:\n  agon wallet deposit ada 25')
    .action(run((name: string, amount: string, flags) => deposit(dataDirOf(flags), name, amount, flags)));
  command(wallet, 'withdraw', 'Pay money out of a wallet to its payout account. Exits 1 if it is refused.')
    .argument(...account)
    .argument('<amount>', 'like 12 or 12.50')
    .addOption(currency)
    .action(run((name: string, amount: string, flags) => withdraw(dataDirOf(flags), name, amount, flags)));
  command(wallet, 'cancel-withdrawal', 'Stop a withdrawal that is not paid yet, and give the money back. For staff.')
    .argument(...account)
    .argument('<withdrawal>', 'its id, see "agon wallet payments --json"')
    .option('--reason <text>', 'why', 'cancelled')
    .action(run((name: string, id: string, flags) => cancelWithdrawal(dataDirOf(flags), name, id, flags)));
  command(wallet, 'onboard', 'Set up the account that withdrawals go to.')
    .argument(...account)
    .action(run((name: string, flags: OutputOptions) => onboard(dataDirOf(flags), name, flags)));
  command(
    wallet,
    'buy-credits',
    'Buy a pack of compute credits: at a page on which it can be paid, or from the wallet.',
  )
    .argument(...account)
    .argument('<pack>', 'see "agon plan list"')
    .option(...wait)
    .option('--from-wallet', 'pay with money that is in the wallet, at once', false)
    .action(run((name: string, pack: string, flags) => buyCredits(dataDirOf(flags), name, pack, flags)));
  command(wallet, 'refund', 'Give a payment back the way it came, or a part of it. Exits 1 if it is refused.')
    .argument(...account)
    .argument('<payment>', 'its id, see "agon wallet payments --json"')
    .option('--amount <amount>', 'like 12.50; all that is left when left out')
    .option('--reason <text>', 'why', 'refund')
    .action(run((name: string, payment: string, flags) => refund(dataDirOf(flags), name, payment, flags)));
  command(wallet, 'payments', 'Show the newest payments and withdrawals.')
    .argument(...account)
    .action(run((name: string, flags: OutputOptions) => showPayments(dataDirOf(flags), name, flags)));

  const plan = program.command('plan').description('Plans: what they allow, and who is on which.').exitOverride();
  command(plan, 'list', 'Show the plans with their limits, and the packs of compute credits.').action(
    run((flags: OutputOptions) => showPlans(dataDirOf(flags), undefined, flags)),
  );
  command(plan, 'show', "Show an owner's plan among the others.")
    .argument(...account)
    .action(run((name: string, flags: OutputOptions) => showPlans(dataDirOf(flags), name, flags)));
  command(plan, 'subscribe', 'Open a page on which a plan can be taken.')
    .argument(...account)
    .argument('<plan>', 'pro or team')
    .option(...wait)
    .action(run((name: string, planId: string, flags) => subscribe(dataDirOf(flags), name, planId, flags)));
  command(plan, 'end', 'End the plan; the free one is what remains.')
    .argument(...account)
    .action(run((name: string, flags: OutputOptions) => endPlan(dataDirOf(flags), name, flags)));

  command(wallet, 'show', 'Show what a wallet holds, what of it can be withdrawn, and its budgets.')
    .argument('<account>', 'whose wallet')
    .action(run(async (account: string, flags) => (await money()).showWallet(dataDirOf(flags), account, flags)));
  command(wallet, 'statement', "Show every movement of a wallet's money, from the log.")
    .argument('<account>', 'whose wallet')
    .option('--currency <code>', 'only this currency')
    .option('--csv', 'comma-separated values for a spreadsheet')
    .action(run(async (account: string, flags) => (await money()).showStatement(dataDirOf(flags), account, flags)));
  command(wallet, 'budget', 'Cap what a wallet, or one of its agents, may spend. Caps that are not given are lifted.')
    .argument('<account>', 'whose wallet')
    .option('--currency <code>', 'what is capped', 'COMPUTE')
    .option('--agent <id>', 'only what this agent spends')
    .option('--per-run <amount>', 'the most that one match or run may cost')
    .option('--per-day <amount>', 'the most a day, in UTC')
    .option('--total <amount>', 'the most in total')
    .addHelpText('after', '\nExample:\n  agon wallet budget ada --agent ada.mine --per-day 50 --total 1000')
    .action(run(async (account: string, flags) => (await money()).setBudget(dataDirOf(flags), account, flags)));
  command(wallet, 'estimate', 'Say what a match would cost each seat. Exits 1 if one of them could not pay.')
    .argument('<agents...>', 'by seat')
    .option('--stake <amount>', 'what each seat stakes, like 5 or 2.50', '0')
    .option('--currency <code>', 'of the stake', 'PLAY')
    .action(run(async (agents: string[], flags) => estimateMatch(dataDirOf(flags), agents, flags)));

  const ledger = program.command('ledger').description('Check the double-entry ledger.').exitOverride();
  command(
    ledger,
    'check',
    'Recompute the ledger from the log and compare it row by row. Exits 1 and names the rows that differ.',
  ).action(run(async (flags) => (await money()).checkLedgerOf(dataDirOf(flags), flags)));
  command(ledger, 'trial-balance', 'Show all accounts, recomputed from the log. Exits 1 if they do not sum to zero.')
    .option('--csv', 'comma-separated values for a spreadsheet')
    .action(run(async (flags) => (await money()).showTrialBalance(dataDirOf(flags), flags)));
}
