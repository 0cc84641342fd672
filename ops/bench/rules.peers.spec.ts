import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gameNamed } from '../../sandbox-runner/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { installKaggle } from './peers.js';

const GAMES = 300;
const SEED = '20261119';

interface TheirGame {
  readonly moves: readonly number[];
  /** After each move, rows from the top down: 0, 1 or 2. */
  readonly boards: readonly (readonly number[])[];
  readonly rewards: readonly number[];
}

const ours = gameNamed('connect-four');
const boardOf = (state: unknown) =>
  (ours.observe(state, 0).board as string[][]).flat().map((cell) => ['', 'X', 'O'].indexOf(cell));

describe(`connect four, as in ${GAMES} games of kaggle-environments with seed ${SEED}`, () => {
  const python = installKaggle();
  const script = join(packageRoot, 'ops', 'bench', 'kaggle-games.py');
  const told = execFileSync(python, [script, SEED, `${GAMES}`], { encoding: 'utf8', maxBuffer: 1 << 28 });
  const games = told
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as TheirGame);

  it('allows every move that was played, fills the same cells, and ends with the same move and winner', () => {
    expect(games).toHaveLength(GAMES);
    for (const { moves, boards, rewards } of games) {
      let state = ours.setup(SEED, 2);
      for (const [i, column] of moves.entries()) {
        expect(ours.outcome(state)).toBeUndefined();
        expect(ours.legal(state)).toContain(column);
        state = ours.apply(state, column);
        expect(boardOf(state)).toEqual(boards[i]);
      }
      // Theirs are 1, 0 or -1 a seat, and shares of one here.
      expect(ours.outcome(state)?.scores).toEqual(rewards.map((reward) => (reward + 1) / 2));
    }
  });

  it('has seen both seats win', () => {
    const winners = new Set(games.map(({ rewards }) => rewards.indexOf(1)));
    expect([...winners]).toEqual(expect.arrayContaining([0, 1]));
  });
});
