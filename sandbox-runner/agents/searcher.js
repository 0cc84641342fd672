// Perfect at tic-tac-toe; at connect four it searches five moves deep with alpha-beta and values every line still open.
const depth = 5;
const order = [3, 2, 4, 1, 5, 0, 6];

const lines = [
  [0, 1, 2],
  [3, 4, 5],
  [6, 7, 8],
  [0, 3, 6],
  [1, 4, 7],
  [2, 5, 8],
  [0, 4, 8],
  [2, 4, 6],
];
const solved = new Map();

// The value of a tic-tac-toe position for the side to move: 1 wins, 0 draws, -1 loses.
function solve(cells, mark) {
  const other = mark === 'X' ? 'O' : 'X';
  if (lines.some((line) => line.every((cell) => cells[cell] === other))) return -1;
  const key = cells.map((cell) => cell || '.').join('') + mark;
  const known = solved.get(key);
  if (known !== undefined) return known;
  let best = cells.includes('') ? -1 : 0;
  for (let cell = 0; cell < 9 && best < 1; cell += 1) {
    if (cells[cell] !== '') continue;
    cells[cell] = mark;
    best = Math.max(best, -solve(cells, other));
    cells[cell] = '';
  }
  solved.set(key, best);
  return best;
}

function playTicTacToe({ board, mark, legal }) {
  const cells = board.slice();
  const other = mark === 'X' ? 'O' : 'X';
  const preferred = [4, 0, 2, 6, 8, 1, 3, 5, 7].filter((move) => legal.includes(move));
  let best = preferred[0];
  let bestValue = -2;
  for (const move of preferred) {
    cells[move] = mark;
    const value = -solve(cells, other);
    cells[move] = '';
    if (value > bestValue) {
      best = move;
      bestValue = value;
    }
  }
  return best;
}

// Every line of four cells, and for each cell the lines through it. Cell = column * 6 + row, from the bottom up.
const fours = [];
const through = Array.from({ length: 42 }, () => []);
for (let column = 0; column < 7; column += 1) {
  for (let row = 0; row < 6; row += 1) {
    for (const [dx, dy] of [
      [1, 0],
      [0, 1],
      [1, 1],
      [1, -1],
    ]) {
      const endColumn = column + 3 * dx;
      const endRow = row + 3 * dy;
      if (endColumn > 6 || endRow > 5 || endRow < 0) continue;
      for (let step = 0; step < 4; step += 1) through[(column + step * dx) * 6 + row + step * dy].push(fours.length);
      fours.push(0);
    }
  }
}
const worth = [0, 1, 6, 30, 0];
const mine = new Array(fours.length).fill(0);
const theirs = new Array(fours.length).fill(0);
const tops = new Array(7).fill(0);
let score = 0;

// A line counts for the side that alone has cells in it; the score is kept up to date move by move.
const lineValue = (line) => (theirs[line] === 0 ? worth[mine[line]] : mine[line] === 0 ? -worth[theirs[line]] : 0);

function put(cell, own, by) {
  let four = false;
  for (const line of through[cell]) {
    score -= lineValue(line);
    if (own) mine[line] += by;
    else theirs[line] += by;
    if (own ? mine[line] === 4 : theirs[line] === 4) four = true;
    score += lineValue(line);
  }
  return four;
}

function search(own, left, alpha, beta) {
  let best = -100000;
  let moved = false;
  for (const column of order) {
    if (tops[column] === 6) continue;
    moved = true;
    const cell = column * 6 + tops[column];
    tops[column] += 1;
    let value;
    if (put(cell, own, 1)) value = 10000 + left;
    else if (left === 0) value = own ? score : -score;
    else value = -search(!own, left - 1, -beta, -alpha);
    put(cell, own, -1);
    tops[column] -= 1;
    if (value > best) best = value;
    if (best > alpha) alpha = best;
    if (alpha >= beta) break;
  }
  return moved ? best : 0;
}

function playConnectFour({ board, mark, legal }) {
  mine.fill(0);
  theirs.fill(0);
  tops.fill(0);
  score = 0;
  for (let column = 0; column < 7; column += 1) {
    for (let row = 0; row < 6; row += 1) {
      const held = board[5 - row][column];
      if (held === '') continue;
      put(column * 6 + row, held === mark, 1);
      tops[column] += 1;
    }
  }
  let best = legal[0];
  let bestValue = -Infinity;
  for (const column of order.filter((each) => legal.includes(each))) {
    const cell = column * 6 + tops[column];
    tops[column] += 1;
    // A little seeded noise breaks ties, so that matches between the same two agents differ.
    let value = Math.random();
    // Anything below the best so far may be cut off; anything level with it has to be exact.
    const enough = bestValue === -Infinity ? 100000 : 1 - Math.floor(bestValue);
    if (put(cell, true, 1)) value += 20000;
    else value -= search(false, depth - 2, -100000, enough);
    put(cell, true, -1);
    tops[column] -= 1;
    if (value > bestValue) {
      best = column;
      bestValue = value;
    }
  }
  return best;
}

export function act(observation) {
  return observation.game === 'tic-tac-toe' ? playTicTacToe(observation) : playConnectFour(observation);
}
