import type { Clock, RecordedEvent } from '../kernel/index.js';
import type { ExpireMatch } from './commands.js';
import type { ArenaEvent } from './events.js';

interface Waiting {
  readonly matchId: string;
  readonly status: 'proposed' | 'ready';
  readonly attempts: number;
  readonly position: number;
  readonly sinceMs: number;
}

/** How long a match may wait for its stakes, and for a runner. */
export interface Patience {
  readonly stakesWaitS: number;
  readonly runnerWaitS: number;
}

/** The matches that wait for their stakes or for a runner, folded from the log. It only says when to ask; the match decides. */
export class WaitingMatches {
  static readonly types: readonly ArenaEvent['type'][] = [
    ...(['MatchProposed', 'MatchReady', 'MatchRequeued', 'MatchReleased'] as const),
    ...(['MatchClaimed', 'MatchSettled', 'MatchVoided'] as const),
  ];

  /** In the order of their positions. */
  private readonly open = new Map<string, Waiting>();

  constructor(
    private readonly clock: Clock,
    private readonly patience: Patience,
  ) {}

  apply(event: Pick<RecordedEvent, 'position' | 'time'> & ArenaEvent): void {
    const { matchId } = event.data;
    this.open.delete(matchId);
    const wait = (status: Waiting['status'], attempts: number) => {
      const sinceMs = Date.parse(event.time);
      this.open.set(matchId, { matchId, status, attempts, position: event.position, sinceMs });
    };
    if (event.type === 'MatchProposed') wait('proposed', 0);
    if (event.type === 'MatchReady') wait('ready', 0);
    if (event.type === 'MatchRequeued') wait('ready', event.data.attempt);
    if (event.type === 'MatchReleased') wait('ready', event.data.attempt - 1);
  }

  /** What to ask of the matches that have waited for too long. */
  due(): readonly ExpireMatch['data'][] {
    const nowMs = Date.parse(this.clock());
    const { stakesWaitS, runnerWaitS } = this.patience;
    return [...this.open.values()].flatMap(({ matchId, status, attempts, sinceMs }) => {
      const waitedS = status === 'proposed' ? stakesWaitS : runnerWaitS;
      return sinceMs + waitedS * 1_000 > nowMs ? [] : [{ matchId, status, attempts, waitedS }];
    });
  }

  /** Where the first match that waits began to: whoever starts before it misses none. */
  get firstOpen(): number | undefined {
    return this.open.values().next().value?.position;
  }
}
