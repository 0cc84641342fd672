import type { DataSource } from 'typeorm';
import type { EventStore, Upcaster } from '../../services/kernel/index.js';
import { select } from '../engine/page.js';
import { type AnyTable, columnName, keyOf, keyText } from '../engine/table.js';
import { postingsOf, type RecordedMoney } from './ledger.js';
import { type BalanceRow, balances, type PostingRow, postings } from './table.js';
import { balancesView } from './view.js';

const PAGE = 4_096;
const DIFFERENCES_MAX = 20;

export interface LedgerCheck {
  /** How far the ledger has come, and how far the log. */
  readonly position: number;
  readonly logPosition: number;
  /** When the first event was recorded that the ledger has still to take in; undefined if there is none. */
  readonly behindSince: string | undefined;
  readonly postings: number;
  /** Rows that are not what the log says, as sentences; at most twenty of all that there are. */
  readonly differences: readonly string[];
  readonly differencesCount: number;
  readonly balances: readonly BalanceRow[];
}

/**
 * Recomputes the ledger from the log and compares it with the database, row by row. A ledger that is behind is compared
 * as far as it has come. The database is read as it stood at one moment, so a running arena does no harm; a build is not
 * swapped in meanwhile, since what it had committed by that moment would only be a part of its rows.
 */
export async function checkLedger(db: DataSource, store: EventStore, upcast: Upcaster): Promise<LedgerCheck> {
  const logPosition = await store.lastPosition();
  const wanted = new Set(balancesView.types);
  return db.transaction('REPEATABLE READ', async (manager) => {
    const kept = manager as unknown as DataSource;
    // The moment is the first query's, and this is none.
    await kept.query(`LOCK TABLE ${postings.name}, ${balances.name} IN ACCESS SHARE MODE`);
    const position = await checkpointOf(kept);
    const found: string[] = [];
    const expected = new Map<string, BalanceRow>();
    let count = 0;
    for (let after = 0; after < position; ) {
      const page = (await store.readAll({ after, limit: PAGE })).filter((event) => event.position <= position);
      const upTo = page.at(-1)?.position ?? position;
      const money = page.filter(({ type }) => wanted.has(type));
      const rows = money.flatMap((event) => postingsOf(upcast(event) as RecordedMoney));
      found.push(...differences(postings, rows, await postingsIn(kept, after, upTo)));
      for (const row of rows) add(expected, row);
      count += rows.length;
      after = upTo;
    }
    found.push(...differences(postings, [], await select(kept, postings, 'WHERE position > $1', [position])));
    const balanced = await select(kept, balances, 'ORDER BY account, currency');
    found.push(...differences(balances, [...expected.values()], balanced));
    const shown = { differences: found.slice(0, DIFFERENCES_MAX), differencesCount: found.length };
    const behindSince = await firstMoneyAfter(store, position);
    return { position, logPosition, behindSince, postings: count, ...shown, balances: balanced };
  });
}

async function firstMoneyAfter(store: EventStore, position: number): Promise<string | undefined> {
  const wanted = new Set(balancesView.types);
  for (let after = position; ; ) {
    const page = await store.readAll({ after, limit: PAGE });
    const next = page.find(({ type }) => wanted.has(type));
    const last = page.at(-1);
    if (next || !last) return next?.time;
    after = last.position;
  }
}

/** Rows by other rules than these tell nothing; they are built anew at the next start. */
async function checkpointOf(db: DataSource): Promise<number> {
  const [row] = await db.query('SELECT version, position FROM checkpoints WHERE view = $1', [balancesView.name]);
  return row?.version === balancesView.version ? Number(row.position) : 0;
}

const postingsIn = (db: DataSource, after: number, upTo: number): Promise<PostingRow[]> =>
  select(db, postings, 'WHERE position > $1 AND position <= $2', [after, upTo]);

function add(sums: Map<string, BalanceRow>, { account, currency, amountCents }: PostingRow): void {
  const key = keyText([account, currency]);
  const before = sums.get(key) ?? { account, currency, balanceCents: 0n, postings: 0 };
  const balanceCents = before.balanceCents + amountCents;
  sums.set(key, { account, currency, balanceCents, postings: before.postings + 1 });
}

function differences(table: AnyTable, expected: readonly object[], kept: readonly object[]): string[] {
  const byKey = (rows: readonly object[]) => new Map(rows.map((row) => [keyText(keyOf(table, row)), row]));
  const [should, is] = [byKey(expected), byKey(kept)];
  const found: string[] = [];
  for (const [key, row] of should) {
    const other = is.get(key) as Record<string, unknown> | undefined;
    if (!other) found.push(`${nameOf(table, row)} is missing.`);
    else {
      const wrong = Object.entries(row).filter(([column, value]) => other[column] !== value);
      for (const [column, value] of wrong) {
        found.push(`${nameOf(table, row)}: ${columnName(column)} is ${other[column]}, and the log says ${value}.`);
      }
    }
  }
  for (const [key, row] of is) if (!should.has(key)) found.push(`${nameOf(table, row)} is not in the log.`);
  return found;
}

/** @example postings (position 12, line 0) */
const nameOf = (table: AnyTable, row: object) => {
  const values = table.key.map((column) => `${columnName(column)} ${(row as Record<string, unknown>)[column]}`);
  return `${table.name} (${values.join(', ')})`;
};
