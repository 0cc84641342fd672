// Chess by searching ahead: alpha-beta over moves, then over captures until the position is quiet. It counts material
// and prefers the centre. Inside the search it leaves out castling and taking in passing; the moves it may choose from
// come with the observation, so it still plays both.
const nodesMax = 800;
const depthMax = 4;
const mate = 100000;

const worth = [0, 100, 320, 330, 500, 900, 0];
const letters = '.pnbrqk';
// A board of 8 by 8 inside a frame of 10 by 12, so that a step off the edge is seen at once. White is positive.
const off = 99;
const board = new Int8Array(120).fill(off);
const steps = [[], [], [8, 12, 19, 21, -8, -12, -19, -21], [9, 11, -9, -11], [1, 10, -1, -10]];
steps[5] = [...steps[3], ...steps[4]];
steps[6] = steps[5];

const centrality = new Int8Array(120);
for (let square = 0; square < 120; square += 1) {
  const [row, column] = [Math.floor(square / 10) - 2, (square % 10) - 1];
  centrality[square] = 7 - Math.abs(2 * row - 7) / 2 - Math.abs(2 * column - 7) / 2;
}

// How good it is for a piece to stand on a square, in hundredths of a pawn, from its own side's point of view.
const push = (square, white) => (white ? 9 - Math.floor(square / 10) : Math.floor(square / 10) - 2);
function placed(piece, square) {
  const kind = Math.abs(piece);
  if (kind === 1) return worth[1] + 4 * push(square, piece > 0) + 3 * centrality[square];
  if (kind === 6) return -6 * centrality[square];
  return worth[kind] + (kind === 5 ? 1 : 5) * centrality[square];
}

let score = 0;
let nodes = 0;

function put(square, piece) {
  const before = board[square];
  if (before !== 0) score -= before > 0 ? placed(before, square) : -placed(before, square);
  board[square] = piece;
  if (piece !== 0) score += piece > 0 ? placed(piece, square) : -placed(piece, square);
}

// A move is [from, to, what stands on `to` afterwards, what stood there before].
function movesOf(side, capturesOnly) {
  const moves = [];
  const add = (from, to, piece) => {
    if (Math.abs(piece) === 1 && (to < 30 || to > 90)) moves.push([from, to, 5 * side, board[to]]);
    else moves.push([from, to, piece, board[to]]);
  };
  for (let from = 21; from < 99; from += 1) {
    const piece = board[from];
    if (piece === off || piece * side <= 0) continue;
    const kind = Math.abs(piece);
    if (kind === 1) {
      const ahead = from - 10 * side;
      for (const to of [ahead - 1, ahead + 1]) if (board[to] !== off && board[to] * side < 0) add(from, to, piece);
      if (capturesOnly || board[ahead] !== 0) continue;
      add(from, ahead, piece);
      const home = side > 0 ? from > 80 : from < 40;
      if (home && board[ahead - 10 * side] === 0) add(from, ahead - 10 * side, piece);
      continue;
    }
    for (const step of steps[kind]) {
      for (let to = from + step; board[to] !== off; to += step) {
        if (board[to] * side > 0) break;
        if (board[to] !== 0 || !capturesOnly) add(from, to, piece);
        if (board[to] !== 0 || kind === 2 || kind === 6) break;
      }
    }
  }
  // The dearest captures by the cheapest pieces come first; they cut the most.
  const rank = (move) => (move[3] === 0 ? 0 : 10 * worth[Math.abs(move[3])] - worth[Math.abs(move[2])] + 10000);
  return moves.sort((a, b) => rank(b) - rank(a));
}

const inCheck = (side) => movesOf(-side, true).some((move) => move[3] === 6 * side);

function after(move, work) {
  const piece = board[move[0]];
  put(move[0], 0);
  put(move[1], move[2]);
  const value = work();
  put(move[1], move[3]);
  put(move[0], piece);
  return value;
}

function search(side, depth, alpha, beta) {
  nodes += 1;
  const quiet = depth <= 0;
  let best = quiet ? side * score : -mate;
  if (quiet && best >= beta) return best;
  let low = Math.max(alpha, best);
  for (const move of movesOf(side, quiet)) {
    if (Math.abs(move[3]) === 6) return mate + depth;
    const value = after(move, () => -search(-side, depth - 1, -beta, -low));
    if (value > best) best = value;
    if (best > low) low = best;
    if (low >= beta || nodes > nodesMax) break;
  }
  // Every move loses the king: that is mate when it is attacked now, and stalemate when it is not.
  if (!quiet && best <= -mate && nodes <= nodesMax && !inCheck(side)) return 0;
  return best;
}

function setUp(fen) {
  const [rows, turn] = fen.split(' ');
  score = 0;
  rows.split('/').forEach((row, index) => {
    let square = 21 + 10 * index;
    for (const letter of row) {
      const empty = Number(letter);
      for (let count = 0; count < empty; count += 1) board[square++] = 0;
      if (empty > 0) continue;
      const kind = letters.indexOf(letter.toLowerCase());
      board[square] = 0;
      put(square, letter.toLowerCase() === letter ? -kind : kind);
      square += 1;
    }
  });
  return turn === 'w' ? 1 : -1;
}

const squareOf = (name) => 21 + 10 * (8 - Number(name[1])) + 'abcdefgh'.indexOf(name[0]);

// Castling and taking in passing touch more than two squares.
function play(move, side) {
  const [from, to] = [squareOf(move), squareOf(move.slice(2))];
  const piece = board[from];
  const kind = Math.abs(piece);
  if (kind === 1 && board[to] === 0 && (to - from) % 10 !== 0) put(to + 10 * side, 0);
  if (kind === 6 && Math.abs(to - from) === 2) {
    put(to > from ? to + 1 : to - 2, 0);
    put((from + to) / 2, 4 * side);
  }
  put(from, 0);
  put(to, move.length > 4 ? letters.indexOf(move[4]) * side : piece);
}

export function act({ board: fen, legal, history }) {
  const side = setUp(fen);
  const back = history.length > 1 ? history[history.length - 2] : '';
  const undoes = back.slice(2, 4) + back.slice(0, 2);
  const [saved, savedScore] = [board.slice(), score];
  let order = legal.map((move) => ({ move, value: 0, noise: Math.random() * 4 - (move === undoes ? 25 : 0) }));
  nodes = 0;
  for (let depth = 0; depth < depthMax; depth += 1) {
    let best = -Infinity;
    const found = [];
    for (const { move, noise } of order) {
      play(move, side);
      const value = noise - search(-side, depth, -2 * mate, 30 - best);
      board.set(saved);
      score = savedScore;
      found.push({ move, noise, value });
      if (value > best) best = value;
      if (nodes > nodesMax) break;
    }
    // A depth that was not finished is only worth something if its first move, the best so far, was.
    if (nodes > nodesMax && found.length < order.length) break;
    order = found.sort((a, b) => b.value - a.value);
    if (best > mate / 2) break;
  }
  return order[0].move;
}
