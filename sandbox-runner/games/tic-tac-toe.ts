import { type Cell, drawn, type Game, illegal, isSmallInteger, markOf, type Observation, wonBy } from './game.js';
import { circle, muted, path, picture, rect, seatColour, text } from './svg.js';

/** Cells are numbered row by row: 0 1 2 / 3 4 5 / 6 7 8. */
interface TicTacToe {
  readonly board: readonly Cell[];
  readonly played: number;
}

interface TicTacToeObservation extends Observation {
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

const winningLine = (board: readonly Cell[]): (typeof lines)[number] | undefined =>
  lines.find(([a, b, c]) => board[a] && board[a] === board[b] && board[a] === board[c]);

const name = 'tic-tac-toe';
const version = 1;

const toMove = (state: TicTacToe): number => state.played % 2;

function outcome(state: TicTacToe) {
  if (winningLine(state.board)) return wonBy(1 - toMove(state), 'line');
  return state.played === 9 ? drawn('full_board') : undefined;
}

function legal(state: TicTacToe): number[] {
  if (outcome(state)) return [];
  return state.board.flatMap((cell, index) => (cell === '' ? [index] : []));
}

const side = 96;
const centreOf = (cell: number): [x: number, y: number] => [
  30 + (cell % 3) * side + 48,
  30 + Math.floor(cell / 3) * side + 48,
];

function drawMark(mark: Cell, cell: number, dimmed: boolean): string {
  const [x, y] = centreOf(cell);
  if (mark === '') return text(x, y + 6, 16, cell, { fill: muted, opacity: 0.55 });
  const pen = {
    fill: 'none',
    stroke: seatColour(mark === 'X' ? 0 : 1),
    'stroke-width': 11,
    opacity: dimmed ? 0.45 : 1,
  };
  if (mark === 'O') return circle(x, y, 27, pen);
  return path(`M${x - 25} ${y - 25}L${x + 25} ${y + 25}M${x + 25} ${y - 25}L${x - 25} ${y + 25}`, {
    ...pen,
    'stroke-linecap': 'round',
  });
}

export const ticTacToe: Game<TicTacToe, number, TicTacToeObservation> = {
  name,
  version,
  seats: { min: 2, max: 2 },
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
    if (!legal(state).includes(action)) throw illegal(`Cell ${action} cannot be played.`, action);
    return { board: state.board.with(action, markOf(toMove(state))), played: state.played + 1 };
  },

  render(state) {
    const show = (index: number): string => state.board[index] || String(index);
    const row = (start: number): string => ` ${show(start)} | ${show(start + 1)} | ${show(start + 2)}`;
    return [row(0), row(3), row(6)].join('\n---+---+---\n');
  },

  svg(state) {
    const line: readonly number[] | undefined = winningLine(state.board);
    const cells = state.board.map((mark, cell) => {
      const [x, y] = centreOf(cell);
      const won = line?.includes(cell);
      const tile = rect(x - 44, y - 44, 88, 88, { rx: 12, fill: won ? '#fdeec2' : '#ffffff', stroke: '#e2ddd2' });
      return tile + drawMark(mark, cell, line !== undefined && !won);
    });
    return picture(348, 348, `tic-tac-toe after ${state.played} moves`, ...cells);
  },
};
