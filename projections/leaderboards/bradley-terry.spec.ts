import { describe, expect, it } from 'vitest';
import { bradleyTerry, type Pairing, seededRandom, strengthsOf } from './bradley-terry.js';

const SIMULATIONS = 100;
const ELO_PER_NAT = 400 / Math.LN10;

describe('Bradley-Terry', () => {
  it('gives two players the odds of their results', () => {
    const [a = 0, b = 0] = bradleyTerry(['a', 'b'], [{ a: 'a', b: 'b', winsA: 3000, winsB: 1000, draws: 0 }]);
    expect(a - b).toBeCloseTo(Math.log(3), 3);
    expect(a + b).toBeCloseTo(0, 9);
  });

  it('takes a draw for half a win on either side', () => {
    const won = [{ a: 'a', b: 'b', winsA: 30, winsB: 20, draws: 0 }];
    const drawn = [{ a: 'a', b: 'b', winsA: 20, winsB: 10, draws: 20 }];
    expect(bradleyTerry(['a', 'b'], drawn)[0]).toBeCloseTo(bradleyTerry(['a', 'b'], won)[0]!, 9);
  });

  it('keeps who never lost, and groups that never met, within bounds', () => {
    const pairings = [
      { a: 'a', b: 'b', winsA: 50, winsB: 0, draws: 0 },
      { a: 'c', b: 'd', winsA: 5, winsB: 5, draws: 0 },
    ];
    const strengths = bradleyTerry(['a', 'b', 'c', 'd'], pairings);
    expect(strengths.every(Number.isFinite)).toBe(true);
    expect(strengths[0]).toBeGreaterThan(strengths[1]!);
  });

  it('gives the same intervals for the same seed, and none for nobody', () => {
    const pairings = [{ a: 'a', b: 'b', winsA: 7, winsB: 5, draws: 3 }];
    const once = strengthsOf(pairings, { random: seededRandom(1) });
    expect(strengthsOf(pairings, { random: seededRandom(1) })).toEqual(once);
    expect(once[0]!.low).toBeLessThan(once[0]!.rating);
    expect(once[0]!.high).toBeGreaterThan(once[0]!.rating);
    expect(strengthsOf([], { random: seededRandom(1) })).toEqual([]);
  });

  it('finds all planted strengths within their intervals in at least 90 of 100 simulations', () => {
    const planted = [1650, 1560, 1500, 1450, 1340];
    let found = 0;
    for (let seed = 1; seed <= SIMULATIONS; seed++) {
      const random = seededRandom(seed);
      const strengths = strengthsOf(simulated(planted, random), { random });
      const within = planted.every((rating, i) => {
        const { low, high } = strengths.find(({ agentId }) => agentId === `agent-${i}`)!;
        return low <= rating && rating <= high;
      });
      if (within) found += 1;
    }
    expect(found).toBeGreaterThanOrEqual(90);
    // Intervals that always hold would be too wide to say anything.
    expect(found).toBeLessThan(SIMULATIONS);
  }, 240_000);
});

/**
 * 200 matches of every pair. Draws take as much from the wins as from the losses: the expected score stays that of the
 * model, which is what makes the planted strengths the true ones.
 */
function simulated(planted: readonly number[], random: () => number): Pairing[] {
  const pairings: Pairing[] = [];
  for (let a = 0; a < planted.length; a++) {
    for (let b = a + 1; b < planted.length; b++) {
      const expected = 1 / (1 + Math.exp((planted[b]! - planted[a]!) / ELO_PER_NAT));
      const drawn = 0.2 * Math.min(expected, 1 - expected);
      const counts = { winsA: 0, winsB: 0, draws: 0 };
      for (let n = 0; n < 200; n++) {
        const chance = random();
        counts[chance < expected - drawn / 2 ? 'winsA' : chance < expected + drawn / 2 ? 'draws' : 'winsB'] += 1;
      }
      pairings.push({ a: `agent-${a}`, b: `agent-${b}`, ...counts });
    }
  }
  return pairings;
}
