import type { Clock, RecordedEvent } from '../kernel/index.js';
import type { ArenaEvent } from './events.js';

/** A match that is ready or being played. */
interface Open {
  /** Where in the log it became ready. */
  readonly position: number;
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

/**
 * The matches that wait for a runner, in the order in which they became ready, and the leases of those being played;
 * folded from the log. It only says what is worth trying: the lease in the match's own stream decides who plays.
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
  private readonly waiting = { inside: new Set<string>(), outside: new Set<string>() };
  private readonly offered = new Map<string, number>();
  private readonly waiters: Waiter[] = [];

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.open.size;
  }

  apply(event: Pick<RecordedEvent, 'position'> & ArenaEvent): void {
    const { matchId } = event.data;
    const { position = event.position, outside = false } = this.open.get(matchId) ?? {};
    switch (event.type) {
      case 'MatchProposed':
        // Kept from here on, since only the proposal says who plays from outside.
        if (event.data.seats.some((seat) => seat.runtime === 'external')) {
          this.open.set(matchId, { position, outside: true, lease: undefined });
        }
        break;
      case 'MatchReady':
      case 'MatchRequeued':
      case 'MatchReleased': {
        this.open.set(matchId, { position, outside, lease: undefined });
        this.waitingFor(outside).add(matchId);
        this.serve();
        break;
      }
      case 'MatchClaimed':
      case 'LeaseExtended': {
        const { runnerId, attempt, leaseUntil: untilIso } = event.data;
        this.open.set(matchId, { position, outside, lease: { runnerId, attempt, untilIso } });
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
      this.waitingFor(this.open.get(matchId)?.outside ?? false).add(matchId);
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

  private waitingFor(outside: boolean): Set<string> {
    return outside ? this.waiting.outside : this.waiting.inside;
  }

  private taken(matchId: string): void {
    for (const waiting of Object.values(this.waiting)) waiting.delete(matchId);
    this.offered.delete(matchId);
  }

  private serve(): void {
    const untilMs = Date.parse(this.clock()) + OFFER_MS;
    for (const outside of [false, true]) {
      for (;;) {
        const at = this.waiters.findIndex((each) => each.outside === outside);
        const waiter = this.waiters[at];
        if (!waiter) break;
        const matchIds = first(this.waitingFor(outside), waiter.capacity);
        if (matchIds.length === 0) break;
        this.waiters.splice(at, 1);
        for (const matchId of matchIds) {
          this.waitingFor(outside).delete(matchId);
          this.offered.set(matchId, untilMs);
        }
        waiter.give(matchIds);
      }
    }
  }
}

/** Without copying the rest, which may be long. */
function first<T>(items: Iterable<T>, count: number): T[] {
  const taken: T[] = [];
  for (const item of items) {
    if (taken.length >= count) break;
    taken.push(item);
  }
  return taken;
}
