import { stdout } from 'node:process';
import type { DataSource } from 'typeorm';
import { checkLedger, type LedgerCheck } from '../../projections/balances/check.js';
import { ledgerSums } from '../../projections/balances/query.js';
import { csv, STATEMENT, statementCells, statementLines } from '../../projections/balances/statement.js';
import { type BalanceRow, balances, postings } from '../../projections/balances/table.js';
import { balancesView } from '../../projections/balances/view.js';
import { upcast } from '../../projections/views.js';
import { AgonError, formatMoney, parseMoney, systemClock } from '../../services/kernel/index.js';
import { pursesOf, readWallet } from '../../services/wallet/index.js';
import { DataFolder, folderLayout, holderOf } from '../embedded/data-folder.js';
import { readView, withLog } from './offline.js';
import { colour, EXIT, type OutputOptions, print, table } from './output.js';
import { askArena } from './remote.js';

type CsvOptions = OutputOptions & { readonly csv?: boolean };

export function showWallet(dataDir: string, accountId: string, options: OutputOptions): Promise<number> {
  return withLog(dataDir, async (store) => {
    const state = await readWallet(store, upcast, accountId);
    const purses = pursesOf(state, systemClock());
    if (purses.length === 0)
      throw new AgonError('WALLET.EMPTY', `${accountId} has no wallet yet: nothing was paid in.`);
    const { budgets, freezes, holds } = state;
    const rows = purses.map(({ currency, ...cents }) => [currency, ...Object.values(cents).map(formatMoney)]);
    const text = [
      table(['', 'available', 'withdrawable', 'held', 'owed'], rows, ['left', 'right', 'right', 'right', 'right']),
      ...holds.map(
        (hold) => `  held ${formatMoney(hold.amountCents)} ${hold.currency} for ${JSON.stringify(hold.purpose)}`,
      ),
      ...(freezes.length > 0 ? [colour.red('Withdrawals are stopped.')] : []),
      ...budgets.map(budgetText),
    ];
    print(options, { accountId, purses, holds, frozen: freezes.length > 0, budgets }, text.join('\n'));
    return EXIT.ok;
  });
}

type Budget = Awaited<ReturnType<typeof readWallet>>['budgets'][number];

function budgetText({ currency, agentId, perRunCents, perDayCents, totalCents, spentCents }: Budget): string {
  const cap = (name: string, cents: bigint | undefined) =>
    cents === undefined ? [] : [`${name} ${formatMoney(cents)}`];
  const caps = [...cap('a run', perRunCents), ...cap('a day', perDayCents), ...cap('in total', totalCents)];
  const whose = agentId === undefined ? 'all agents' : agentId;
  return `  budget of ${whose} in ${currency}: ${caps.join(', ') || 'no cap'}; ${formatMoney(spentCents)} spent`;
}

/** Every posting on a player's account, with the balance after each. */
export function showStatement(
  dataDir: string,
  accountId: string,
  options: CsvOptions & { currency?: string },
): Promise<number> {
  return withLog(dataDir, async (store) => {
    const all = await (await readView(store, balancesView)).rows(postings);
    const wanted = all.filter(
      ({ account, currency }) => account === `player:${accountId}` && (options.currency ?? currency) === currency,
    );
    const lines = [...statementLines(wanted)];
    const rows = lines.map(statementCells);
    if (options.csv) stdout.write(csv(STATEMENT, rows));
    else print(options, lines, table(STATEMENT, rows, ['right', 'left', 'left', 'left', 'right', 'right', 'left']));
    return EXIT.ok;
  });
}

/** All accounts, recomputed from the log. Exits 1 if they do not sum to zero. */
export function showTrialBalance(dataDir: string, options: CsvOptions): Promise<number> {
  return withLog(dataDir, async (store) => {
    const rows = await (await readView(store, balancesView)).rows(balances);
    if (options.csv) stdout.write(csv(TRIAL, trialRows(rows)));
    else print(options, { accounts: rows, sums: ledgerSums(rows) }, trialText(rows));
    return isBalanced(rows) ? EXIT.ok : EXIT.failed;
  });
}

const TRIAL = ['account', 'currency', 'debit', 'credit', 'postings'];

/** What an account has is a credit of the house to it, what it lacks a debit. */
const trialRows = (rows: readonly BalanceRow[]) =>
  rows.map(({ account, currency, balanceCents, postings }) => [
    account,
    currency,
    balanceCents < 0n ? formatMoney(-balanceCents) : '',
    balanceCents < 0n ? '' : formatMoney(balanceCents),
    `${postings}`,
  ]);

function trialText(rows: readonly BalanceRow[]): string {
  const sums = Object.entries(ledgerSums(rows)).map(([currency, sum]) => `${currency} sums to ${formatMoney(sum)}`);
  const align = ['left', 'left', 'right', 'right', 'right'] as const;
  return `${table(TRIAL, trialRows(rows), align)}\n\n${sums.join('; ') || 'No money has moved yet.'}`;
}

const isBalanced = (rows: readonly BalanceRow[]) => Object.values(ledgerSums(rows)).every((sum) => sum === 0n);

/** Recomputes the ledger from the log and compares it with the database, beside a running arena or without one. */
export async function checkLedgerOf(dataDir: string, options: OutputOptions): Promise<number> {
  const result = await withLog(dataDir, (store) => withDatabase(dataDir, (db) => checkLedger(db, store, upcast)));
  const { differences, position, logPosition, balances: rows } = result;
  const behind = position === 0 && logPosition > 0;
  const good = differences.length === 0 && isBalanced(rows) && !behind;
  print(options, { ...result, balanced: isBalanced(rows), good }, checkText(result, good, behind));
  return good ? EXIT.ok : EXIT.failed;
}

function checkText(
  { differences, position, logPosition, postings, balances: rows }: LedgerCheck,
  good: boolean,
  behind: boolean,
) {
  const upTo = position < logPosition ? `position ${position} of ${logPosition}` : `position ${position}`;
  if (behind) return `${colour.red('not checked')}: the ledger has not been built yet. Start the arena once.`;
  const verdict = good
    ? `${colour.green('checked')}: ${postings} postings up to ${upTo} are what the log says.`
    : `${colour.red('not the log')}: up to ${upTo}`;
  return [trialText(rows), '', verdict, ...differences.map((difference) => `  ${difference}`)].join('\n');
}

/** The read models of a data folder: those of the arena that runs on it, or its own, started for the moment. */
async function withDatabase<T>(dataDir: string, use: (db: DataSource) => Promise<T>): Promise<T> {
  const { startPostgres, urlOfRunning } = await import('../engines/postgres.js');
  const { openDatabase } = await import('../../projections/sinks/database.js');
  const folder = folderLayout(dataDir).postgres;
  const reading = async (url: string) => {
    const db = await openDatabase(url);
    return use(db).finally(() => db.destroy());
  };
  const running = holderOf(dataDir) && urlOfRunning(folder);
  if (running) return reading(running);
  const taken = DataFolder.take(dataDir);
  try {
    const postgres = await startPostgres({ folder });
    return await reading(postgres.url).finally(() => postgres.stop());
  } finally {
    taken.release();
  }
}

interface BudgetFlags extends OutputOptions {
  readonly currency: string;
  readonly agent?: string;
  readonly perRun?: string;
  readonly perDay?: string;
  readonly total?: string;
}

/** Sets caps; a cap that is not given is lifted. */
export async function setBudget(dataDir: string, accountId: string, flags: BudgetFlags): Promise<number> {
  const cents = (text: string | undefined) => (text === undefined ? null : parseMoney(text).toString());
  const variables = {
    accountId,
    currency: flags.currency,
    agentId: flags.agent ?? null,
    perRunCents: cents(flags.perRun),
    perDayCents: cents(flags.perDay),
    totalCents: cents(flags.total),
  };
  const mutation = `mutation Budget($accountId: String!, $currency: String!, $agentId: String, $perRunCents: String,
    $perDayCents: String, $totalCents: String) {
    setBudget(accountId: $accountId, currency: $currency, agentId: $agentId, perRunCents: $perRunCents,
      perDayCents: $perDayCents, totalCents: $totalCents) { id events position repeated }
  }`;
  const { setBudget: receipt } = await askArena<{ setBudget: object }>(dataDir, mutation, variables);
  print(flags, receipt, `${colour.green('set')}: the budget of ${flags.agent ?? accountId} in ${flags.currency}`);
  return EXIT.ok;
}

interface SeatCost {
  readonly agentId: string;
  readonly accountId: string;
  readonly stakeCents: string;
  readonly currency: string;
  readonly computeCents: string;
  readonly refusal: string | null;
}

/** What a match would cost each seat. Exits 1 if one of them could not pay. */
export async function estimateMatch(
  dataDir: string,
  agents: readonly string[],
  options: OutputOptions & { stake: string; currency: string },
): Promise<number> {
  const query = `query Estimate($agents: [String!]!, $stakeCents: String!, $currency: String!) {
    estimateMatch(agents: $agents, stakeCents: $stakeCents, currency: $currency)
      { agentId accountId stakeCents currency computeCents refusal }
  }`;
  const variables = { agents, stakeCents: parseMoney(options.stake).toString(), currency: options.currency };
  const { estimateMatch: costs } = await askArena<{ estimateMatch: SeatCost[] }>(dataDir, query, variables);
  const rows = costs.map(({ agentId, accountId, stakeCents, currency, computeCents, refusal }) => [
    agentId,
    accountId,
    `${formatMoney(BigInt(stakeCents))} ${currency}`,
    `${formatMoney(BigInt(computeCents))} COMPUTE`,
    refusal ?? colour.green('yes'),
  ]);
  const head = ['agent', 'account', 'stake', 'compute', 'can pay'];
  print(options, costs, table(head, rows, ['left', 'left', 'right', 'right', 'left']));
  return costs.every(({ refusal }) => refusal === null) ? EXIT.ok : EXIT.failed;
}
