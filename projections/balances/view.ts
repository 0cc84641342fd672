import { type RowRef, rowRef } from '../engine/table.js';
import { defineView, type Rows } from '../engine/view.js';
import { accountsOf, type MoneyEvent, postingsOf, type RecordedMoney } from './ledger.js';
import { balances, postings } from './table.js';

const itsBalances = (event: RecordedMoney): RowRef[] =>
  accountsOf(event).map(({ account, currency }) => rowRef(balances, account, currency));

function post(event: RecordedMoney, rows: Rows): void {
  for (const posting of postingsOf(event)) {
    rows.add(postings, posting);
    const { account, currency, amountCents } = posting;
    const before = rows.get(balances, account, currency);
    const balanceCents = (before?.balanceCents ?? 0n) + amountCents;
    rows.put(balances, { account, currency, balanceCents, postings: (before?.postings ?? 0) + 1 });
  }
}

const posted = { reads: itsBalances, apply: post };

/** The ledger: double-entry postings whose sum is zero at every position, and what they add up to per account. */
export const balancesView = defineView<MoneyEvent>({
  name: 'balances',
  version: 2,
  tables: [postings, balances],
  on: {
    CreditsGranted: posted,
    CreditsBought: posted,
    FundsDeposited: posted,
    FundsHeld: posted,
    HoldPosted: posted,
    HoldVoided: posted,
    HoldExpired: posted,
    FundsCredited: posted,
    BountyAwarded: posted,
    FundsClawedBack: posted,
    SettlementReversed: posted,
    DebtRepaid: posted,
    MatchSettled: posted,
    MatchReversed: posted,
    PlanPaid: posted,
    PlanPaymentTaken: posted,
    PlanPaymentReturned: posted,
  },
});
