import type { ArenaEvent } from '../../services/arena/index.js';
import { invariant, type RecordedEvent } from '../../services/kernel/index.js';
import type { WalletEvent } from '../../services/wallet/index.js';
import { type RowRef, rowRef } from '../engine/table.js';
import { defineView, type Rows } from '../engine/view.js';
import { balances, postings } from './table.js';

interface Line {
  readonly account: string;
  readonly currency: string;
  readonly amountCents: bigint;
}

const player = (accountId: string) => `player:${accountId}`;
const ESCROW = 'escrow';

const transfer = (from: string, to: string, currency: string, amount: string): Line[] => {
  const amountCents = BigInt(amount);
  if (amountCents === 0n) return [];
  return [
    { account: from, currency, amountCents: -amountCents },
    { account: to, currency, amountCents },
  ];
};

type MoneyEvent = WalletEvent | Extract<ArenaEvent, { type: 'MatchSettled' }>;
type Recorded = RecordedEvent & MoneyEvent;

/** The double entry of each money event. A posted hold moves nothing: its stake has been in escrow since it was held. */
function linesOf(event: Recorded): Line[] {
  const { data } = event;
  switch (event.type) {
    case 'CreditsGranted':
      return transfer('house:grants', player(event.data.accountId), data.currency, event.data.amountCents);
    case 'FundsHeld':
      return transfer(player(event.data.accountId), ESCROW, data.currency, event.data.amountCents);
    case 'HoldVoided':
    case 'FundsCredited':
      return transfer(ESCROW, player(event.data.accountId), data.currency, event.data.amountCents);
    case 'MatchSettled':
      return transfer(ESCROW, 'house:rake', data.currency, event.data.rakeCents);
    case 'HoldPosted':
    case 'HoldRefused':
      return [];
  }
}

const matchOf = (event: Recorded): string | null => {
  if (event.type === 'MatchSettled') return event.data.matchId;
  return 'purpose' in event.data && event.data.purpose.kind === 'match' ? event.data.purpose.matchId : null;
};

const itsBalances = (event: Recorded): RowRef[] =>
  linesOf(event).map(({ account, currency }) => rowRef(balances, account, currency));

function post(event: Recorded, rows: Rows): void {
  const lines = linesOf(event);
  const sum = lines.reduce((total, line) => total + line.amountCents, 0n);
  invariant(sum === 0n, `The postings of event ${event.id} sum to ${sum}, not to zero.`);
  lines.forEach(({ account, currency, amountCents }, line) => {
    const { position, type: eventType, time: at } = event;
    rows.put(postings, {
      position: BigInt(position),
      line,
      account,
      currency,
      amountCents,
      eventType,
      matchId: matchOf(event),
      at,
    });
    const before = rows.get(balances, account, currency);
    const balanceCents = (before?.balanceCents ?? 0n) + amountCents;
    rows.put(balances, { account, currency, balanceCents, postings: (before?.postings ?? 0) + 1 });
  });
}

const posted = { reads: itsBalances, apply: post };

/** The ledger: double-entry postings whose sum is zero at every position, and what they add up to per account. */
export const balancesView = defineView<MoneyEvent>({
  name: 'balances',
  version: 1,
  tables: [postings, balances],
  on: {
    CreditsGranted: posted,
    FundsHeld: posted,
    HoldVoided: posted,
    FundsCredited: posted,
    MatchSettled: posted,
  },
});
