import type { Clock, RecordedEvent } from '../kernel/index.js';
import type { ArenaEvent } from './events.js';

/** A match that is ready or being played. */
interface Open {
  /** Where in the log it became ready. */
  readonly position: number;
  readonly priority: number;
  /** Somebody in it plays from outside: it is for the arena's table, not for runners. */
  readonly outside: boolean;
  lease: { readonly runnerId: string; readonly attempt: number; untilIso: string } | undefined;
}

/** An attempt in the hands of a runner. */
export interface Leased {
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

  apply(event: Pick<RecordedEvent, 'position'> & ArenaEvent): void {
    const { matchId } = event.data;
    const { position = event.position, outside = false, priority = 0 } = this.open.get(matchId) ?? {};
    switch (event.type) {
      case 'MatchProposed':
        // Kept from here on, since only the proposal says who plays from outside.
        if (event.data.seats.some((seat) => seat.runtime === 'external')) {
          this.open.set(matchId, { position, outside: true, priority, lease: undefined });
        }
        break;
      case 'MatchReady':
      case 'MatchRequeued':
      case 'MatchReleased': {
        const ranked = event.type === 'MatchReady' ? (event.data.priority ?? 0) : priority;
        this.open.set(matchId, { position, outside, priority: ranked, lease: undefined });
        this.wait(matchId);
        this.serve();
        break;
      }
      case 'MatchClaimed':
      case 'LeaseExtended': {
        const { runnerId, attempt, leaseUntil: untilIso } = event.data;
        this.open.set(matchId, { position, outside, priority, lease: { runnerId, attempt, untilIso } });
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
  expired(): readonly Leased[] {
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

  leasesOf(runnerId: string): readonly Leased[] {
    return this.leases((lease) => lease.runnerId === runnerId);
  }

  holds({ matchId, runnerId, attempt }: Leased): boolean {
    const lease = this.open.get(matchId)?.lease;
    return lease?.runnerId === runnerId && lease.attempt === attempt;
  }

  /** The position up to which every match is over: whoever starts from there misses none that is open. */
  completeUpTo(position: number): number {
    const first = this.open.values().next().value;
    return first === undefined ? position : Math.min(position, first.position - 1);
  }

  private leases(which: (lease: NonNullable<Open['lease']>) => boolean): readonly Leased[] {
    return [...this.open].flatMap(([matchId, { lease }]) =>
      lease && which(lease) ? [{ matchId, runnerId: lease.runnerId, attempt: lease.attempt }] : [],
    );
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

interface Head {
  readonly matchId: string;
  readonly priority: number;
  readonly position: number;
}
