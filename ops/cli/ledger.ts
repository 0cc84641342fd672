import { env, stdout } from 'node:process';
import type { DataSource } from 'typeorm';
import { auditLog } from '../../projections/balances/audit.js';
import { checkLedger, type LedgerCheck } from '../../projections/balances/check.js';
import { ledgerSums } from '../../projections/balances/query.js';
import { csv, STATEMENT, statementCells, statementLines } from '../../projections/balances/statement.js';
import { type BalanceRow, balances, postings } from '../../projections/balances/table.js';
import { balancesView } from '../../projections/balances/view.js';
import { upcast } from '../../projections/views.js';
import { AgonError, Folds, formatMoney, parseMoney, systemClock } from '../../services/kernel/index.js';
import { DataFolder, folderLayout, holderOf } from '../../services/runtime/data-folder.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { pursesOf, spentOn, wallet } from '../../services/wallet/index.js';
import { hasLog, readView, withLog } from './offline.js';
import { colour, EXIT, type Outcome, type OutputOptions, table } from './output.js';
import { ask, readArena } from './remote.js';

type CsvOptions = OutputOptions & { readonly csv?: boolean };

type Cents<Names extends string> = { readonly [name in Names]: bigint };
type Caps = { readonly [name in 'perRunCents' | 'perDayCents' | 'totalCents']?: bigint | null | undefined };

interface ShownWallet {
  readonly purses: readonly ({ readonly currency: string } & Cents<
    'availableCents' | 'withdrawableCents' | 'heldCents' | 'owedCents'
  >)[];
  /** What is held and for what, where the log can be read. */
  readonly holds?: readonly { readonly amountCents: bigint; readonly currency: string; readonly purpose: unknown }[];
  readonly frozen: boolean;
  readonly budgets: readonly ({ readonly currency: string; readonly agentId?: string | null | undefined } & Caps &
    Cents<'spentCents' | 'spentTodayCents'>)[];
}

/** From the log where there is one, or else as the arena tells it to whoever signed in there. */
export async function showWallet(dataDir: string, accountId: string): Promise<Outcome> {
  const wallet = hasLog(dataDir) ? await walletInLog(dataDir, accountId) : await walletAtArena(dataDir, accountId);
  const { purses, holds = [], frozen, budgets } = wallet;
  if (purses.length === 0) throw new AgonError('WALLET.EMPTY', `${accountId} has no wallet yet: nothing was paid in.`);
  const rows = purses.map(({ currency, availableCents, withdrawableCents, heldCents, owedCents }) => [
    currency,
    ...[availableCents, withdrawableCents, heldCents, owedCents].map(formatMoney),
  ]);
  const text = [
    table(['', '>available', '>withdrawable', '>held', '>owed'], rows),
    ...holds.map(
      (hold) => `  held ${formatMoney(hold.amountCents)} ${hold.currency} for ${JSON.stringify(hold.purpose)}`,
    ),
    ...(frozen ? [colour.red('Withdrawals are stopped.')] : []),
    ...budgets.map(budgetText),
  ];
  return { json: { accountId, ...wallet }, text: text.join('\n') };
}

const walletInLog = (dataDir: string, accountId: string): Promise<ShownWallet> =>
  withLog(dataDir, async (store) => {
    const now = systemClock();
    const { state } = await new Folds({ store }).load(wallet, accountId, 'tail');
    const budgets = state.budgets.map((budget) => ({
      ...budget,
      spentTodayCents: spentOn(budget, now.slice(0, 10)),
    }));
    return { purses: pursesOf(state, now), holds: state.holds, frozen: state.freezes.length > 0, budgets };
  });

async function walletAtArena(dataDir: string, accountId: string): Promise<ShownWallet> {
  const fields = `{ purses { currency availableCents withdrawableCents heldCents owedCents } frozen
    budgets { currency agentId perRunCents perDayCents totalCents spentCents spentTodayCents } }`;
  return withCents(await ask<object>(dataDir, 'wallet(accountId: String!)', fields, { accountId })) as ShownWallet;
}

/** Amounts come as texts, since JSON's numbers are too small for them. */
const withCents = (shown: object): unknown =>
  JSON.parse(JSON.stringify(shown), (name, value) =>
    name.endsWith('Cents') && typeof value === 'string' ? BigInt(value) : value,
  );

function budgetText(budget: ShownWallet['budgets'][number]): string {
  const { currency, agentId, perRunCents, perDayCents, totalCents, spentCents, spentTodayCents } = budget;
  const cap = (name: string, cents: bigint | null | undefined) =>
    cents === undefined || cents === null ? [] : [`${name} ${formatMoney(cents)}`];
  const caps = [...cap('a run', perRunCents), ...cap('a day', perDayCents), ...cap('in total', totalCents)];
  const spent = `${formatMoney(spentCents)} spent, ${formatMoney(spentTodayCents)} of it today`;
  return `  budget of ${agentId ?? 'all agents'} in ${currency}: ${caps.join(', ') || 'no cap'}; ${spent}`;
}

type StatementFlags = CsvOptions & { readonly currency?: string };

/** Every posting on a player's account, with the balance after each. */
export function showStatement(dataDir: string, accountId: string, options: StatementFlags): Promise<number | Outcome> {
  if (!hasLog(dataDir)) return statementAtArena(dataDir, accountId, options);
  return withLog(dataDir, async (store) => {
    const all = await (await readView(store, balancesView)).rows(postings);
    const wanted = all.filter(
      ({ account, currency }) => account === `player:${accountId}` && (options.currency ?? currency) === currency,
    );
    const lines = [...statementLines(wanted)];
    const rows = lines.map(statementCells);
    return options.csv ? written(csv(STATEMENT, rows)) : { json: lines, text: statementText(rows) };
  });
}

/** As the arena writes it for a spreadsheet, which is all of it in one answer. */
async function statementAtArena(
  dataDir: string,
  accountId: string,
  { currency, csv: asCsv }: StatementFlags,
): Promise<number | Outcome> {
  const wanted = currency === undefined ? '' : `?currency=${encodeURIComponent(currency)}`;
  const path = `/v1/accounts/${encodeURIComponent(accountId)}/statement.csv${wanted}`;
  const text = await readArena(dataDir, path);
  if (asCsv) return written(text);
  const rows = text
    .split('\r\n')
    .slice(1)
    .filter((line) => line !== '')
    .map((line) => line.split(','));
  const lines = rows.map(([position, at, eventType, unit, amount = '0', balance = '0', matchId]) => ({
    position,
    at,
    eventType,
    currency: unit,
    matchId: matchId || null,
    amountCents: parseMoney(amount),
    balanceCents: parseMoney(balance),
  }));
  return { json: lines, text: statementText(rows) };
}

/** Positions and amounts to the right. */
const statementText = (rows: readonly string[][]) =>
  table(
    STATEMENT.map((title, i) => ([0, 4, 5].includes(i) ? `>${title}` : title)),
    rows,
  );

/** What is for a spreadsheet ends as it should there. */
function written(text: string): number {
  stdout.write(text);
  return EXIT.ok;
}

/** All accounts, recomputed from the log. Exits 1 if they do not sum to zero. */
export function showTrialBalance(dataDir: string, options: CsvOptions): Promise<number | Outcome> {
  return withLog(dataDir, async (store) => {
    const rows = await (await readView(store, balancesView)).rows(balances);
    const good = isBalanced(rows);
    if (!options.csv) return { json: { accounts: rows, sums: ledgerSums(rows) }, text: trialText(rows), good };
    stdout.write(csv(TRIAL, trialRows(rows)));
    return good ? EXIT.ok : EXIT.failed;
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
  const head = ['account', 'currency', '>debit', '>credit', '>postings'];
  return `${table(head, trialRows(rows))}\n\n${sums.join('; ') || 'No money has moved yet.'}`;
}

const isBalanced = (rows: readonly BalanceRow[]) => Object.values(ledgerSums(rows)).every((sum) => sum === 0n);

/** What follows from an event takes moments. What is older than this is not under way: it stands still. */
const UNDER_WAY_MS = 60_000;
const SHOWN_MAX = 20;

interface LedgerReport extends LedgerCheck {
  /** What is wrong with the money in the log itself: what was paid twice, and what is stuck. */
  readonly faults: readonly string[];
  /** The ledger does not get on with what is in the log. */
  readonly standsStill: boolean;
}

/** Recomputes the ledger from the log and compares it with the database, beside a running arena or without one. */
export async function checkLedgerOf(dataDir: string): Promise<Outcome> {
  const result = await withLog(dataDir, async (store): Promise<LedgerReport> => {
    const settledBy = new Date(Date.now() - UNDER_WAY_MS).toISOString();
    const ledger = await withDatabase(dataDir, (db) => checkLedger(db, store, upcast));
    const { behindSince, position } = ledger;
    const standsStill = behindSince !== undefined && (position === 0 || behindSince <= settledBy);
    return { ...ledger, faults: await auditLog(store, upcast, settledBy), standsStill };
  });
  const { differences, faults, standsStill, balances: rows } = result;
  const good = differences.length === 0 && faults.length === 0 && isBalanced(rows) && !standsStill;
  return { json: { ...result, balanced: isBalanced(rows), good }, text: checkText(result, good), good };
}

function checkText(checked: LedgerReport, good: boolean): string {
  const {
    differences,
    differencesCount,
    faults,
    standsStill,
    position,
    logPosition,
    postings,
    balances: rows,
  } = checked;
  if (standsStill && position === 0)
    return `${colour.red('not checked')}: the ledger has not been built yet. Start the arena once.`;
  const upTo = position < logPosition ? `position ${position} of ${logPosition}` : `position ${position}`;
  const list = (title: string, all: readonly string[], count: number) => [
    ...(count > 0 ? [`${colour.red(title)}:`, ...all.slice(0, SHOWN_MAX).map((each) => `  ${each}`)] : []),
    ...(count > SHOWN_MAX ? [`  and ${count - SHOWN_MAX} more.`] : []),
  ];
  return [
    trialText(rows),
    '',
    ...(good ? [`${colour.green('checked')}: ${postings} postings up to ${upTo} are what the log says.`] : []),
    ...list(`not the log, up to ${upTo}`, differences, differencesCount),
    ...list('not as it should be in the log', faults, faults.length),
    ...(standsStill ? [`${colour.red('behind')}: the ledger stands still at ${upTo}. Start the arena once.`] : []),
  ].join('\n');
}

/** The read models: those that were named, those of the arena that runs on the folder, or its own, started for the moment. */
async function withDatabase<T>(dataDir: string, use: (db: DataSource) => Promise<T>): Promise<T> {
  const { startPostgres, urlOfRunning } = await import('../engines/postgres.js');
  const { openDatabase } = await import('../../projections/sinks/database.js');
  const folder = folderLayout(dataDir).postgres;
  const reading = async (url: string) => {
    const db = await openDatabase(url);
    return use(db).finally(() => db.destroy());
  };
  const { databaseUrl } = parseConfig({ dataDir }, env);
  if (databaseUrl) return reading(databaseUrl.reveal());
  const holder = holderOf(dataDir);
  if (env.AGON_URL && env.AGON_URL.replace(/\/+$/, '') !== holder?.url) {
    const why = `${env.AGON_URL} keeps its ledger elsewhere. Name its log and its database by AGON_STORE and DATABASE_URL.`;
    throw new AgonError('LEDGER.ELSEWHERE', why);
  }
  const running = holder && urlOfRunning(folder);
  if (running) return reading(running);
  const taken = DataFolder.take(dataDir);
  try {
    const postgres = await startPostgres({ folder });
    return await reading(postgres.url).finally(() => postgres.stop());
  } finally {
    taken.release();
  }
}
