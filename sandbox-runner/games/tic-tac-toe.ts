import { AgonError } from '../../services/kernel/index.js';
import { type Cell, drawn, type Game, isSmallInteger, markOf, type Observation, seatOf, wonBy } from './game.js';

/** Cells are numbered row by row: 0 1 2 / 3 4 5 / 6 7 8. */
export interface TicTacToe {
  readonly board: readonly Cell[];
  readonly played: number;
}

export interface TicTacToeObservation extends Observation {
  readonly board: readonly Cell[];
  readonly mark: 'X' | 'O';
}

const lines = [
  [0, 1, 2],
  [3, 4, 5],
  [6, 7, 8],
  [0, 3, 6],
  [1, 4, 7],
  [2, 5, 8],
  [0, 4, 8],
  [2, 4, 6],
] as const;

function winner(board: readonly Cell[]): number | undefined {
  for (const [a, b, c] of lines) {
    const mark = board[a];
    if (mark && mark === board[b] && mark === board[c]) return seatOf(mark);
  }
  return undefined;
}

const name = 'tic-tac-toe';
const version = 1;

const toMove = (state: TicTacToe): number => state.played % 2;

function outcome(state: TicTacToe) {
  const seat = winner(state.board);
  if (seat !== undefined) return wonBy(seat);
  return state.played === 9 ? drawn : undefined;
}

function legal(state: TicTacToe): number[] {
  if (outcome(state)) return [];
  return state.board.flatMap((cell, index) => (cell === '' ? [index] : []));
}

export const ticTacToe: Game<TicTacToe, number, TicTacToeObservation> = {
  name,
  version,
  seats: 2,
  maxTurns: 9,

  setup: () => ({ board: Array<Cell>(9).fill(''), played: 0 }),

  toMove,
  legal,
  outcome,

  observe: (state, seat) => ({
    game: name,
    version,
    turn: state.played + 1,
    seat,
    mark: markOf(seat),
    board: state.board,
    legal: legal(state),
  }),

  parse: (raw) => (isSmallInteger(raw, 9) ? raw : undefined),

  apply(state, action) {
    if (!legal(state).includes(action)) {
      throw new AgonError('SANDBOX.ILLEGAL_ACTION', `Cell ${action} cannot be played.`, { action });
    }
    return { board: state.board.with(action, markOf(toMove(state))), played: state.played + 1 };
  },

  render(state) {
    const show = (index: number): string => state.board[index] || String(index);
    const row = (start: number): string => ` ${show(start)} | ${show(start + 1)} | ${show(start + 2)}`;
    return [row(0), row(3), row(6)].join('\n---+---+---\n');
  },
};
