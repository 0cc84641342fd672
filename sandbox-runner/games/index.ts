import { AgonError } from '../../services/kernel/errors.js';
import { chess } from './chess.js';
import { connectFour } from './connect-four.js';
import type { Game } from './game.js';
import { leducHoldem } from './leduc-holdem.js';
import { prisoners } from './prisoners.js';
import { ticTacToe } from './tic-tac-toe.js';

export { type Action, assertSeats, type Game, isLegal, type Observation, type Outcome } from './game.js';
export { chess, connectFour, leducHoldem, prisoners, ticTacToe };

/** The referee only passes states back to the game that made them, so hiding their types here is safe. */
const games: ReadonlyMap<string, Game> = new Map(
  [ticTacToe, connectFour, leducHoldem, chess, prisoners].map((game) => [game.name, game as unknown as Game]),
);

export const gameNames: readonly string[] = [...games.keys()];

export function gameNamed(name: string): Game {
  const game = games.get(name);
  if (game === undefined) {
    const message = `There is no game "${name}"; choose one of ${gameNames.join(', ')}.`;
    throw new AgonError('SANDBOX.UNKNOWN_GAME', message, { name, known: gameNames });
  }
  return game;
}
