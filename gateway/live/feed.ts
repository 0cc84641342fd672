import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';
import type { Ended, LiveMatches } from './matches.js';

/** What a spectator hears: the turns of an attempt in order, each once, and how the match ended. */
export type Moment =
  | { readonly kind: 'turn'; readonly attempt: number; readonly turn: SeenTurn }
  | { readonly kind: 'end'; readonly match: EndedMatch };

export interface SeenTurn {
  readonly turn: number;
  readonly seat: number;
  readonly action: unknown;
}

export interface EndedMatch {
  readonly status: string;
  readonly reason: string;
  readonly winner: number | null;
  readonly attempts: number;
  readonly turns: readonly SeenTurn[];
}

export interface FeedOptions {
  readonly matchId: string;
  /** The last moment that the spectator has seen, as `attempt.turn`. */
  readonly after: { readonly attempt: number; readonly turn: number };
  /** How long after it happened a moment is shown, so that watching helps no player. */
  readonly delayMs: number;
  /** The match as the read side has it, once that has come to this position; undefined while it is not over. */
  ended(position: number): Promise<EndedMatch | undefined>;
  tell(moment: Moment): void;
}

/**
 * One spectator's view of one match. What a runner says may get lost or come twice: nothing is told after a gap, and the
 * log, which has it all in the end, fills it. A new attempt begins again from its first turn. Returns how to stop.
 */
export function spectate(live: LiveMatches, options: FeedOptions): () => void {
  const { matchId, delayMs, ended, tell } = options;
  let seen = options.after;
  let over = false;
  const timers = new Set<NodeJS.Timeout>();
  const later = (work: () => void) => {
    if (delayMs === 0) return work();
    const timer = setTimeout(() => {
      timers.delete(timer);
      work();
    }, delayMs);
    timers.add(timer);
  };

  const show = (attempt: number, turn: SeenTurn) => {
    const next = attempt > seen.attempt ? 1 : attempt === seen.attempt ? seen.turn + 1 : undefined;
    if (over || turn.turn !== next) return;
    seen = { attempt, turn: turn.turn };
    tell({ kind: 'turn', attempt, turn });
  };

  const finish = async ({ position }: Pick<Ended, 'position'>) => {
    const match = await ended(position);
    if (!match) return;
    later(() => {
      for (const turn of match.turns) show(match.attempts, turn);
      if (!over) tell({ kind: 'end', match });
      over = true;
    });
  };

  const progress = ({ attempt, what }: Progress) => {
    if (what?.$case !== 'turnJson') return;
    const { turn, seat, action } = JSON.parse(what.turnJson) as SeenTurn;
    later(() => show(attempt, { turn, seat, action }));
  };

  // Heard first and asked then: whatever ends in between is noticed by one of the two.
  const stop = live.watch(matchId, { progress, ended: (end) => void finish(end) });
  void finish({ position: 0 });
  return () => {
    over = true;
    stop();
    for (const timer of timers) clearTimeout(timer);
  };
}
