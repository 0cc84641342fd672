import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eloAfter, expectedScore, kFactor } from './elo.js';

const fresh = { rating: 1500, games: 0 };

describe('Elo', () => {
  it.each([
    { name: 'equals, first wins', players: [fresh, fresh], scores: [1, 0], after: [1516, 1484] },
    { name: 'equals draw', players: [fresh, fresh], scores: [0.5, 0.5], after: [1500, 1500] },
    {
      name: '400 points apart, the stronger wins: a tenth of a point times K and a bit',
      players: [
        { rating: 1900, games: 30 },
        { rating: 1500, games: 30 },
      ],
      scores: [1, 0],
      after: [1900 + 16 / 11, 1500 - 16 / 11],
    },
    {
      name: 'a newcomer moves twice as far as an established player',
      players: [fresh, { rating: 1500, games: 30 }],
      scores: [0, 1],
      after: [1484, 1508],
    },
    {
      name: 'three seats: the mean over the pairs',
      players: [fresh, fresh, fresh],
      scores: [1, 0.5, 0],
      after: [1516, 1500, 1484],
    },
  ])('$name', ({ players, scores, after }) => {
    eloAfter(players, scores).forEach((rating, seat) => {
      expect(rating).toBeCloseTo(after[seat]!, 9);
    });
  });

  it('is provisional for exactly thirty games', () => {
    expect([0, 29, 30, 31].map(kFactor)).toEqual([32, 32, 16, 16]);
  });

  it('expects scores that sum to one', () => {
    const rating = fc.double({ min: 0, max: 4000, noNaN: true });
    fc.assert(
      fc.property(rating, rating, (a, b) => {
        expect(expectedScore(a, b) + expectedScore(b, a)).toBeCloseTo(1, 12);
      }),
    );
  });

  it('neither makes nor loses points between players of the same standing', () => {
    const rating = fc.double({ min: 0, max: 4000, noNaN: true });
    fc.assert(
      fc.property(rating, rating, fc.constantFrom([1, 0], [0.5, 0.5], [0, 1]), (a, b, scores) => {
        const players = [
          { rating: a, games: 3 },
          { rating: b, games: 7 },
        ];
        const sum = eloAfter(players, scores).reduce((total, each) => total + each, 0);
        expect(sum).toBeCloseTo(a + b, 6);
      }),
    );
  });
});
