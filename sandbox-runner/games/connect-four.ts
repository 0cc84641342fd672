import { AgonError } from '../../services/kernel/index.js';
import { type Cell, drawn, type Game, isSmallInteger, markOf, type Observation, seatOf, wonBy } from './game.js';

const columns = 7;
const rows = 6;

/** `board[column]` lists the marks of that column from the bottom up; a column grows and never has holes. */
export interface ConnectFour {
  readonly board: readonly (readonly ('X' | 'O')[])[];
  readonly played: number;
  /** The last column played, or -1: only a line through it can have ended the game. */
  readonly last: number;
}

export interface ConnectFourObservation extends Observation {
  /** Rows from the top down, as a person sees the board: `board[5][3]` is the bottom of the middle column. */
  readonly board: readonly (readonly Cell[])[];
  readonly mark: 'X' | 'O';
}

const directions = [
  [1, 0],
  [0, 1],
  [1, 1],
  [1, -1],
] as const;

function runLength(board: ConnectFour['board'], column: number, row: number, dx: number, dy: number): number {
  const mark = board[column]?.[row];
  let length = 0;
  let x = column + dx;
  let y = row + dy;
  while (y >= 0 && board[x]?.[y] === mark) {
    length += 1;
    x += dx;
    y += dy;
  }
  return length;
}

function winner(state: ConnectFour): number | undefined {
  const column = state.last;
  const row = (state.board[column]?.length ?? 0) - 1;
  const mark = state.board[column]?.[row];
  if (mark === undefined) return undefined;
  const wins = directions.some(
    ([dx, dy]) => 1 + runLength(state.board, column, row, dx, dy) + runLength(state.board, column, row, -dx, -dy) >= 4,
  );
  return wins ? seatOf(mark) : undefined;
}

const name = 'connect-four';
const version = 1;

const toMove = (state: ConnectFour): number => state.played % 2;

function outcome(state: ConnectFour) {
  const seat = winner(state);
  if (seat !== undefined) return wonBy(seat);
  return state.played === columns * rows ? drawn : undefined;
}

function legal(state: ConnectFour): number[] {
  if (outcome(state)) return [];
  return state.board.flatMap((column, index) => (column.length < rows ? [index] : []));
}

/** Rows from the top down, with empty cells filled in. */
function grid(state: ConnectFour): Cell[][] {
  return Array.from({ length: rows }, (_, fromTop) => state.board.map((column) => column[rows - 1 - fromTop] ?? ''));
}

export const connectFour: Game<ConnectFour, number, ConnectFourObservation> = {
  name,
  version,
  seats: 2,
  maxTurns: columns * rows,

  setup: () => ({ board: Array.from({ length: columns }, () => []), played: 0, last: -1 }),

  toMove,
  legal,
  outcome,

  observe: (state, seat) => ({
    game: name,
    version,
    turn: state.played + 1,
    seat,
    mark: markOf(seat),
    board: grid(state),
    legal: legal(state),
  }),

  parse: (raw) => (isSmallInteger(raw, columns) ? raw : undefined),

  apply(state, action) {
    const column = state.board[action];
    if (column === undefined || !legal(state).includes(action)) {
      throw new AgonError('SANDBOX.ILLEGAL_ACTION', `Column ${action} cannot be played.`, { action });
    }
    return {
      board: state.board.with(action, [...column, markOf(toMove(state))]),
      played: state.played + 1,
      last: action,
    };
  },

  render(state) {
    const header = Array.from({ length: columns }, (_, index) => index).join(' ');
    const body = grid(state).map((row) => row.map((cell) => cell || '.').join(' '));
    return [header, ...body].join('\n');
  },
};
