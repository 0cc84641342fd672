import { createRequire } from 'node:module';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterPeriod, estimate, type Glicko, idle, NO_EVIDENCE, rolledTo, UNRATED, withResult } from './glicko2.js';

interface TheirPlayer {
  getRating(): number;
  getRd(): number;
  getVol(): number;
}

/** It comes without types. */
const { Glicko2 } = createRequire(import.meta.url)('glicko2') as {
  Glicko2: new (settings: {
    tau: number;
    rating: number;
    rd: number;
    vol: number;
  }) => {
    makePlayer(rating: number, rd: number, vol: number): TheirPlayer;
    updateRatings(matches: [TheirPlayer, TheirPlayer, number][]): void;
  };
};

const player = (rating: number, deviation: number, volatility = 0.06): Glicko => ({ rating, deviation, volatility });
const played = (of: Glicko, results: readonly { opponent: Glicko; score: number }[]) =>
  results.reduce((sum, result) => withResult(sum, of, result), NO_EVIDENCE);

describe('Glicko-2', () => {
  it('computes the example of the paper, to five decimals', () => {
    const results = [
      { opponent: player(1400, 30), score: 1 },
      { opponent: player(1550, 100), score: 0 },
      { opponent: player(1700, 300), score: 0 },
    ];
    const evidence = played(player(1500, 200), results);
    expect(1 / evidence.information).toBeCloseTo(1.7789770897, 9);
    expect(evidence.surprise / evidence.information).toBeCloseTo(-0.483933261, 9);
    const after = afterPeriod(player(1500, 200), evidence, 0.5);
    expect(after.rating).toBeCloseTo(1464.05067, 5);
    expect(after.deviation).toBeCloseTo(151.51652, 5);
    expect(after.volatility).toBeCloseTo(0.0599959843, 9);
  });

  it('knows less of who did not play, up to where everybody began', () => {
    expect(afterPeriod(player(1500, 200), NO_EVIDENCE)).toEqual(idle(player(1500, 200), 1));
    expect(idle(player(1500, 200), 1).deviation).toBeCloseTo(200.27142, 5);
    expect(idle(player(1500, 200), 7).deviation).toBeCloseTo(
      Array.from({ length: 7 }).reduce((of: Glicko) => idle(of, 1), player(1500, 200)).deviation,
      9,
    );
    expect(idle(player(1500, 200), 1e6).deviation).toBe(UNRATED.deviation);
    expect(idle(player(1500, 200), 0)).toEqual(player(1500, 200));
  });

  it('agrees with another implementation on 10,000 random periods', () => {
    const someone = fc.record({
      rating: fc.double({ min: 800, max: 2400, noNaN: true }),
      deviation: fc.double({ min: 30, max: 350, noNaN: true }),
      volatility: fc.double({ min: 0.03, max: 0.1, noNaN: true }),
    });
    const result = fc.record({ opponent: someone, score: fc.constantFrom(0, 0.5, 1) });
    const tau = fc.double({ min: 0.3, max: 1.2, noNaN: true });
    fc.assert(
      fc.property(someone, fc.array(result, { minLength: 1, maxLength: 12 }), tau, (of, results, tau) => {
        const theirs = new Glicko2({ tau, rating: 1500, rd: 350, vol: 0.06 });
        const make = ({ rating, deviation, volatility }: Glicko) => theirs.makePlayer(rating, deviation, volatility);
        const me = make(of);
        theirs.updateRatings(results.map(({ opponent, score }) => [me, make(opponent), score]));
        const after = afterPeriod(of, played(of, results), tau);
        expect(after.rating).toBeCloseTo(me.getRating(), 4);
        expect(after.deviation).toBeCloseTo(me.getRd(), 4);
        expect(after.volatility).toBeCloseTo(me.getVol(), 6);
      }),
      { numRuns: 10_000, seed: 20260101 },
    );
  });

  it('closes a period when the next one begins, and counts the idle ones between', () => {
    const running = { period: 10, start: player(1500, 200), information: 0.5, surprise: 0.2 };
    expect(rolledTo(running, 10)).toBe(running);
    expect(rolledTo(running, 9)).toBe(running);
    expect(rolledTo(running, 11).start).toEqual(estimate(running));
    expect(rolledTo(running, 15).start).toEqual(idle(estimate(running), 4));
    expect(estimate(rolledTo(running, 15))).toEqual(rolledTo(running, 15).start);
  });
});
