import { describe, expect, it } from 'vitest';
import { manualClock } from '../kernel/index.js';
import { type ArenaEvent, WaitingMatches } from './index.js';

const START = '2026-01-01T00:00:00.000Z';
const HOUR_MS = 3_600_000;
const event = (type: ArenaEvent['type'], matchId: string, more: object = {}) =>
  ({ type, data: { matchId, ...more } }) as ArenaEvent;

describe('matches that wait', () => {
  const following = (...events: ArenaEvent[]) => {
    const clock = manualClock(START);
    const matches = new WaitingMatches(clock, { stakesWaitS: 3_600, runnerWaitS: 7_200 });
    events.forEach((each, i) => {
      matches.apply({ ...each, position: i + 1, time: START });
    });
    return { clock, matches };
  };
  const due = (matches: WaitingMatches) =>
    matches.due().map(({ matchId, status, attempts }) => [matchId, status, attempts]);

  it('are due when they have waited for their stakes, or for a runner, as long as they may', () => {
    const { clock, matches } = following(
      event('MatchProposed', 'a'),
      event('MatchProposed', 'b'),
      event('MatchReady', 'b'),
    );
    clock.advance(HOUR_MS - 1);
    expect(due(matches)).toEqual([]);
    clock.advance(1);
    expect(due(matches)).toEqual([['a', 'proposed', 0]]);
    clock.advance(HOUR_MS);
    expect(due(matches)).toEqual([
      ['a', 'proposed', 0],
      ['b', 'ready', 0],
    ]);
  });

  it('wait anew when an attempt failed or was handed back, and not while they are played or when they are over', () => {
    const { clock, matches } = following(
      ...['a', 'b', 'c', 'd', 'e'].map((matchId) => event('MatchReady', matchId)),
      ...['a', 'b', 'c', 'd'].map((matchId) => event('MatchClaimed', matchId, { attempt: 2 })),
      event('MatchRequeued', 'a', { attempt: 2 }),
      event('MatchReleased', 'b', { attempt: 2 }),
      event('MatchSettled', 'd'),
      event('MatchVoided', 'e'),
    );
    clock.advance(2 * HOUR_MS);
    expect(due(matches)).toEqual([
      ['a', 'ready', 2],
      ['b', 'ready', 1],
    ]);
  });

  it('are found again by whoever starts from where they are complete', () => {
    const { matches } = following(event('MatchProposed', 'a'), event('MatchProposed', 'b'), event('MatchReady', 'a'));
    expect(matches.firstOpen).toBe(2);
    matches.apply({ ...event('MatchVoided', 'b'), position: 4, time: START });
    expect(matches.firstOpen).toBe(3);
    matches.apply({ ...event('MatchClaimed', 'a'), position: 5, time: START });
    expect(matches.firstOpen).toBeUndefined();
  });
});
