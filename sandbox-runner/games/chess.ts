import { Chess } from 'chess.js';
import { drawn, type Game, illegal, type Observation, wonBy } from './game.js';
import { circle, ink, muted, path, picture, rect, tag, text } from './svg.js';

/**
 * The rules are those of the chess.js library. A state is plain data; a board of the library is made from it for each
 * question and thrown away, because such a board changes in place.
 */
interface ChessState {
  readonly fen: string;
  /** Every move so far, in UCI: e2e4, e7e8q, and castling as the king's move, e1g1. */
  readonly history: readonly string[];
  /** The positions that can still come up again: those since the last capture or pawn move. */
  readonly positions: readonly string[];
  /** Kept with the position, since it is asked for several times a turn and costs the most. */
  readonly legal: readonly string[];
  readonly ended: Ending | null;
}

type Ending =
  | 'checkmate'
  | 'stalemate'
  | 'insufficient_material'
  | 'threefold_repetition'
  | 'fifty_moves'
  | 'move_limit';

interface ChessObservation extends Observation {
  /** The position in Forsyth-Edwards notation. */
  readonly board: string;
  readonly colour: 'white' | 'black';
  readonly history: readonly string[];
}

const name = 'chess';
const version = 1;
/** 120 moves each: what is not decided by then is a draw, so that a match always ends. */
const maxTurns = 240;

const toMove = (state: ChessState): number => state.history.length % 2;

function ending(board: Chess, positions: readonly string[], turns: number): Ending | null {
  if (board.isCheckmate()) return 'checkmate';
  if (board.isStalemate()) return 'stalemate';
  if (board.isInsufficientMaterial()) return 'insufficient_material';
  if (positions.filter((each) => each === positions.at(-1)).length >= 3) return 'threefold_repetition';
  if (board.isDrawByFiftyMoves()) return 'fifty_moves';
  return turns >= maxTurns ? 'move_limit' : null;
}

function stateOf(board: Chess, history: readonly string[], before: readonly string[]): ChessState {
  const fen = board.fen();
  const [pieces, turn, castling, enPassant, clock] = fen.split(' ');
  const position = `${pieces} ${turn} ${castling} ${enPassant}`;
  const positions = clock === '0' ? [position] : [...before, position];
  const ended = ending(board, positions, history.length);
  const legal = ended
    ? []
    : board
        .moves({ verbose: true })
        .map((move) => move.lan)
        .sort();
  return { fen, history, positions, legal, ended };
}

/** A match from any position, for specs and for studies. */
export const chessFrom = (fen: string): ChessState => stateOf(new Chess(fen), [], []);

function apply(state: ChessState, action: string): ChessState {
  if (!state.legal.includes(action)) throw illegal(`${action} cannot be played.`, action);
  const board = new Chess(state.fen, { skipValidation: true });
  const promotion = action.charAt(4);
  board.move({ from: action.slice(0, 2), to: action.slice(2, 4), ...(promotion ? { promotion } : {}) });
  return stateOf(board, [...state.history, action], state.positions);
}

const sideToMove = (fen: string): number => (fen.split(' ')[1] === 'w' ? 0 : 1);

function outcome({ ended, fen }: ChessState) {
  if (ended === null) return undefined;
  return ended === 'checkmate' ? wonBy(1 - sideToMove(fen), ended) : drawn(ended);
}

/** Eight rows from Black's side down to White's, a dot for an empty square. */
const rowsOf = (fen: string): string[] =>
  (fen.split(' ')[0] ?? '').split('/').map((row) => row.replace(/\d/g, (count) => '.'.repeat(Number(count))));

function render({ fen, history, ended }: ChessState): string {
  const rows = rowsOf(fen).map((row, index) => `${8 - index}  ${[...row].join(' ')}`);
  const last = history.at(-1);
  const next = ended ?? (sideToMove(fen) === 0 ? 'white to move' : 'black to move');
  return [...rows, '', '   a b c d e f g h', last ? `${last}, ${next}` : next].join('\n');
}

const side = 52;
const margin = 30;

/** Outlines in a square of 45 by 45, drawn for this board. */
const foot = 'M11 39H34V35.5C34 34 32 33 30.5 32.5H14.5C13 33 11 34 11 35.5Z';
const outlines: Readonly<Record<string, string>> = {
  p: `${foot}M16 32.5C16 28 19 26 19 22.5H17V20H28V22.5H26C26 26 29 28 29 32.5Z`,
  r: `${foot}M15 32.5L16.5 19H28.5L30 32.5ZM13 19V9.5H17.5V12.5H20.3V9.5H24.7V12.5H27.5V9.5H32V19Z`,
  n: `${foot}M15 32.5C14.5 26 20.5 23.5 20 20.5C17.5 21.5 15.5 25 12.5 25C10.5 25 9.5 22.5 10.5 21C12.5 18 14.5 13.5 17 11.5L16.5 7L21 10C28 10 33 16 32.5 25C32.4 28 31.5 30 31 32.5Z`,
  b: `${foot}M16 32.5C16.5 30.5 18 29.5 18 28H27C27 29.5 28.5 30.5 29 32.5ZM17 28C12.5 22.5 15.5 15.5 22.5 10C29.5 15.5 32.5 22.5 28 28Z`,
  q: `${foot}M14.5 32.5L9 14.5L16.5 22L17.5 10.5L22.5 21L27.5 10.5L28.5 22L36 14.5L30.5 32.5Z`,
  k: `${foot}M15 32.5C8.5 27 9.5 18 16 17.5C19.5 17.3 21.5 19.5 22.5 22C23.5 19.5 25.5 17.3 29 17.5C35.5 18 36.5 27 30 32.5ZM21 17V12.8H17.8V10H21V6.5H24V10H27.2V12.8H24V17C23.5 18 22.8 19 22.5 20C22.2 19 21.5 18 21 17Z`,
};
const bead = (x: number, y: number, r: number, fill: string, stroke: string): string =>
  circle(x, y, r, { fill, stroke, 'stroke-width': 1.6 });

/** What is drawn on top: heads, the knight's eye, the bishop's cut, the tips of the crown. */
const details: Readonly<Record<string, (fill: string, stroke: string) => string>> = {
  p: (fill, stroke) => bead(22.5, 15, 6, fill, stroke),
  n: (_fill, stroke) => circle(18.5, 15.5, 1.3, { fill: stroke }),
  b: (fill, stroke) =>
    bead(22.5, 8.5, 2.6, fill, stroke) +
    path('M22.5 15V22M19.2 18.5H25.8', { stroke, 'stroke-width': 1.8, 'stroke-linecap': 'round' }),
  q: (fill, stroke) => [9, 17.5, 27.5, 36].map((x, i) => bead(x, i % 3 === 0 ? 13 : 9, 2.6, fill, stroke)).join(''),
};

function drawPiece(piece: string, x: number, y: number): string {
  const kind = piece.toLowerCase();
  const white = piece !== kind;
  const [fill, stroke] = white ? ['#fffdf6', ink] : ['#2b333d', '#0b0f14'];
  // On a dark piece the details would vanish in its own outline.
  const mark = details[kind]?.(fill, white || kind === 'p' || kind === 'q' ? stroke : '#d9dee4') ?? '';
  const body = path(outlines[kind] ?? '', { fill, stroke, 'stroke-width': 1.6, 'stroke-linejoin': 'round' });
  return tag('g', { transform: `translate(${x + 1} ${y}) scale(1.11)` }, body, mark);
}

const squareAt = (column: number, row: number): string => `${'abcdefgh'.charAt(column)}${8 - row}`;

function svg({ fen, history, ended }: ChessState): string {
  const last = history.at(-1) ?? '';
  const squares = rowsOf(fen).flatMap((row, y) =>
    [...row].map((piece, x) => {
      const square = squareAt(x, y);
      const touched = last.startsWith(square) || last.slice(2, 4) === square;
      const light = (x + y) % 2 === 0;
      const fill = touched ? (light ? '#f3e08a' : '#dcbf55') : light ? '#f0e6d2' : '#a97f58';
      const [left, top] = [margin + x * side, margin + y * side];
      return rect(left, top, side, side, { fill }) + (piece === '.' ? '' : drawPiece(piece, left, top));
    }),
  );
  const labels = Array.from({ length: 8 }, (_, i) => {
    const middle = margin + (i + 0.5) * side;
    const below = margin + 8 * side + 20;
    return (
      text(middle, below, 13, 'abcdefgh'.charAt(i), { fill: muted }) + text(15, middle + 5, 13, 8 - i, { fill: muted })
    );
  });
  const next = ended?.replace(/_/g, ' ') ?? (sideToMove(fen) === 0 ? 'White to move' : 'Black to move');
  const size = 8 * side + 2 * margin;
  return picture(
    size,
    size + 26,
    `chess after ${history.length} moves`,
    ...squares,
    rect(margin, margin, 8 * side, 8 * side, { fill: 'none', stroke: '#5b3a22', 'stroke-width': 2 }),
    ...labels,
    text(size / 2, size + 12, 15, last ? `${last} · ${next}` : next),
  );
}

export const chess: Game<ChessState, string, ChessObservation> = {
  name,
  version,
  seats: { min: 2, max: 2 },
  maxTurns,

  setup: () => stateOf(new Chess(), [], []),

  toMove,
  legal: (state) => state.legal,
  outcome,

  observe: (state, seat) => ({
    game: name,
    version,
    turn: state.history.length + 1,
    seat,
    colour: seat === 0 ? 'white' : 'black',
    board: state.fen,
    history: state.history,
    legal: toMove(state) === seat ? state.legal : [],
  }),

  parse: (raw) => (typeof raw === 'string' && /^[a-h][1-8][a-h][1-8][nbrq]?$/.test(raw) ? raw : undefined),

  apply,
  render,
  svg,
};
