import {
  asAgonError,
  type EventStore,
  formatMoney,
  type RecordedEvent,
  type Upcaster,
} from '../../services/kernel/index.js';
import {
  type Purpose,
  purseOf,
  type WalletEvent,
  type WalletState,
  walletDecider,
} from '../../services/wallet/index.js';
import { postingsOf, type RecordedMoney } from './ledger.js';
import { balancesView } from './view.js';

const moneyTypes = new Set(balancesView.types);
const ENDS: Readonly<Record<string, string>> = {
  MatchSettled: 'settled',
  MatchVoided: 'voided',
  MatchReversed: 'reversed',
};
const PAGE = 4_096;

/** What is wrong with a whole log whose policies have all been run: every fault, and everything that is stuck. */
export function auditMoney(log: readonly RecordedEvent[]): readonly string[] {
  const audit = new MoneyAudit();
  for (const event of log) audit.enter(event);
  return [...audit.faults, ...audit.misplaced(), ...audit.stuck()];
}

/**
 * The same of a log that may be written to meanwhile. What a match that ended after `settledBy` has still to pay is
 * under way, and not stuck.
 */
export async function auditLog(
  store: Pick<EventStore, 'readAll'>,
  upcast: Upcaster,
  settledBy: string,
): Promise<readonly string[]> {
  const audit = new MoneyAudit();
  for (let after = 0; ; ) {
    const page = await store.readAll({ after, limit: PAGE });
    // What this build does not know moves no money that it could follow; views put it aside and say so.
    for (const event of page) if (upcast.knows(event.type)) audit.enter(upcast(event));
    const last = page.at(-1);
    if (!last) return [...audit.faults, ...audit.stuck(settledBy)];
    after = last.position;
  }
}

interface Pot {
  /** What of the match is in escrow or set aside as its bounty, by place and currency. */
  readonly cents: Map<string, bigint>;
  over?: { readonly how: string; readonly position: number; readonly time: string };
}

/**
 * Follows a log with the fold of every wallet and with the ledger, and holds them against each other at every position.
 * Says what is wrong: an overdraft, postings that do not sum to zero, a balance that is not the fold's, a hold that ends
 * twice, a match that pays a wallet twice, and money that stays where a match that is over has put it.
 */
class MoneyAudit {
  readonly faults: string[] = [];
  private readonly balances = new Map<string, bigint>();
  private readonly wallets = new Map<string, WalletState>();
  private readonly pots = new Map<string, Pot>();
  private readonly ended = new Set<string>();
  private readonly paid = new Set<string>();

  enter(event: RecordedEvent): void {
    try {
      const how = ENDS[event.type];
      const { position, time } = event;
      if (how) this.pot((event.data as { matchId: string }).matchId).over = { how, position, time };
      if (moneyTypes.has(event.type)) this.post(event as RecordedMoney);
      if (event.stream.startsWith('wallet-')) this.fold(event as RecordedEvent & WalletEvent);
    } catch (error) {
      // What no wallet could have come to is a fault of the log, such as more being taken than there was.
      this.faults.push(`position ${event.position}: ${asAgonError(error).message}`);
    }
  }

  /** Where what open holds put aside is not in its place, to the cent. Holds once every policy has seen every event. */
  misplaced(): string[] {
    const open = this.openHolds().map(({ hold }) => hold);
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

  /** The holds and the money that a match left behind which was over by then. */
  stuck(settledBy = '~'): string[] {
    const holds = new Map<string, string[]>();
    for (const { accountId, hold } of this.openHolds()) {
      const matchId = matchOf(hold.purpose);
      const text = `hold ${hold.holdId} of ${formatMoney(hold.amountCents)} ${hold.currency} of ${accountId}`;
      if (matchId) holds.set(matchId, [...(holds.get(matchId) ?? []), text]);
    }
    return [...this.pots].flatMap(([matchId, { over, cents }]) => {
      if (!over || over.time > settledBy) return [];
      const since = `match ${matchId} was ${over.how} at position ${over.position}`;
      const open = (holds.get(matchId) ?? []).map((hold) => `${hold} is still open, and ${since}`);
      if (open.length > 0) return open;
      return [...cents].flatMap(([place, left]) => {
        const [account, currency] = place.split(' ');
        return left === 0n ? [] : [`${formatMoney(left)} ${currency} stay in ${account}, and ${since}`];
      });
    });
  }

  private post(event: RecordedMoney): void {
    const sums = new Map<string, bigint>();
    const matchId =
      'matchId' in event.data ? event.data.matchId : matchOf((event.data as { purpose?: Purpose }).purpose);
    for (const { account, currency, amountCents } of postingsOf(event)) {
      this.balances.set(`${account} ${currency}`, this.balance(account, currency) + amountCents);
      sums.set(currency, (sums.get(currency) ?? 0n) + amountCents);
      if (matchId && (account === 'escrow' || account === 'bounty')) {
        const { cents } = this.pot(matchId);
        cents.set(`${account} ${currency}`, (cents.get(`${account} ${currency}`) ?? 0n) + amountCents);
      }
    }
    for (const [currency, sum] of sums) {
      if (sum !== 0n) this.faults.push(`position ${event.position} sums to ${sum} ${currency}`);
    }
  }

  private fold(event: RecordedEvent & WalletEvent): void {
    const accountId = event.stream.slice('wallet-'.length);
    const before = this.wallets.get(accountId) ?? walletDecider.initial;
    this.follow(event, before);
    const after = walletDecider.evolve(before, event);
    this.wallets.set(accountId, after);
    this.compare(event.position, accountId, after);
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
        this.once(this.ended, `hold ${holdId} of ${accountId}`, 'ended');
    }
    if (type === 'FundsCredited' && data.purpose.kind !== 'run') {
      this.once(this.paid, `${data.accountId} for ${JSON.stringify(data.purpose)}`, 'was paid');
    }
    if (type === 'BountyAwarded')
      this.once(this.paid, `${data.accountId} for bounty ${data.bountyId} of ${data.matchId}`, 'was paid');
  }

  private once(seen: Set<string>, what: string, how: string): void {
    if (seen.has(what)) this.faults.push(`${what} ${how} twice`);
    seen.add(what);
  }

  private openHolds() {
    return [...this.wallets].flatMap(([accountId, { holds }]) => holds.map((hold) => ({ accountId, hold })));
  }

  private pot(matchId: string): Pot {
    const pot = this.pots.get(matchId) ?? { cents: new Map() };
    this.pots.set(matchId, pot);
    return pot;
  }

  private balance(account: string, currency: string): bigint {
    return this.balances.get(`${account} ${currency}`) ?? 0n;
  }
}

/** The match that money was held for: as its stake, as a fee for running a seat of it, or as its bounty. */
function matchOf(purpose: Purpose | undefined): string | undefined {
  if (purpose?.kind === 'run') return purpose.seat === undefined ? undefined : purpose.runId;
  return purpose && 'matchId' in purpose ? purpose.matchId : undefined;
}
