import { AgonError } from '../../services/kernel/errors.js';

/**
 * What every game in the arena implements, as one file of pure functions.
 *
 * The referee owns the state and asks the game about it; an agent only ever sees what `observe` returns. A state is
 * never changed in place, so that a record can be replayed and drawn move by move.
 */
export interface Game<S = unknown, A extends Action = Action, O extends Observation = Observation> {
  readonly name: string;
  /** Raised whenever a rule changes, because old records are replayed under the rules they were played by. */
  readonly version: number;
  /** How few and how many agents a match may have. */
  readonly seats: { readonly min: number; readonly max: number };
  /** No playout is longer than this, whatever the number of seats; the referee asserts it. */
  readonly maxTurns: number;
  /** Chance is drawn from the seed alone, so that the same seed gives the same game. */
  setup(seed: string, seats: number): S;
  /**
   * The seat on the move. Meaningless once `outcome` is defined. Where a game has everybody move at once, the seats are
   * asked one after the other, and `observe` shows nobody what the others have chosen in this round.
   */
  toMove(state: S): number;
  /** Everything this seat may know, and nothing that it may not: other seats' cards, pending moves, the seed. */
  observe(state: S, seat: number): O;
  /** In an order that depends on the position alone, and empty exactly when the game is over. */
  legal(state: S): readonly A[];
  /** Says the same as `legal`, for a game where looking through the whole list would be a waste. */
  permits?(state: S, action: A): boolean;
  /** Checks only the shape of an untrusted reply; whether it is legal is a question to `legal`. */
  parse(raw: unknown): A | undefined;
  /** Throws SANDBOX.ILLEGAL_ACTION, since the referee has checked legality before. */
  apply(state: S, action: A): S;
  outcome(state: S): Outcome | undefined;
  /** The referee's view for a terminal, in plain text and without colours. */
  render(state: S): string;
  /** The referee's view as a picture that needs nothing from outside: no font file, no script, no link. */
  svg(state: S): string;
}

/** An action is any JSON value that its game defines: a column, a word, a list of moves. */
export type Action = null | boolean | number | string | Action[] | { [key: string]: Action };

export interface Observation {
  readonly game: string;
  readonly version: number;
  /** Counts from 1, so that turn 1 is the first move of the match. */
  readonly turn: number;
  readonly seat: number;
  readonly board: unknown;
  readonly legal: readonly Action[];
}

export interface Outcome {
  /** The one seat with the best score, or null when nobody is alone at the top. */
  readonly winner: number | null;
  /** One score a seat, from 0 to 1; they sum to 1. */
  readonly scores: readonly number[];
  /** The rule that ended the game, in snake_case. */
  readonly reason: string;
}

/** A cell of a two-player board: empty, or the mark of the seat that holds it. */
export type Cell = '' | 'X' | 'O';

export const markOf = (seat: number): 'X' | 'O' => (seat === 0 ? 'X' : 'O');

export const wonBy = (seat: number, reason: string): Outcome => ({
  winner: seat,
  scores: seat === 0 ? [1, 0] : [0, 1],
  reason,
});

export const drawn = (reason: string): Outcome => ({ winner: null, scores: [0.5, 0.5], reason });

/**
 * Every seat's score is its share of all points.
 *
 * @example byShare([3, 1], 'payoffs') // { winner: 0, scores: [0.75, 0.25], reason: 'payoffs' }
 */
export function byShare(points: readonly number[], reason: string): Outcome {
  const total = points.reduce((sum, each) => sum + each, 0);
  const best = Math.max(...points);
  const leaders = points.filter((each) => each === best).length;
  return {
    winner: leaders === 1 ? points.indexOf(best) : null,
    scores: points.map((each) => (total === 0 ? 1 / points.length : each / total)),
    reason,
  };
}

export const isSmallInteger = (raw: unknown, below: number): raw is number =>
  typeof raw === 'number' && Number.isInteger(raw) && raw >= 0 && raw < below && !Object.is(raw, -0);

export const illegal = (message: string, action: Action): AgonError =>
  new AgonError('SANDBOX.ILLEGAL_ACTION', message, { action });

/** Whether an action that `parse` has let through can be played now. */
export function isLegal<S, A extends Action>(game: Game<S, A>, state: S, action: A): boolean {
  if (game.permits) return game.permits(state, action);
  const legal = game.legal(state);
  if (typeof action !== 'object') return legal.includes(action);
  const text = JSON.stringify(action);
  return legal.some((each) => JSON.stringify(each) === text);
}

/** Refuses a match that has too few or too many agents for its game. */
export function assertSeats(game: Pick<Game, 'name' | 'seats'>, count: number): void {
  const { min, max } = game.seats;
  if (count >= min && count <= max) return;
  const range = min === max ? `${min}` : `${min} to ${max}`;
  throw new AgonError('SANDBOX.WRONG_SEATS', `${game.name} is played by ${range} agents, not ${count}.`, { min, max });
}
