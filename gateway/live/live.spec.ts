import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { upcast } from '../../projections/views.js';
import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { chain } from '../../services/kernel/fixtures.js';
import { type EndedMatch, type Moment, spectate } from './feed.js';
import { LiveMatches } from './matches.js';

const turn = (number: number) => ({ turn: number, seat: (number + 1) % 2, action: `move ${number}` });
const said = (attempt: number, number: number): Progress => {
  const turnJson = JSON.stringify({ ...turn(number), fuel: 1 });
  return { matchId: 'm', attempt, what: { $case: 'turnJson', turnJson } };
};
const settled = (attempts: number, turns: number): EndedMatch => ({
  status: 'settled',
  reason: 'line',
  winner: 0,
  attempts,
  turns: Array.from({ length: turns }, (_, i) => turn(i + 1)),
});

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** A spectator, what it has heard so far in short, and the read side it asks. */
function seat(live: LiveMatches, options: { after?: [number, number]; delayMs?: number } = {}) {
  const heard: string[] = [];
  const row: { match?: EndedMatch } = {};
  const [attempt, last] = options.after ?? [0, 0];
  const stop = spectate(live, {
    matchId: 'm',
    after: { attempt, turn: last },
    delayMs: options.delayMs ?? 0,
    ended: async () => row.match,
    tell: (moment: Moment) => heard.push(moment.kind === 'end' ? 'end' : `${moment.attempt}.${moment.turn.turn}`),
  });
  stops.push(stop);
  return { heard, row, stop };
}

describe('a spectator', () => {
  it('hears what was before it came, what comes, and the end', async () => {
    const live = new LiveMatches();
    live.publish(said(1, 1));
    const { heard, row } = seat(live);
    live.publish(said(1, 2));
    expect(heard).toEqual(['1.1', '1.2']);
    row.match = settled(1, 3);
    live.end({ matchId: 'm', position: 9 });
    await expect.poll(() => heard).toEqual(['1.1', '1.2', '1.3', 'end']);
  });

  it('goes on after the last that it has seen', () => {
    const live = new LiveMatches();
    for (const number of [1, 2, 3]) live.publish(said(1, number));
    expect(seat(live, { after: [1, 2] }).heard).toEqual(['1.3']);
  });

  it('hears nothing twice, nothing out of order, and nothing of an attempt that was given up', () => {
    const live = new LiveMatches();
    const { heard } = seat(live);
    for (const [attempt, number] of [
      [1, 1],
      [1, 1],
      [1, 2],
      [2, 1],
      [1, 3],
      [2, 2],
    ] as const)
      live.publish(said(attempt, number));
    expect(heard).toEqual(['1.1', '1.2', '2.1', '2.2']);
  });

  it('hears nothing after a gap, until the log fills it', async () => {
    const live = new LiveMatches();
    const { heard, row } = seat(live);
    for (const number of [1, 3, 4]) live.publish(said(1, number));
    expect(heard).toEqual(['1.1']);
    row.match = settled(1, 4);
    live.end({ matchId: 'm', position: 9 });
    await expect.poll(() => heard).toEqual(['1.1', '1.2', '1.3', '1.4', 'end']);
  });

  it('hears the end also when the read side is down or far behind', async () => {
    const live = new LiveMatches();
    const answers: (() => EndedMatch | undefined)[] = [
      () => undefined,
      () => {
        throw new Error('The database restarts.');
      },
      () => undefined,
      () => settled(1, 2),
    ];
    const heard: string[] = [];
    const stop = spectate(live, {
      matchId: 'm',
      after: { attempt: 0, turn: 0 },
      delayMs: 0,
      ended: async () => answers.shift()?.(),
      tell: (moment) => heard.push(moment.kind),
    });
    stops.push(stop);
    live.end({ matchId: 'm', position: 9 });
    await expect.poll(() => heard, { timeout: 5_000 }).toEqual(['turn', 'turn', 'end']);
  });

  it('who comes between the end and the read side asks as of the end', async () => {
    const [live, store] = [new LiveMatches(), new MemoryEventStore()];
    const following = await live.follow(store, upcast);
    const asked: number[] = [];
    await store.append('match-m', -1, chain('match-m', 2));
    await expect.poll(() => live.position).toBe(2);
    stops.push(
      spectate(live, {
        matchId: 'm',
        after: { attempt: 0, turn: 0 },
        delayMs: 0,
        ended: async (position) => void asked.push(position),
        tell: () => {},
      }),
    );
    expect(asked).toEqual([2]);
    await following.stop();
  });

  it('is not told what agents print', () => {
    const live = new LiveMatches();
    const { heard } = seat(live);
    live.publish({ matchId: 'm', attempt: 1, what: { $case: 'log', log: { seat: 0, text: 'my secret plan' } } });
    expect(heard).toEqual([]);
  });

  it('hears with a delay if there is one, and nothing after it has left', async () => {
    const live = new LiveMatches();
    const [stays, leaves] = [seat(live, { delayMs: 20 }), seat(live, { delayMs: 20 })];
    live.publish(said(1, 1));
    expect([stays.heard, leaves.heard]).toEqual([[], []]);
    leaves.stop();
    await expect.poll(() => stays.heard).toEqual(['1.1']);
    await sleep(30);
    expect(leaves.heard).toEqual([]);
  });
});
