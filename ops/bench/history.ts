import { randomUUID } from 'node:crypto';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { arenaEvents } from '../../services/arena/index.js';
import { type Catalogue, checkedData, type EventStore, type SealedEvent } from '../../services/kernel/index.js';
import { walletEvents } from '../../services/wallet/index.js';
import { withFolder } from '../harness/folders.js';
import { seatOf, wonBy } from '../harness/write-side.js';
import { type BenchOptions, scaled, thousands } from './rounds.js';
import { newEventMeta, StreamWriter } from './workload.js';

const ACCOUNTS = 1_000;
const MATCHES_AT_ONCE = 64;
const TURNS = 12;
const [game, currency, stakeCents] = ['connect-four', 'PLAY', '500'];

interface History {
  readonly store: LmdbEventStore;
  readonly count: number;
  /** Where the log is, and a folder with room beside it. */
  readonly path: string;
  readonly folder: string;
}

/** Lends a log of its own for a benchmark, with so many events or a twentieth of them. */
export const withHistory = <T>(events: number, options: BenchOptions, use: (history: History) => Promise<T>) =>
  withFolder(async (folder) => {
    const path = `${folder}/log`;
    const store = await LmdbEventStore.open(path);
    try {
      const count = await writeHistory(store, scaled(options, events, 20));
      options.progress(`${thousands(count)} events written`);
      return await use({ store, count, path, folder });
    } finally {
      await store.close();
    }
  });

/**
 * Fills a store with what an arena's log looks like: staked matches of two, with their turns, and the wallets behind
 * them. Returns how many events there are; it stops at the first whole match beyond the number asked for. Whoever writes
 * into the same store again gives other wallets by a suffix: their streams begin anew.
 */
export async function writeHistory(store: EventStore, eventsMin: number, suffix = ''): Promise<number> {
  const wallets = Array.from({ length: ACCOUNTS }, (_, i) => new StreamWriter(`wallet-player-${i}${suffix}`));
  let count = 0;
  while (count < eventsMin) {
    const appends: Promise<unknown>[] = [];
    for (let i = 0; i < MATCHES_AT_ONCE && count < eventsMin; i++) {
      const events = matchHistory(wallets);
      // A benchmark on events that no decider would emit would measure something else.
      if (count === 0) for (const event of events) checkedData(catalogueOf(event), event);
      count += events.length;
      for (const group of byStream(events)) {
        const first = group[0] as SealedEvent;
        appends.push(store.append(first.stream, first.revision - 1, group));
      }
    }
    await Promise.all(appends);
  }
  return count;
}

const catalogueOf = ({ stream }: SealedEvent): Catalogue => (stream.startsWith('wallet-') ? walletEvents : arenaEvents);

function matchHistory(wallets: readonly StreamWriter[]): SealedEvent[] {
  const matchId = randomUUID();
  const match = new StreamWriter(`match-${matchId}`);
  const first = Math.floor(Math.random() * wallets.length);
  const indexes = [first, (first + 1) % wallets.length];
  const accounts = indexes.map((index) => wallets[index] as StreamWriter);
  const seats = indexes.map((index) => seatOf(`player-${index}`));
  const terms = { matchId, game, stakeCents, currency };
  const money = (seat: number, amountCents: string) => ({
    accountId: seats[seat]?.accountId,
    amountCents,
    currency,
    purpose: { kind: 'match', matchId, seat },
  });
  const grant = { amountCents: stakeCents, currency, reason: 'Weekly allowance' };
  const events = accounts.map((account, seat) =>
    account.next('CreditsGranted', { ...grant, accountId: seats[seat]?.accountId }),
  );
  const proposal = { ...terms, seed: `s-${matchId}`, seats, rakeBps: 1000 };
  events.push(match.next('MatchProposed', proposal));
  accounts.forEach((account, seat) => {
    events.push(account.next('FundsHeld', { ...money(seat, stakeCents), holdId: `${matchId}:${seat}` }));
    events.push(match.next('StakeEscrowed', { matchId, seat }));
  });
  events.push(match.next('MatchReady', { matchId }));
  const leaseUntil = new Date().toISOString();
  events.push(match.next('MatchClaimed', { matchId, runnerId: 'runner-1', attempt: 1, leaseUntil }));
  const report = newEventMeta();
  for (let turn = 1; turn <= TURNS; turn++) {
    const action = { column: Math.floor(Math.random() * 7) };
    events.push(
      match.next('TurnPlayed', { matchId, turn, seat: (turn - 1) % 2, action, fuel: 1_000 + turn * 37 }, report),
    );
  }
  const { outcome, execution } = wonBy(0);
  const usage = [0, 1].map((seat) => ({ fuel: 9_000 + seat, peakMemoryBytes: 70_000 }));
  const limits = { fuel: 1_000_000, memoryBytes: 8_388_608 };
  const played = { outcome, execution: { ...execution, limits, usage, signed: null } };
  events.push(match.next('MatchPlayed', { matchId, runnerId: 'runner-1', attempt: 1, ...played }, report));
  const paid = seats.map(({ accountId, agentId }, seat) => {
    return { accountId, agentId, score: 1 - seat, payoutCents: seat === 0 ? '900' : '0' };
  });
  events.push(match.next('MatchSettled', { ...terms, potCents: '1000', rakeCents: '100', seats: paid }, report));
  accounts.forEach((account, seat) => {
    events.push(account.next('HoldPosted', { ...money(seat, stakeCents), holdId: `${matchId}:${seat}` }));
    if (seat === 0) events.push(account.next('FundsCredited', money(seat, '900')));
  });
  return events;
}

/** Neighbours of one stream share an append, as they would if one command had emitted them. */
function byStream(events: readonly SealedEvent[]): SealedEvent[][] {
  const groups: SealedEvent[][] = [];
  for (const event of events) {
    const group = groups.at(-1);
    if (group?.[0]?.stream === event.stream) group.push(event);
    else groups.push([event]);
  }
  return groups;
}
