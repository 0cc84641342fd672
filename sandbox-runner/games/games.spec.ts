import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Cell } from './game.js';
import { connectFour, gameNamed, gameNames, ticTacToe } from './index.js';

/** Slow on purpose: looks at every straight line of a grid, and shares no code with the games. */
function bruteForceWinner(grid: readonly (readonly Cell[])[], length: number): number | null {
  for (const [y, row] of grid.entries()) {
    for (const [x, mark] of row.entries()) {
      if (mark === '') continue;
      for (const [dx, dy] of [
        [0, 1],
        [1, 0],
        [1, 1],
        [1, -1],
      ] as const) {
        const cells = Array.from({ length }, (_, step) => grid[y + dy * step]?.[x + dx * step]);
        if (cells.every((cell) => cell === mark)) return mark === 'X' ? 0 : 1;
      }
    }
  }
  return null;
}

const gridOf = (name: string, board: unknown): Cell[][] => {
  if (name === connectFour.name) return board as Cell[][];
  const cells = board as Cell[];
  return [cells.slice(0, 3), cells.slice(3, 6), cells.slice(6, 9)];
};

describe.each(gameNames)('%s', (name) => {
  const game = gameNamed(name);
  const choices = fc.array(fc.nat({ max: 1000 }), { minLength: game.maxTurns, maxLength: game.maxTurns });

  it('keeps its invariants in every playout, and ends within maxTurns', () => {
    fc.assert(
      fc.property(choices, (picks) => {
        let state = game.setup('seed');
        let turns = 0;
        while (game.outcome(state) === undefined) {
          const legal = game.legal(state);
          const seat = game.toMove(state);
          expect(legal.length).toBeGreaterThan(0);
          expect([...legal].sort((a, b) => a - b)).toEqual(legal);
          expect(seat).toBe(turns % game.seats);
          const view = game.observe(state, seat);
          expect(JSON.parse(JSON.stringify(view))).toEqual(view);
          expect(view).toMatchObject({ game: name, turn: turns + 1, seat, legal });

          const before = JSON.stringify(state);
          const next = game.apply(state, legal[picks[turns]! % legal.length]!);
          expect(JSON.stringify(state)).toBe(before);
          state = next;
          turns += 1;
          expect(turns).toBeLessThanOrEqual(game.maxTurns);
        }
        expect(game.legal(state)).toEqual([]);
        const outcome = game.outcome(state);
        expect(outcome?.scores.reduce((sum, score) => sum + score, 0)).toBe(1);
      }),
      { numRuns: 150 },
    );
  });

  it('agrees with a brute-force check about who has won', () => {
    fc.assert(
      fc.property(choices, (picks) => {
        let state = game.setup('seed');
        for (let turn = 0; game.outcome(state) === undefined; turn += 1) {
          const legal = game.legal(state);
          state = game.apply(state, legal[picks[turn]! % legal.length]!);
          const board = gridOf(name, game.observe(state, 0).board);
          const expected = bruteForceWinner(board, name === 'connect-four' ? 4 : 3);
          expect(game.outcome(state)?.winner ?? null).toBe(expected);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('refuses every reply that is not one of its small integers', () => {
    for (const raw of [-1, -0, 1.5, Number.NaN, 1e9, '1', null, undefined, [1], { valueOf: () => 1 }, true]) {
      expect(game.parse(raw)).toBeUndefined();
    }
    fc.assert(
      fc.property(fc.anything(), (raw) => {
        const action = game.parse(raw);
        expect(action === undefined || Number.isInteger(action)).toBe(true);
      }),
    );
  });

  it('asserts legality when a move is applied', () => {
    expect(() => game.apply(game.setup('seed'), 99)).toThrow(
      expect.objectContaining({ code: 'SANDBOX.ILLEGAL_ACTION' }),
    );
  });

  it('draws a board in plain text', () => {
    const start = game.setup('seed');
    const text = game.render(game.apply(start, 0));
    expect(text).toContain('X');
    expect(text).not.toContain('O');
    expect(text).toMatch(/^[\x20-\x7e\n]+$/);
  });
});

describe('gameNamed', () => {
  it('names the choices when the name is unknown', () => {
    expect(() => gameNamed('chess')).toThrow(
      expect.objectContaining({ code: 'SANDBOX.UNKNOWN_GAME', message: expect.stringContaining('tic-tac-toe') }),
    );
  });

  it('knows both games', () => {
    expect(gameNames).toEqual([ticTacToe.name, connectFour.name]);
  });
});
