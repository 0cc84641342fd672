import type { ArenaCommand, ProposeMatch } from '../../services/arena/commands.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import type { HoldFunds, WalletCommand } from '../../services/wallet/commands.js';

type Purpose = HoldFunds['data']['purpose'];

interface Held {
  readonly accountId: string;
  readonly cents: number;
  readonly currency: string;
  readonly purpose: Purpose;
  readonly expiresAt: string | undefined;
}

interface Match {
  readonly terms: ProposeMatch['data'];
  status: 'proposed' | 'ready' | 'claimed' | 'settled' | 'voided' | 'reversed';
  /** Set by its settlement. */
  split: Split | undefined;
}

interface Split {
  readonly isDrawn: boolean;
  readonly rake: number;
  readonly payouts: readonly number[];
  readonly prizes: readonly number[];
  readonly remainder: number;
}

type Done = readonly Pick<RecordedEvent, 'type' | 'data'>[];

/** Where held money lies, and where it goes when it is taken: the chart of accounts, as docs/money.md has it. */
const PLACES = {
  match: ['escrow', 'escrow'],
  bounty: ['bounty', 'bounty'],
  run: ['escrow', 'compute-used'],
  withdrawal: ['payout-clearing', 'stripe-clearing'],
  other: ['escrow', 'house:other'],
} as const;

const OVER = ['settled', 'voided', 'reversed'];

/**
 * A double-entry book kept by hand, for specs to hold the arena's own against. It shares no code with folds, ledger or
 * settlement: it is told which commands were done, in the order of the log, and works out in plain numbers what has to
 * have moved. What it finds wrong it throws.
 */
export class PlainBook {
  /** What every account has, by its name and currency. What an entry touched is in `touched` until the next one. */
  readonly accounts = new Map<string, number>();
  readonly touched = new Set<string>();
  /** How often what happened, so that a run can show that it met what it is about. */
  readonly seen = new Map<string, number>();
  private readonly holds = new Map<string, Held>();
  private readonly matches = new Map<string, Match>();
  /** The holds, payments and reversals of matches: each of them may be once. */
  private readonly once = new Set<string>();
  private readonly deposits = new Map<string, number>();
  private readonly refusedMatches = new Set<string>();
  private readonly frozen = new Set<string>();
  private readonly capped = new Set<string>();

  enter(command: WalletCommand | ArenaCommand, events: Done, time: string): void {
    this.touched.clear();
    for (const { type } of events) this.count(type);
    if ('accountId' in command.data) {
      this.ofWallet(command as WalletCommand, events, time);
      this.repay(command.data.accountId);
    } else this.ofMatch(command as ArenaCommand, events);
  }

  /** What has to be so once every policy has heard of every event. */
  close(): void {
    const open = [...this.holds.keys()];
    for (const [matchId, { status, terms, split }] of this.matches) {
      must(status !== 'proposed', `match ${matchId} still waits for its stakes`);
      if (!OVER.includes(status)) continue;
      const left = open.filter((key) => key.split(' ')[1]?.startsWith(matchId));
      must(left.length === 0, `match ${matchId} is ${status}, and ${left} stay held`);
      if (!split) continue;
      const stakes = terms.stakeCents === '0' ? [] : terms.seats.map((_seat, i) => `${matchId}:${i}`);
      for (const holdId of stakes) must(this.once.has(`end of ${holdId}`), `${holdId} was never ended`);
      if (status === 'reversed') {
        for (const holdId of stakes) must(this.once.has(`reversal of ${holdId}`), `${holdId} was never reversed`);
      }
    }
    for (const [account, cents] of this.accounts) {
      const mayLack = /^(stripe-clearing|house:grants|credits-sold|owed:)/.test(account);
      must(cents >= 0 || mayLack, `${account} has ${cents}`);
    }
  }

  private ofWallet({ type, data }: WalletCommand, events: Done, time: string): void {
    const { accountId } = data;
    const player = `player:${accountId}`;
    switch (type) {
      case 'GrantCredits':
        this.move('house:grants', player, data.currency, Number(data.amountCents));
        break;
      case 'DepositFunds': {
        const source = data.currency === 'COMPUTE' ? 'credits-sold' : 'stripe-clearing';
        this.one(`deposit ${accountId} ${data.depositId}`);
        this.deposits.set(`${accountId} ${data.depositId}`, Number(data.amountCents));
        this.move(source, player, data.currency, Number(data.amountCents));
        break;
      }
      case 'BuyCredits':
        this.move(player, 'credits-sold', data.paid.currency, Number(data.paid.amountCents));
        this.move('credits-sold', player, 'COMPUTE', Number(data.creditCents));
        break;
      case 'HoldFunds':
        this.hold(data, events);
        break;
      case 'PostHold':
        this.post(accountId, data.holdId);
        break;
      case 'VoidHold': {
        const { purpose } = this.release(accountId, data.holdId);
        const matchId = matchOf(purpose);
        if (matchId)
          must(this.match(matchId).status === 'voided', `${data.holdId} went back before its match was void`);
        break;
      }
      case 'ExpireHolds': {
        const due = [...this.holds].filter(
          ([, held]) => held.accountId === accountId && (held.expiresAt ?? '~') <= time,
        );
        must(
          due.length === events.filter(({ type }) => type === 'HoldExpired').length,
          `${accountId}: other holds ran out`,
        );
        for (const [key] of due) this.release(accountId, key.split(' ')[1] ?? '');
        break;
      }
      case 'AwardBounty': {
        const { matchId, seat, currency } = data;
        this.one(`prize of ${matchId} ${seat}`);
        this.move('bounty', player, currency, this.splitOf(matchId).prizes[seat] ?? 0);
        break;
      }
      case 'ClawBackFunds': {
        const left = (this.deposits.get(`${accountId} ${data.depositId}`) ?? 0) - Number(data.amountCents);
        must(left >= 0, `more was taken back of ${data.depositId} than was paid in`);
        this.deposits.set(`${accountId} ${data.depositId}`, left);
        const to = data.currency === 'COMPUTE' ? 'credits-sold' : 'stripe-clearing';
        this.takeBack(accountId, to, data.currency, Number(data.amountCents));
        break;
      }
      case 'ReverseSettlement':
        this.reverse(data, accountId);
        break;
      case 'FreezeWallet':
        this.frozen.add(accountId);
        break;
      case 'UnfreezeWallet':
        this.frozen.delete(accountId);
        break;
      case 'SetBudget':
        this.capped.add(accountId);
    }
  }

  private hold(data: HoldFunds['data'], [outcome]: Done): void {
    const { accountId, currency, purpose, holdId } = data;
    const [player, cents, matchId] = [`player:${accountId}`, Number(data.amountCents), matchOf(purpose)];
    const [has, owes] = [this.has(player, currency), this.owesAny(accountId)];
    if (outcome?.type === 'HoldRefused') {
      const { reason } = outcome.data as { reason: string };
      this.count(`refused: ${reason}`);
      if (matchId) this.refusedMatches.add(matchId);
      const why = `${accountId} was refused ${cents} ${currency} (${reason}) and has ${has}`;
      const reasons: Record<string, boolean> = {
        insufficient: has < cents,
        owed: owes,
        frozen: this.frozen.has(accountId) && purpose.kind === 'withdrawal',
        not_withdrawable: purpose.kind === 'withdrawal',
        budget: this.capped.has(accountId) && purpose.kind !== 'withdrawal',
      };
      must(reasons[reason] ?? false, why);
      return;
    }
    must(this.has(`owed:${accountId}`, currency) === 0, `${accountId} held ${cents} ${currency} and owes`);
    if (purpose.kind === 'withdrawal')
      must(!this.frozen.has(accountId) && !owes, `${accountId} is stopped and withdrew`);
    if (matchId) {
      this.one(`hold ${holdId} of ${accountId}`);
      this.count(`held: ${purpose.kind}`);
    }
    must(!this.holds.has(`${accountId} ${holdId}`), `${holdId} was held twice`);
    this.holds.set(`${accountId} ${holdId}`, { accountId, cents, currency, purpose, expiresAt: data.expiresAt });
    this.move(player, PLACES[purpose.kind][0], currency, cents);
  }

  /** What a match's hold pays is what the match's own division says, whatever the command claims. */
  private post(accountId: string, holdId: string): void {
    const { cents, currency, purpose } = this.end(accountId, holdId);
    const [held, posted] = PLACES[purpose.kind];
    this.move(held, posted, currency, cents);
    const matchId = matchOf(purpose);
    if (!matchId) return;
    const split = this.splitOf(matchId);
    const back = { match: split.payouts[seatOf(purpose)], bounty: split.remainder }[purpose.kind as string] ?? 0;
    this.one(`end of ${holdId}`);
    this.move(posted, `player:${accountId}`, currency, back);
    if (back > 0) this.count(`paid: ${purpose.kind}`);
  }

  private reverse(
    { purpose, currency }: Extract<WalletCommand, { type: 'ReverseSettlement' }>['data'],
    accountId: string,
  ) {
    const matchId = matchOf(purpose) ?? '';
    const { terms, status } = this.match(matchId);
    must(status === 'reversed', `${matchId} was undone and is ${status}`);
    const { payouts, prizes, remainder } = this.splitOf(matchId);
    if (purpose.kind === 'match') {
      this.one(`reversal of ${matchId}:${purpose.seat}`);
      const lost = (payouts[purpose.seat] ?? 0) - Number(terms.stakeCents);
      return this.takeBack(accountId, 'escrow', currency, lost);
    }
    // The sponsor may sit at the table as well: then one of the two is the sponsor's, and the other the winner's.
    const seat = terms.seats.findIndex((each) => each.accountId === accountId);
    const prize = prizes[seat] ?? 0;
    const isPrize = prize > 0 && !this.once.has(`reversal of prize ${matchId} ${seat}`);
    this.one(isPrize ? `reversal of prize ${matchId} ${seat}` : `reversal of bounty ${matchId}`);
    const lost = isPrize ? prize : remainder - Number(terms.bounty?.amountCents ?? 0);
    return this.takeBack(accountId, 'bounty', currency, lost);
  }

  private ofMatch({ type, data }: ArenaCommand, events: Done): void {
    if (type === 'ProposeMatch') {
      must(!this.matches.has(data.matchId), `match ${data.matchId} was proposed twice`);
      const isFree = needs(data).length === 0;
      this.matches.set(data.matchId, { terms: data, status: isFree ? 'ready' : 'proposed', split: undefined });
      return;
    }
    const { matchId } = data;
    const match = this.match(matchId);
    const types = events.map(({ type }) => type);
    if (types.includes('MatchVoided')) {
      must(!OVER.includes(match.status), `match ${matchId} was voided, and was ${match.status}`);
      if (type === 'RefuseStake') must(this.refusedMatches.has(matchId), `nobody refused match ${matchId}`);
      match.status = 'voided';
    }
    if (types.includes('EscrowDeclined'))
      must(OVER.includes(match.status), `match ${matchId} would not have its stake`);
    if (types.includes('MatchReady')) {
      const missing = needs(match.terms).filter((key) => !this.holds.has(key));
      must(match.status === 'proposed' && missing.length === 0, `match ${matchId} is ready without ${missing}`);
      match.status = 'ready';
    }
    if (types.includes('MatchClaimed')) {
      must(['ready', 'claimed'].includes(match.status), `match ${matchId} was claimed, and was ${match.status}`);
      match.status = 'claimed';
    }
    if (types.includes('MatchSettled') && type === 'ReportMatch') {
      must(match.status === 'claimed', `match ${matchId} was settled, and was ${match.status}`);
      match.status = 'settled';
      match.split = divide(match.terms, data.outcome.scores);
      this.count(match.split.isDrawn ? 'drawn' : 'won');
      this.move('escrow', 'house:rake', match.terms.currency, match.split.rake);
    }
    if (types.includes('MatchReversed')) {
      must(match.status === 'settled', `match ${matchId} was reversed, and was ${match.status}`);
      match.status = 'reversed';
      this.move('house:rake', 'escrow', match.terms.currency, this.splitOf(matchId).rake);
    }
  }

  /** Gives back what was held. */
  private release(accountId: string, holdId: string): Held {
    const held = this.end(accountId, holdId);
    if (matchOf(held.purpose)) this.one(`end of ${holdId}`);
    this.move(PLACES[held.purpose.kind][0], `player:${accountId}`, held.currency, held.cents);
    return held;
  }

  private end(accountId: string, holdId: string): Held {
    const held = this.holds.get(`${accountId} ${holdId}`);
    if (!held) throw new Error(`${holdId} of ${accountId} ended and was not open`);
    this.holds.delete(`${accountId} ${holdId}`);
    return held;
  }

  /** What is there is taken, the rest is owed; a negative amount is given. */
  private takeBack(accountId: string, to: string, currency: string, cents: number): void {
    const has = this.has(`player:${accountId}`, currency);
    const there = Math.min(has, cents);
    this.move(`player:${accountId}`, to, currency, there);
    this.move(`owed:${accountId}`, to, currency, cents - there);
    if (cents > there) this.count('owed');
  }

  /** Whatever comes in pays a debt first. */
  private repay(accountId: string): void {
    for (const [account, owed] of this.accounts) {
      if (owed >= 0 || !account.startsWith(`owed:${accountId} `)) continue;
      const currency = account.split(' ')[1] ?? '';
      const player = `player:${accountId}`;
      this.move(player, `owed:${accountId}`, currency, Math.min(this.has(player, currency), -owed));
    }
  }

  private move(from: string, to: string, currency: string, cents: number): void {
    for (const [account, change] of [
      [from, -cents],
      [to, cents],
    ] as const) {
      const key = `${account} ${currency}`;
      const after = (this.accounts.get(key) ?? 0) + change;
      must(after >= 0 || !account.startsWith('player:'), `${account} is overdrawn: ${after} ${currency}`);
      this.accounts.set(key, after);
      this.touched.add(key);
    }
  }

  private has(account: string, currency: string): number {
    return this.accounts.get(`${account} ${currency}`) ?? 0;
  }

  private owesAny(accountId: string): boolean {
    return ['USD', 'PLAY', 'COMPUTE'].some((currency) => this.has(`owed:${accountId}`, currency) < 0);
  }

  private one(what: string): void {
    must(!this.once.has(what), `twice: ${what}`);
    this.once.add(what);
  }

  private match(matchId: string): Match {
    const match = this.matches.get(matchId);
    if (!match) throw new Error(`nobody proposed match ${matchId}`);
    return match;
  }

  private splitOf(matchId: string): Split {
    const { split } = this.match(matchId);
    if (!split) throw new Error(`match ${matchId} paid and was not settled`);
    return split;
  }

  private count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }
}

function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}

const matchOf = (purpose: Purpose): string | undefined => {
  if (purpose.kind === 'run') return purpose.seat === undefined ? undefined : purpose.runId;
  return 'matchId' in purpose ? purpose.matchId : undefined;
};

const seatOf = (purpose: Purpose): number => ('seat' in purpose ? (purpose.seat ?? -1) : -1);

/** Every hold that a match waits for, by wallet and name. */
function needs({ matchId, seats, stakeCents, computeCents, bounty }: ProposeMatch['data']): string[] {
  const ofSeats = (suffix: string) => seats.map(({ accountId }, i) => `${accountId} ${matchId}:${i}${suffix}`);
  return [
    ...(stakeCents === '0' ? [] : ofSeats('')),
    ...(computeCents === undefined ? [] : ofSeats(':compute')),
    ...(bounty ? [`${bounty.sponsorId} ${matchId}:bounty`] : []),
  ];
}

/** The rules of docs/money.md, in plain numbers: small amounts only. */
function divide({ seats, stakeCents, rakeBps, bounty }: ProposeMatch['data'], scores: readonly number[]): Split {
  const [stake, prize] = [Number(stakeCents), Number(bounty?.amountCents ?? 0)];
  const parts = scores.map((score) => Math.round(score * 1e6));
  const [top, all] = [Math.max(...parts), parts.reduce((sum, part) => sum + part, 0)];
  const best = parts.flatMap((part, seat) => (part === top ? [seat] : []));
  if (best.length === seats.length) {
    return { isDrawn: true, rake: 0, payouts: seats.map(() => stake), prizes: seats.map(() => 0), remainder: prize };
  }
  const pot = stake * seats.length;
  const rake = Math.floor((pot * rakeBps) / 10_000);
  const payouts = parts.map((part) => Math.floor(((pot - rake) * part) / all));
  const over = pot - rake - payouts.reduce((sum, part) => sum + part, 0);
  for (let cent = 0; cent < over; cent++) {
    const seat = best[cent % best.length] ?? 0;
    payouts[seat] = (payouts[seat] ?? 0) + 1;
  }
  const prizes = parts.map((part) => (part === top ? Math.floor(prize / best.length) : 0));
  return { isDrawn: false, rake, payouts, prizes, remainder: prize % best.length };
}
