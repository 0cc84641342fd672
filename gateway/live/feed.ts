import { setTimeout as sleep } from 'node:timers/promises';
import { matchById, turnsOf } from '../../projections/matches/query.js';
import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';
import { AgonError } from '../../services/kernel/index.js';
import type { GatewayPorts } from '../ports.js';
import type { Ended, LiveMatches } from './matches.js';

const AGAIN_MS = 250;

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

  /** It may be over, or surely is. The read side may be down, or behind for longer than anybody waits for it. */
  const finish = async ({ position }: Pick<Ended, 'position'>, surely: boolean) => {
    let match = await look(position);
    while (!over && (match === 'unknown' || (surely && !match))) {
      await sleep(AGAIN_MS);
      match = await look(position);
    }
    if (!match || match === 'unknown') return;
    const { attempts, turns } = match;
    later(() => {
      for (const turn of turns) show(attempts, turn);
      if (!over) tell({ kind: 'end', match });
      over = true;
    });
  };

  const look = (position: number) => ended(position).catch(() => 'unknown' as const);

  const progress = ({ attempt, what }: Progress) => {
    if (what?.$case !== 'turnJson') return;
    const { turn, seat, action } = JSON.parse(what.turnJson) as SeenTurn;
    later(() => show(attempt, { turn, seat, action }));
  };

  // Heard first and asked then, as of what was heard before: whatever ends is noticed by one of the two.
  const stop = live.watch(matchId, { progress, ended: (end) => void finish(end, true) });
  void finish({ position: live.position }, false);
  return () => {
    over = true;
    stop();
    for (const timer of timers) clearTimeout(timer);
  };
}

/** The match as the read side has it, once that has come to this position; undefined while it is not over. */
export async function endedIn(
  { database, visible }: Pick<GatewayPorts, 'database' | 'visible'>,
  matchId: string,
  position: number,
): Promise<EndedMatch | undefined> {
  await visible(position);
  const match = await matchById(database, matchId);
  if (!match || match.endedAt === null) return undefined;
  const turns = (await turnsOf(database, [matchId])).map(({ turn, seat, action }) => {
    return { turn, seat, action: JSON.parse(action) as unknown };
  });
  const { status, reason, winner, attempts } = match;
  return { status, reason, winner, attempts, turns };
}

/** @example momentOf('2.14') // the fourteenth turn of the second attempt */
export function momentOf(id: string): { attempt: number; turn: number } {
  if (id === '') return { attempt: 0, turn: 0 };
  const [, attempt, turn] = /^(\d{1,6})\.(\d{1,6})$/.exec(id) ?? [];
  if (attempt === undefined) throw new AgonError('QUERY.BAD_CURSOR', `"${id}" is not the id of an event of this feed.`);
  return { attempt: Number(attempt), turn: Number(turn) };
}
