import { AgonError } from '../../services/kernel/errors.js';
import { chess } from './chess.js';
import { connectFour } from './connect-four.js';
import type { Game } from './game.js';
import { leducHoldem } from './leduc-holdem.js';
import { prisoners } from './prisoners.js';
import { ticTacToe } from './tic-tac-toe.js';

export { type Action, assertSeats, type Game, isLegal, type Observation, type Outcome } from './game.js';
export { chess, connectFour, leducHoldem, prisoners, ticTacToe };

/**
 * A game whose state type the caller does not know. The referee only passes states back to the game that made them,
 * so hiding the type here is safe, and it keeps every game's own file fully typed.
 */
export type AnyGame = Game;

const games: ReadonlyMap<string, AnyGame> = new Map(
  [ticTacToe, connectFour, leducHoldem, chess, prisoners].map((game) => [game.name, game as unknown as AnyGame]),
);

export const gameNames: readonly string[] = [...games.keys()];

export function gameNamed(name: string): AnyGame {
  const game = games.get(name);
  if (game === undefined) {
    throw new AgonError('SANDBOX.UNKNOWN_GAME', `There is no game "${name}"; choose one of ${gameNames.join(', ')}.`, {
      name,
      known: gameNames,
    });
  }
  return game;
}
