import { describe, expect, it } from 'vitest';
import { stakeOf } from './estimate.js';

describe('a stake on the command line', () => {
  it.each([
    [{ stake: '5' }, '500'],
    [{ stake: '2.5' }, '250'],
    [{ stake: '0' }, '0'],
    [{ stake: '0', stakeCents: '5' }, '5'],
  ])('%j is so many cents: %s', (flags, stakeCents) => {
    expect(stakeOf({ currency: 'USD', ...flags })).toEqual({ stakeCents, currency: 'USD' });
  });

  it.each([
    [{ stake: '5', stakeCents: '5' }, 'COMMAND.INVALID'],
    [{ stake: '-5' }, 'MONEY.INVALID'],
    [{ stake: '0.005' }, 'MONEY.INVALID'],
  ])('refuses %j', (flags, code) => {
    expect(() => stakeOf({ currency: 'PLAY', ...flags })).toThrow(expect.objectContaining({ code }));
  });
});
