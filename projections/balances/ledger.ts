import type { ArenaEvent } from '../../services/arena/index.js';
import { invariant, type RecordedEvent } from '../../services/kernel/index.js';
import type { PaymentEvent } from '../../services/payments/index.js';
import type { WalletEvent } from '../../services/wallet/index.js';
import type { PostingRow } from './table.js';

interface Line {
  readonly account: string;
  readonly currency: string;
  readonly amountCents: bigint;
}

const player = (accountId: string) => `player:${accountId}`;
/** What a player owes stands below zero here, as what a bank lent does; the player's own account never does. */
const owed = (accountId: string) => `owed:${accountId}`;
const STRIPE = 'stripe-clearing';
const CREDITS_SOLD = 'credits-sold';

type Purpose = Extract<WalletEvent, { type: 'FundsHeld' }>['data']['purpose'];

/** Where held money is, and where it goes when its hold is posted. What is paid out of a post comes from there. */
const places: Readonly<Record<Purpose['kind'], { held: string; posted: string }>> = {
  // A pot stays in escrow until MatchSettled has taken the rake and the winners were paid.
  match: { held: 'escrow', posted: 'escrow' },
  bounty: { held: 'bounty', posted: 'bounty' },
  run: { held: 'escrow', posted: 'compute-used' },
  withdrawal: { held: 'payout-clearing', posted: STRIPE },
  other: { held: 'escrow', posted: 'house:other' },
};

/** Where a deposit comes from: credits for compute are sold, and what was paid for them is a second entry. */
const source = (currency: string) => (currency === 'COMPUTE' ? CREDITS_SOLD : STRIPE);

const line = (account: string, currency: string, amountCents: bigint): Line => ({ account, currency, amountCents });

function transfer(from: string, to: string, currency: string, amount: string | bigint): Line[] {
  const amountCents = BigInt(amount);
  return amountCents === 0n || from === to ? [] : [line(from, currency, -amountCents), line(to, currency, amountCents)];
}

export type MoneyEvent =
  | Exclude<WalletEvent, { type: 'HoldRefused' | 'WalletFrozen' | 'WalletUnfrozen' | 'BudgetSet' }>
  | Extract<ArenaEvent, { type: 'MatchSettled' | 'MatchReversed' }>
  | Extract<PaymentEvent, { type: 'PlanPaid' | 'PlanPaymentTaken' | 'PlanPaymentReturned' }>;
export type RecordedMoney = RecordedEvent & MoneyEvent;

/** The double entry of each money event. */
function linesOf(event: RecordedMoney): Line[] {
  switch (event.type) {
    case 'CreditsGranted':
      return transfer('house:grants', player(event.data.accountId), event.data.currency, event.data.amountCents);
    case 'FundsDeposited': {
      const { accountId, currency, amountCents, paid } = event.data;
      const sold = paid ? transfer(STRIPE, CREDITS_SOLD, paid.currency, paid.amountCents) : [];
      return [...transfer(source(currency), player(accountId), currency, amountCents), ...sold];
    }
    case 'CreditsBought': {
      const { accountId, creditCents, paid } = event.data;
      return [
        ...transfer(player(accountId), CREDITS_SOLD, paid.currency, paid.amountCents),
        ...transfer(CREDITS_SOLD, player(accountId), 'COMPUTE', creditCents),
      ];
    }
    case 'FundsHeld': {
      const { accountId, currency, amountCents, purpose } = event.data;
      return transfer(player(accountId), places[purpose.kind].held, currency, amountCents);
    }
    case 'HoldVoided':
    case 'HoldExpired': {
      const { accountId, currency, amountCents, purpose } = event.data;
      return transfer(places[purpose.kind].held, player(accountId), currency, amountCents);
    }
    case 'HoldPosted': {
      const { currency, amountCents, purpose } = event.data;
      return transfer(places[purpose.kind].held, places[purpose.kind].posted, currency, amountCents);
    }
    case 'FundsCredited': {
      const { accountId, currency, amountCents, purpose } = event.data;
      return transfer(places[purpose.kind].posted, player(accountId), currency, amountCents);
    }
    case 'BountyAwarded':
      return transfer('bounty', player(event.data.accountId), event.data.currency, event.data.amountCents);
    case 'FundsClawedBack': {
      const { accountId, currency, amountCents, owedCents, paid } = event.data;
      const unsold = paid ? transfer(CREDITS_SOLD, STRIPE, paid.currency, paid.amountCents) : [];
      return [...taken(accountId, source(currency), currency, BigInt(amountCents), BigInt(owedCents)), ...unsold];
    }
    case 'SettlementReversed': {
      const { accountId, currency, stakeCents, payoutCents, owedCents, purpose } = event.data;
      const lostCents = BigInt(payoutCents) - BigInt(stakeCents);
      return taken(accountId, places[purpose.kind].posted, currency, lostCents, BigInt(owedCents));
    }
    case 'DebtRepaid': {
      const { accountId, currency, amountCents } = event.data;
      return transfer(player(accountId), owed(accountId), currency, amountCents);
    }
    case 'PlanPaid':
      return transfer(STRIPE, 'house:plans', event.data.currency, event.data.amountCents);
    case 'PlanPaymentTaken':
      return transfer('house:plans', STRIPE, event.data.currency, event.data.amountCents);
    case 'PlanPaymentReturned':
      return transfer(STRIPE, 'house:plans', event.data.currency, event.data.returnedCents);
    case 'MatchSettled':
      return transfer('escrow', 'house:rake', event.data.currency, event.data.rakeCents);
    case 'MatchReversed':
      return transfer('house:rake', 'escrow', event.data.currency, event.data.rakeCents);
  }
}

/** What is there comes from the player, the rest is owed. */
function taken(accountId: string, to: string, currency: string, amountCents: bigint, owedCents: bigint): Line[] {
  return [
    ...transfer(player(accountId), to, currency, amountCents - owedCents),
    ...transfer(owed(accountId), to, currency, owedCents),
  ];
}

const matchOf = ({ data }: RecordedMoney): string | null => {
  if ('matchId' in data) return data.matchId;
  return 'purpose' in data && 'matchId' in data.purpose ? data.purpose.matchId : null;
};

/** The accounts that an event moves money between. */
export const accountsOf = (event: RecordedMoney): readonly Pick<Line, 'account' | 'currency'>[] => linesOf(event);

/** The rows of the ledger that an event makes. They sum to zero in every currency. */
export function postingsOf(event: RecordedMoney): PostingRow[] {
  const lines = linesOf(event);
  assertBalanced(event.id, lines);
  const { position, type: eventType, time: at } = event;
  const matchId = matchOf(event);
  return lines.map(({ account, currency, amountCents }, line) => {
    return { position: BigInt(position), line, account, currency, amountCents, eventType, matchId, at };
  });
}

function assertBalanced(eventId: string, lines: readonly Line[]): void {
  const [from, to] = lines;
  // Nearly all events: one transfer.
  if (from && to && lines.length === 2 && from.currency === to.currency && from.amountCents === -to.amountCents) return;
  const sums = new Map<string, bigint>();
  for (const { currency, amountCents } of lines) sums.set(currency, (sums.get(currency) ?? 0n) + amountCents);
  for (const [currency, sum] of sums) {
    invariant(sum === 0n, `The postings of event ${eventId} sum to ${sum} ${currency}, not to zero.`);
  }
}
