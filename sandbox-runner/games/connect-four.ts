import { type Cell, drawn, type Game, illegal, isSmallInteger, markOf, type Observation, wonBy } from './game.js';
import { circle, muted, path, picture, rect, seatColour, text } from './svg.js';

const columns = 7;
const rows = 6;

/** `board[column]` lists the marks of that column from the bottom up; a column grows and never has holes. */
interface ConnectFour {
  readonly board: readonly (readonly ('X' | 'O')[])[];
  readonly played: number;
  /** The last column played, or -1: only a line through it can have ended the game. */
  readonly last: number;
}

interface ConnectFourObservation extends Observation {
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

/** The ends of the line that the last move has completed. */
function winningLine({ board, last: x }: ConnectFour): [x0: number, y0: number, x1: number, y1: number] | undefined {
  const y = (board[x]?.length ?? 0) - 1;
  for (const [dx, dy] of y < 0 ? [] : directions) {
    const ahead = runLength(board, x, y, dx, dy);
    const behind = runLength(board, x, y, -dx, -dy);
    if (ahead + behind >= 3) return [x - behind * dx, y - behind * dy, x + ahead * dx, y + ahead * dy];
  }
  return undefined;
}

const name = 'connect-four';
const version = 1;

const toMove = (state: ConnectFour): number => state.played % 2;

function outcome(state: ConnectFour) {
  if (winningLine(state)) return wonBy(1 - toMove(state), 'line');
  return state.played === columns * rows ? drawn('full_board') : undefined;
}

function legal(state: ConnectFour): number[] {
  if (outcome(state)) return [];
  return state.board.flatMap((column, index) => (column.length < rows ? [index] : []));
}

/** Rows from the top down, with empty cells filled in. */
function grid(state: ConnectFour): Cell[][] {
  return Array.from({ length: rows }, (_, fromTop) => state.board.map((column) => column[rows - 1 - fromTop] ?? ''));
}

const side = 64;
const xOf = (column: number): number => 24 + (column + 0.5) * side;
const yOf = (row: number): number => 24 + (rows - row - 0.5) * side;

function drawDisc(mark: Cell, column: number, row: number): string {
  const [x, y] = [xOf(column), yOf(row)];
  if (mark === '') return circle(x, y, 25, { fill: '#dfe7f5', stroke: '#1d3f77', 'stroke-width': 3 });
  const colour = mark === 'X' ? '#f2b632' : seatColour(1);
  return (
    circle(x, y, 25, { fill: colour, stroke: '#1d3f77', 'stroke-width': 3 }) +
    circle(x, y, 17, { fill: 'none', stroke: '#ffffff', 'stroke-width': 3, opacity: 0.4 })
  );
}

export const connectFour: Game<ConnectFour, number, ConnectFourObservation> = {
  name,
  version,
  seats: { min: 2, max: 2 },
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
      throw illegal(`Column ${action} cannot be played.`, action);
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

  svg(state) {
    const discs = grid(state).flatMap((row, fromTop) =>
      row.map((cell, column) => drawDisc(cell, column, rows - 1 - fromTop)),
    );
    const numbers = Array.from({ length: columns }, (_, column) =>
      text(xOf(column), 24 + rows * side + 34, 16, column, { fill: column === state.last ? '#1d3f77' : muted }),
    );
    const ends = winningLine(state);
    const line = ends
      ? path(`M${xOf(ends[0])} ${yOf(ends[1])}L${xOf(ends[2])} ${yOf(ends[3])}`, {
          stroke: '#ffffff',
          'stroke-width': 9,
          'stroke-linecap': 'round',
        })
      : '';
    const frame = rect(16, 16, columns * side + 16, rows * side + 16, { rx: 18, fill: '#2b5aa6' });
    const title = `connect four after ${state.played} moves`;
    return picture(columns * side + 48, rows * side + 76, title, frame, ...discs, ...numbers, line);
  },
};
