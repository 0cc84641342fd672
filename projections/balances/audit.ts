import type { RecordedEvent } from '../../services/kernel/index.js';
import { purseOf, type WalletEvent, type WalletState, walletDecider } from '../../services/wallet/index.js';
import { postingsOf, type RecordedMoney } from './ledger.js';
import type { PostingRow } from './table.js';
import { balancesView } from './view.js';

/**
 * Follows a whole log with the fold of every wallet and with the ledger, and holds them against each other at every
 * position. Says what is wrong: an overdraft, postings that do not sum to zero, a balance that is not the fold's, a hold
 * that ends twice, a match that pays a wallet twice, money that is stuck where no hold put it.
 */
export function auditMoney(log: readonly RecordedEvent[]): readonly string[] {
  const books = new Books();
  for (const event of log) books.enter(event);
  return [...books.faults, ...books.stuck()];
}

const money = new Set(balancesView.types);

class Books {
  readonly faults: string[] = [];
  private readonly balances = new Map<string, bigint>();
  private readonly wallets = new Map<string, WalletState>();
  private readonly ended = new Set<string>();
  private readonly paid = new Set<string>();

  enter(event: RecordedEvent): void {
    if (money.has(event.type)) this.post(event, postingsOf(event as RecordedMoney));
    if (!event.stream.startsWith('wallet-')) return;
    const accountId = event.stream.slice('wallet-'.length);
    const before = this.wallets.get(accountId) ?? walletDecider.initial;
    const after = walletDecider.evolve(before, event as RecordedEvent & WalletEvent);
    this.wallets.set(accountId, after);
    this.compare(event.position, accountId, after);
    this.follow(event as RecordedEvent & WalletEvent, before);
  }

  /** What open holds put aside is in its place, and not a cent more. Holds once every policy has seen every event. */
  stuck(): string[] {
    const open = [...this.wallets.values()].flatMap(({ holds }) => holds);
    const places = { escrow: ['match', 'run', 'other'], bounty: ['bounty'], 'payout-clearing': ['withdrawal'] };
    const currencies = new Set([...this.balances.keys()].map((key) => key.split(' ')[1] ?? ''));
    return [...currencies].flatMap((currency) =>
      Object.entries(places).flatMap(([account, kinds]) => {
        const held = open.filter((hold) => hold.currency === currency && kinds.includes(hold.purpose.kind));
        const sum = held.reduce((total, { amountCents }) => total + amountCents, 0n);
        const there = this.balance(account, currency);
        return there === sum ? [] : [`${account} has ${there} ${currency}, and open holds put ${sum} there`];
      }),
    );
  }

  private post(event: RecordedEvent, rows: readonly PostingRow[]): void {
    const sums = new Map<string, bigint>();
    for (const { account, currency, amountCents } of rows) {
      this.balances.set(`${account} ${currency}`, this.balance(account, currency) + amountCents);
      sums.set(currency, (sums.get(currency) ?? 0n) + amountCents);
    }
    for (const [currency, sum] of sums) {
      if (sum !== 0n) this.faults.push(`position ${event.position} sums to ${sum} ${currency}`);
    }
  }

  private compare(position: number, accountId: string, state: WalletState): void {
    for (const currency of Object.keys(state.purses)) {
      const { availableCents, owedCents, locks } = purseOf(state, currency);
      const locked = locks.reduce((sum, { amountCents }) => sum + amountCents, 0n);
      const fault = (what: string) => this.faults.push(`${accountId} in ${currency} at position ${position}: ${what}`);
      if (availableCents < 0n || owedCents < 0n) fault(`overdrawn, with ${availableCents} and ${owedCents} owed`);
      if (locked > availableCents) fault(`${locked} of ${availableCents} are locked`);
      const [has, owes] = [this.balance(`player:${accountId}`, currency), this.balance(`owed:${accountId}`, currency)];
      if (has !== availableCents) fault(`the ledger has ${has}, the fold ${availableCents}`);
      if (owes !== -owedCents) fault(`the ledger has a debt of ${-owes}, the fold ${owedCents}`);
    }
  }

  private follow(event: WalletEvent, before: WalletState): void {
    const { type, data } = event;
    if (type === 'HoldPosted' || type === 'HoldVoided' || type === 'HoldExpired') {
      const { accountId, holdId, purpose } = data;
      if (!before.holds.some((hold) => hold.holdId === holdId))
        this.faults.push(`hold ${holdId} ended and was not open`);
      // Others may use a name again; a match asks for each of its holds once.
      if (purpose.kind === 'match' || purpose.kind === 'bounty')
        this.once(this.ended, `${accountId} ${holdId}`, 'ended');
    }
    if (type === 'FundsCredited' && data.purpose.kind !== 'run') {
      this.once(this.paid, `${data.accountId} ${JSON.stringify(data.purpose)}`, 'was paid');
    }
    if (type === 'BountyAwarded')
      this.once(this.paid, `${data.accountId} ${data.matchId} ${data.bountyId}`, 'was paid');
  }

  private once(seen: Set<string>, what: string, how: string): void {
    if (seen.has(what)) this.faults.push(`${what} ${how} twice`);
    seen.add(what);
  }

  private balance(account: string, currency: string): bigint {
    return this.balances.get(`${account} ${currency}`) ?? 0n;
  }
}
