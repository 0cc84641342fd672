import type { DataSource } from 'typeorm';
import { formatMoney } from '../../services/kernel/index.js';
import { select } from '../engine/page.js';
import { balancesOf } from './query.js';
import { type PostingRow, postings } from './table.js';

const PAGE = 1_000;

export const STATEMENT = ['position', 'at', 'event', 'currency', 'amount', 'balance', 'match'] as const;

type StatementLine = Omit<PostingRow, 'line' | 'account'> & { readonly balanceCents: bigint };

/** The postings of one account, oldest first, each with the balance after it. */
export function* statementLines(
  rows: Iterable<PostingRow>,
  sums = new Map<string, bigint>(),
): Generator<StatementLine> {
  for (const { position, at, eventType, currency, amountCents, matchId } of rows) {
    const balanceCents = (sums.get(currency) ?? 0n) + amountCents;
    sums.set(currency, balanceCents);
    yield { position, at, eventType, currency, amountCents, balanceCents, matchId };
  }
}

export const statementCells = (line: StatementLine): string[] => [
  `${line.position}`,
  line.at,
  line.eventType,
  line.currency,
  formatMoney(line.amountCents),
  formatMoney(line.balanceCents),
  line.matchId ?? '',
];

/** A player's whole statement, currency by currency, a page at a time: however long it is, little of it is in memory. */
export async function* statementCsv(db: DataSource, accountId: string, wanted?: string): AsyncGenerator<string> {
  yield csv(STATEMENT, []);
  const held = await balancesOf(db, accountId);
  for (const { currency } of held.filter((row) => (wanted ?? row.currency) === row.currency)) {
    const sums = new Map<string, bigint>();
    for (let after = 0n; ; ) {
      const rows = await select(
        db,
        postings,
        `WHERE account = $1 AND currency = $2 AND position > $3 ORDER BY position LIMIT ${PAGE}`,
        [`player:${accountId}`, currency, after.toString()],
      );
      yield lines([...statementLines(rows, sums)].map(statementCells));
      const last = rows.at(-1);
      if (!last || rows.length < PAGE) break;
      after = last.position;
    }
  }
}

/**
 * RFC 4180. A cell that a spreadsheet would take for a formula is marked as text; plain numbers are left alone.
 *
 * @example csv(['who', 'amount'], [['=cmd()', '-1.50']]) // who,amount and '=cmd(),-1.50
 */
export function csv(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return lines([head, ...rows]);
}

const lines = (rows: readonly (readonly string[])[]) => rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');

function cell(text: string): string {
  const isNumber = /^-?\d+(\.\d+)?$/.test(text);
  const safe = /^[=+\-@\t\r]/.test(text) && !isNumber ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
