import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { Projector } from '../engine/projector.js';
import { SWEEP_ROWS } from '../engine/sink.js';
import { playedHistory, renumbered, reversalOf } from '../history.contract.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast } from '../views.js';
import { afterMatch, seasonOf, unrated } from './board.js';
import { UNRATED } from './glicko2.js';
import { glickoAt, pairingOf, rank } from './query.js';
import { headToHead, type RatedMatchRow, type RatingRow, ratedMatches, ratingHistory, ratings } from './table.js';
import { leaderboardsView } from './view.js';

let history: readonly RecordedEvent[];
beforeAll(async () => {
  history = renumbered(await playedHistory(40));
});

const boardsAfter = async (events: readonly RecordedEvent[], batch = 50) => {
  const sink = new MemorySink();
  const projector = new Projector(leaderboardsView, sink, upcast);
  for (let at = 0; at < events.length; at += batch) await projector.project(events.slice(at, at + batch));
  expect(await sink.letters(leaderboardsView)).toEqual([]);
  const tables = [ratings, ratingHistory, headToHead, ratedMatches];
  return Promise.all(tables.map((table) => sink.rows(table as typeof ratings)));
};

const match = (scores: readonly number[], at = '2026-01-01T12:00:00.000Z'): RatedMatchRow => ({
  matchId: 'm',
  game: 'g',
  season: seasonOf(at),
  position: 1n,
  at,
  seats: scores.map((score, i) => ({ agentId: `a${i}`, score })),
});
const newcomers = (n: number) => Array.from({ length: n }, (_, i) => unrated('all', 'g', `a${i}`));

describe('a match that is taken back', () => {
  it.each(['MatchVoided', 'MatchReversed'] as const)(
    'leaves boards as if it had never been played: %s',
    async (type) => {
      const settled = history.filter((event) => event.type === 'MatchSettled');
      for (const n of [0, 3, settled.length - 1]) {
        const gone = settled[n]!;
        const reversal = { ...reversalOf(gone, type), position: history.length + 1 };
        const expected = await boardsAfter(history.filter((event) => event !== gone));
        // Long after, and in the same batch as the match itself.
        for (const batch of [30, 10_000]) expect(await boardsAfter([...history, reversal], batch)).toEqual(expected);
      }
    },
  );

  /** Settlements of two games among five agents, over two seasons; some taken back, once or twice, later on. */
  const manyMatches = (results: readonly { game: number; seats: readonly number[]; back: number }[]) => {
    const example = history.find((event) => event.type === 'MatchSettled')!;
    const settled = results.map(({ game, seats }, n) => ({
      ...example,
      id: `m${n}`,
      stream: `match-m${n}`,
      data: {
        ...(example.data as object),
        matchId: `m${n}`,
        game: `g${game}`,
        seats: seats.map((score, i) => ({ agentId: `x.a${(n + i * (1 + (n % 2))) % 5}`, accountId: 'x', score })),
      },
    }));
    const log = settled.flatMap((event, n) => [
      event,
      ...results.flatMap(({ back }, m) => {
        const due = back > 0 && (n === m + back - 1 || (n === settled.length - 1 && n < m + back - 1));
        return due ? [reversalOf(settled[m]!, back % 2 ? 'MatchReversed' : 'MatchVoided')] : [];
      }),
    ]);
    const gone = new Set(settled.filter((_event, n) => results[n]!.back > 0).map(({ id }) => id));
    const numbered = renumbered(log);
    return { log: numbered, kept: numbered.filter(({ id, type }) => type === 'MatchSettled' && !gone.has(id)) };
  };

  it('is as if it had never been, whichever matches they are and whenever they are taken back', async () => {
    const result = fc.record({
      game: fc.nat({ max: 1 }),
      seats: fc.constantFrom([1, 0], [0, 1], [0.5, 0.5], [1, 0, 0.5]),
      back: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 30 })),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(result, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 50 }),
        async (results, batch) => {
          const { log, kept } = manyMatches(results);
          expect(await boardsAfter(log, batch)).toEqual(await boardsAfter(kept));
        },
      ),
      { numRuns: 60, seed: 20260101 },
    );
  });

  it('has matches go by some at a time, and never has more of them in hand', async () => {
    const inHand: number[] = [];
    class Watched extends MemorySink {
      override sweep(...[view, from, to, swept, end]: Parameters<MemorySink['sweep']>) {
        const take: typeof swept.take = (some) => {
          const made = swept.take(some);
          inHand.push(some.length, [...made.values()].flat().length);
          return made;
        };
        // At the end it is what agents there are that counts: five of them, on two boards.
        return super.sweep(view, from, to, { ...swept, take }, () => {
          const ended = end();
          inHand.push([...(ended.changes ?? []).values()].flat().length);
          return ended;
        });
      }
    }
    const scores = [1, 0] as const;
    const results = Array.from({ length: 2_500 }, (_, n) => ({ game: 0, seats: scores, back: n === 3 ? 2_450 : 0 }));
    const { log, kept } = manyMatches(results);
    const [sink, expected] = [new Watched(), new MemorySink()];
    for (const [into, events] of [[sink, log] as const, [expected, kept] as const]) {
      const projector = new Projector(leaderboardsView, into, upcast);
      for (let at = 0; at < events.length; at += 500) await projector.project(events.slice(at, at + 500));
    }
    for (const table of [ratings, ratingHistory, headToHead, ratedMatches]) {
      expect(await sink.rows(table as typeof ratings)).toEqual(await expected.rows(table as typeof ratings));
    }
    expect(inHand.length).toBeGreaterThan(4);
    expect(Math.max(...inHand)).toBeLessThanOrEqual(4 * SWEEP_ROWS);
    expect(inHand.at(-1)).toBeLessThan(40);
  });

  it('counts on from there, and is taken back once', async () => {
    const settled = history.filter((event) => event.type === 'MatchSettled');
    const [gone, half] = [settled[2]!, settled[6]!.position];
    const reversal = { ...reversalOf(gone, 'MatchReversed'), position: half + 0.25 };
    const again = { ...reversal, id: 'again', position: half + 0.5 };
    const log = [...history, reversal, again].sort((a, b) => a.position - b.position);
    expect(await boardsAfter(log)).toEqual(await boardsAfter(history.filter((event) => event !== gone)));
  });

  it('is nothing to the boards if it was never rated', async () => {
    const stray = { ...reversalOf(history.find((e) => e.type === 'MatchSettled')!, 'MatchReversed'), position: 9e6 };
    const unknown = { ...stray, data: { matchId: 'never-played' } };
    expect(await boardsAfter([...history, unknown])).toEqual(await boardsAfter(history));
  });
});

describe('a board', () => {
  it('counts wins, draws, losses and streaks', () => {
    let rows: RatingRow[] = newcomers(2);
    const streaks: number[] = [];
    for (const scores of [
      [1, 0],
      [1, 0],
      [0.5, 0.5],
      [0, 1],
      [0, 1],
      [0, 1],
      [1, 0],
    ]) {
      rows = afterMatch(rows, match(scores));
      streaks.push(rows[0]!.streak);
    }
    expect(streaks).toEqual([1, 2, 0, -1, -2, -3, 1]);
    expect(rows[0]).toMatchObject({ games: 7, wins: 3, draws: 1, losses: 3, bestStreak: 2 });
    expect(rows[1]).toMatchObject({ games: 7, wins: 3, draws: 1, losses: 3, bestStreak: 3 });
  });

  it('judges all matches of a day by what was known when it began', () => {
    const [first, second] = afterMatch(afterMatch(newcomers(2), match([1, 0])), match([1, 0]));
    expect(first!.startGlicko).toBe(UNRATED.rating);
    expect(second!.information).toBeCloseTo(first!.information, 12);
    const next = afterMatch([first!, second!], match([1, 0], '2026-01-02T00:00:00.000Z'));
    expect(next[0]!.startGlicko).toBe(first!.glicko);
  });

  it('lets a match of many seats count for one game of each', () => {
    const [two] = afterMatch(newcomers(2), match([1, 0]));
    const [four] = afterMatch(newcomers(4), match([1, 0, 0, 0]));
    expect(four!.information).toBeCloseTo(two!.information, 12);
    expect(four!.glicko).toBeCloseTo(two!.glicko, 9);
    expect(four!.rating).toBeCloseTo(two!.rating, 9);
  });

  it('does not end a day twice when a clock goes back', () => {
    const rows = afterMatch(newcomers(2), match([1, 0], '2026-03-05T10:00:00.000Z'));
    const again = afterMatch(rows, match([0, 1], '2026-03-04T10:00:00.000Z'));
    expect(again.map(({ period }) => period)).toEqual(rows.map(({ period }) => period));
  });

  it('is less certain of who has not played for a while', () => {
    const [row] = afterMatch(newcomers(2), match([1, 0]));
    const [soon, late] = [glickoAt(row!, '2026-01-02T00:00:00.000Z'), glickoAt(row!, '2026-06-01T00:00:00.000Z')];
    expect(soon.deviation).toBe(row!.deviation);
    expect(late.deviation).toBeGreaterThan(soon.deviation);
    expect(late.rating).toBe(soon.rating);
    expect(late.high - late.low).toBeCloseTo(4 * late.deviation, 9);
    expect(late.provisional).toBe(true);
  });

  it('ranks by either rating, equals by name', () => {
    const rows = newcomers(3).map((row, i) => ({ ...row, rating: 1500, glicko: 1500 + i }));
    const at = '2026-01-01T00:00:00.000Z';
    expect(rank(rows, at).map(({ agentId }) => agentId)).toEqual(['a0', 'a1', 'a2']);
    expect(rank(rows, at, 'glicko').map(({ agentId }) => agentId)).toEqual(['a2', 'a1', 'a0']);
  });

  it('has a season for each quarter, and one for all of time', async () => {
    expect(['01', '03', '04', '12'].map((month) => seasonOf(`2026-${month}-01T00:00:00.000Z`))).toEqual([
      '2026-Q1',
      '2026-Q1',
      '2026-Q2',
      '2026-Q4',
    ]);
    const [rows, , pairs] = (await boardsAfter(history)) as unknown as [RatingRow[], unknown, never[]];
    const games = (season: (name: string) => boolean) =>
      rows.filter((row) => season(row.season)).reduce((sum, row) => sum + row.games, 0);
    expect(new Set(rows.map(({ season }) => season)).size).toBeGreaterThan(2);
    expect(games((season) => season !== 'all')).toBe(games((season) => season === 'all'));
    const settled = history.filter((event) => event.type === 'MatchSettled').length;
    const all = pairs.map(pairingOf).reduce((sum, { winsA, winsB, draws }) => sum + winsA + winsB + draws, 0);
    // On two boards, and from either side.
    expect(all).toBe(4 * settled);
  });
});
