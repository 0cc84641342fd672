import { type Clock, derivedId, systemClock } from '../kernel/index.js';
import type { Config } from './settings.js';

/** The time of this deployment: the system's, unless it was told to stand still. */
export const clockOf = ({ now }: Config): Clock => (now === undefined ? systemClock : () => now);

/**
 * Where time stands still, claims are named by the match and by how often this process has claimed it, so that the same
 * commands give the same log again. Anywhere else a name is new each time: a process that was started again must not
 * take an old claim for its own.
 */
export function claimIdsOf({ now }: Config): ((matchId: string) => string) | undefined {
  if (now === undefined) return undefined;
  const counts = new Map<string, number>();
  return (matchId) => {
    const count = (counts.get(matchId) ?? 0) + 1;
    counts.set(matchId, count);
    return derivedId('claim', now, matchId, count);
  };
}
