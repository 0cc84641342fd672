import type { Cause, Clock, RecordedEvent } from '../kernel/index.js';
import type { ArenaEvent } from './events.js';

/** A match that is ready or being played. */
interface Open {
  /** Where in the log it became ready. */
  readonly position: number;
  readonly priority: number;
  /** Somebody in it plays from outside: it is for the arena's table, not for runners. */
  readonly outside: boolean;
  /** What its next command follows from. */
  readonly cause: Cause | undefined;
  /** Since when it waits to be claimed, by the clock of whoever keeps this queue. */
  readonly waitsSinceMs?: number;
  lease: { readonly runnerId: string; readonly attempt: number; untilIso: string } | undefined;
}

/** An attempt in the hands of a runner. */
export interface Attempt {
  readonly matchId: string;
  readonly runnerId: string;
  readonly attempt: number;
}

interface Waiter {
  readonly capacity: number;
  readonly outside: boolean;
  readonly give: (matchIds: readonly string[]) => void;
}

/** How long a match that was offered to a runner is kept for it. Claiming takes a round trip. */
const OFFER_MS = 5_000;
/** Of so many matches that are given out, one is whichever became ready first: a low priority waits, and not for ever. */
const FAIR_EVERY = 4;

/** How much there is to do in one of the two places where matches are played. */
interface Counts {
  readonly waiting: number;
  readonly leased: number;
  /** Those who wait for a match. */
  readonly asking: number;
}

/**
 * The matches that wait for a runner, by priority and then in the order in which they became ready, and the leases of
 * those being played; folded from the log. It only says what is worth trying: the lease in the match's own stream decides who plays.
 */
export class WorkQueue {
  static readonly types: readonly ArenaEvent['type'][] = [
    'MatchProposed',
    'MatchReady',
    'MatchClaimed',
    'LeaseExtended',
    'MatchReleased',
    'MatchRequeued',
    'MatchSettled',
    'MatchVoided',
  ];

  /** In the order of their positions, since a match keeps its place from the first time that it was ready. */
  private readonly open = new Map<string, Open>();
  /** By priority. */
  private readonly waiting = { inside: new Map<number, Set<string>>(), outside: new Map<number, Set<string>>() };
  private given = 0;
  private readonly offered = new Map<string, number>();
  private readonly waiters: Waiter[] = [];

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.open.size;
  }

  apply(event: Pick<RecordedEvent, 'position'> & Partial<Pick<RecordedEvent, 'id' | 'meta'>> & ArenaEvent): void {
    const { matchId } = event.data;
    const known = this.open.get(matchId);
    const { position = event.position, outside = false, priority = 0 } = known ?? {};
    const cause = causeOf(event) ?? known?.cause;
    switch (event.type) {
      case 'MatchProposed':
        // Kept from here on, since only the proposal says who plays from outside.
        if (event.data.seats.some((seat) => seat.runtime === 'external')) {
          this.open.set(matchId, { position, outside: true, priority, cause, lease: undefined });
        }
        break;
      case 'MatchReady':
      case 'MatchRequeued':
      case 'MatchReleased': {
        const ranked = event.type === 'MatchReady' ? (event.data.priority ?? 0) : priority;
        const waitsSinceMs = Date.parse(this.clock());
        this.open.set(matchId, { position, outside, priority: ranked, cause, waitsSinceMs, lease: undefined });
        this.wait(matchId);
        this.serve();
        break;
      }
      case 'MatchClaimed':
      case 'LeaseExtended': {
        const { runnerId, attempt, leaseUntil: untilIso } = event.data;
        this.open.set(matchId, { position, outside, priority, cause, lease: { runnerId, attempt, untilIso } });
        this.taken(matchId);
        break;
      }
      case 'MatchSettled':
      case 'MatchVoided':
        this.open.delete(matchId);
        this.taken(matchId);
    }
  }

  /**
   * At most `capacity` matches to try to claim, each offered to one runner at a time. Waits for the first one; resolves
   * with none when `signal` aborts. Matches with agents from outside are offered to those who ask for these.
   */
  next(capacity: number, signal: AbortSignal, outside = false): Promise<readonly string[]> {
    if (signal.aborted || capacity < 1) return Promise.resolve([]);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        capacity,
        outside,
        give: (matchIds) => {
          signal.removeEventListener('abort', leave);
          resolve(matchIds);
        },
      };
      const leave = () => {
        this.waiters.splice(this.waiters.indexOf(waiter), 1);
        resolve([]);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.waiters.push(waiter);
      this.serve();
    });
  }

  /** The attempts whose lease has run out by now. Matches that were offered and not claimed wait again. */
  expired(): readonly Attempt[] {
    const now = this.clock();
    const nowMs = Date.parse(now);
    for (const [matchId, untilMs] of this.offered) {
      if (untilMs > nowMs) continue;
      this.offered.delete(matchId);
      this.wait(matchId);
    }
    this.serve();
    return this.leases((lease) => lease.untilIso <= now);
  }

  /** Matches with agents from outside that no table has taken for so long: there is none, or it is full. */
  unserved(ms: number): readonly string[] {
    const beforeMs = Date.parse(this.clock()) - ms;
    return [...this.open].flatMap(([matchId, { outside, waitsSinceMs = Number.POSITIVE_INFINITY }]) =>
      outside && waitsSinceMs <= beforeMs ? [matchId] : [],
    );
  }

  /** Forgets every match, for whoever hears of them anew. Those who wait for one go on waiting. */
  clear(): void {
    this.open.clear();
    this.offered.clear();
    for (const lines of Object.values(this.waiting)) lines.clear();
  }

  leasesOf(runnerId: string): readonly Attempt[] {
    return this.leases((lease) => lease.runnerId === runnerId);
  }

  holds({ matchId, runnerId, attempt }: Attempt): boolean {
    const lease = this.open.get(matchId)?.lease;
    return lease?.runnerId === runnerId && lease.attempt === attempt;
  }

  /** What a command on this match follows from, as far as it is known here. */
  causeOf(matchId: string): Cause | undefined {
    return this.open.get(matchId)?.cause;
  }

  /** What runners have to do, and what is for the table, where agents from outside sit. */
  get counts(): { readonly runners: Counts; readonly table: Counts } {
    return { runners: this.countsOf(false), table: this.countsOf(true) };
  }

  /** Where the first match that is not over became known: whoever starts before it misses none that is open. */
  get firstOpen(): number | undefined {
    return this.open.values().next().value?.position;
  }

  private leases(which: (lease: NonNullable<Open['lease']>) => boolean): readonly Attempt[] {
    return [...this.open].flatMap(([matchId, { lease }]) =>
      lease && which(lease) ? [{ matchId, runnerId: lease.runnerId, attempt: lease.attempt }] : [],
    );
  }

  private countsOf(outside: boolean): Counts {
    let leased = 0;
    for (const open of this.open.values()) if (open.lease && open.outside === outside) leased += 1;
    let waiting = 0;
    for (const line of this.lines(outside).values()) waiting += line.size;
    for (const matchId of this.offered.keys()) if (this.open.get(matchId)?.outside === outside) waiting += 1;
    return { waiting, leased, asking: this.waiters.filter((waiter) => waiter.outside === outside).length };
  }

  private lines(outside: boolean): Map<number, Set<string>> {
    return outside ? this.waiting.outside : this.waiting.inside;
  }

  private wait(matchId: string): void {
    const { outside = false, priority = 0 } = this.open.get(matchId) ?? {};
    const line = this.lines(outside).get(priority) ?? new Set();
    this.lines(outside).set(priority, line.add(matchId));
  }

  private taken(matchId: string): void {
    for (const lines of Object.values(this.waiting)) for (const line of lines.values()) line.delete(matchId);
    this.offered.delete(matchId);
  }

  private serve(): void {
    const untilMs = Date.parse(this.clock()) + OFFER_MS;
    for (const outside of [false, true]) {
      while (this.heads(outside).length > 0) {
        const at = this.waiters.findIndex((each) => each.outside === outside);
        const waiter = this.waiters[at];
        if (!waiter) break;
        this.waiters.splice(at, 1);
        const matchIds: string[] = [];
        while (matchIds.length < waiter.capacity) {
          const matchId = this.pick(outside);
          if (matchId === undefined) break;
          this.taken(matchId);
          this.offered.set(matchId, untilMs);
          matchIds.push(matchId);
        }
        waiter.give(matchIds);
      }
    }
  }

  private pick(outside: boolean): string | undefined {
    const heads = this.heads(outside);
    const [best] = heads;
    if (!best) return undefined;
    this.given += 1;
    const isFair = this.given % FAIR_EVERY === 0;
    const comesFirst = (a: Head, b: Head) => (isFair ? a.position < b.position : a.priority > b.priority);
    return heads.reduce((first, head) => (comesFirst(head, first) ? head : first), best).matchId;
  }

  /** The first of every line. */
  private heads(outside: boolean): Head[] {
    return [...this.lines(outside)].flatMap(([priority, line]) => {
      const matchId = line.values().next().value;
      return matchId === undefined ? [] : [{ matchId, priority, position: this.open.get(matchId)?.position ?? 0 }];
    });
  }
}

/** A runner's claim, heartbeats and report all follow from the match's having been ready, whichever is heard of first. */
const causeOf = ({ type, id, meta }: Partial<Pick<RecordedEvent, 'id' | 'meta'>> & ArenaEvent): Cause | undefined =>
  id && meta && type !== 'MatchClaimed' && type !== 'LeaseExtended'
    ? { correlationId: meta.correlationId, causationId: id }
    : undefined;

interface Head {
  readonly matchId: string;
  readonly priority: number;
  readonly position: number;
}
