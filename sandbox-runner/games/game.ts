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
  readonly seats: number;
  /** No playout is longer than this; the referee asserts it. */
  readonly maxTurns: number;
  /** The games here start from an empty board; a game with a random start derives it from the seed alone. */
  setup(seed: string): S;
  /** The seat on the move. Meaningless once `outcome` is defined. */
  toMove(state: S): number;
  observe(state: S, seat: number): O;
  /** Ascending, and empty exactly when the game is over. */
  legal(state: S): readonly A[];
  /** Checks only the shape of an untrusted reply; whether it is legal is a question to `legal`. */
  parse(raw: unknown): A | undefined;
  /** Throws SANDBOX.ILLEGAL_ACTION, since the referee has checked legality before. */
  apply(state: S, action: A): S;
  outcome(state: S): Outcome | undefined;
  /** A board for a terminal, in plain text and without colours. */
  render(state: S): string;
}

/** An action is a JSON value. Both games here use a small integer: a cell, or a column. */
export type Action = number;

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
  readonly winner: number | null;
  /** One score a seat; they sum to 1. */
  readonly scores: readonly number[];
  readonly reason: 'line' | 'full_board';
}

/** A cell of a two-player board: empty, or the mark of the seat that holds it. */
export type Cell = '' | 'X' | 'O';

export const markOf = (seat: number): 'X' | 'O' => (seat === 0 ? 'X' : 'O');

export const seatOf = (mark: 'X' | 'O'): number => (mark === 'X' ? 0 : 1);

export const wonBy = (seat: number): Outcome => ({
  winner: seat,
  scores: seat === 0 ? [1, 0] : [0, 1],
  reason: 'line',
});

export const drawn: Outcome = { winner: null, scores: [0.5, 0.5], reason: 'full_board' };

export const isSmallInteger = (raw: unknown, below: number): raw is number =>
  typeof raw === 'number' && Number.isInteger(raw) && raw >= 0 && raw < below && !Object.is(raw, -0);
