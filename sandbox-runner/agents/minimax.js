// Perfect at tic-tac-toe; at connect four it looks four moves ahead and counts only wins and losses.
const depth = 4;
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

// Cells are numbered from the bottom up with a border of one column, so that a line never wraps around the board.
const height = 7;

function wins(cells, at, side) {
  for (const step of [1, height, height + 1, height - 1]) {
    let run = 1;
    for (let cell = at + step; cells[cell] === side; cell += step) run += 1;
    for (let cell = at - step; cells[cell] === side; cell -= step) run += 1;
    if (run >= 4) return true;
  }
  return false;
}

function search(cells, tops, side, left, alpha, beta) {
  let best = -1000;
  let moved = false;
  for (const column of order) {
    const row = tops[column];
    if (row === 6) continue;
    moved = true;
    const at = column * height + row;
    cells[at] = side;
    tops[column] += 1;
    let value = 0;
    if (wins(cells, at, side)) value = 100 + left;
    else if (left > 0) value = -search(cells, tops, -side, left - 1, -beta, -alpha);
    cells[at] = 0;
    tops[column] -= 1;
    if (value > best) best = value;
    if (best > alpha) alpha = best;
    if (alpha >= beta) break;
  }
  return moved ? best : 0;
}

function playConnectFour({ board, mark, legal }) {
  const cells = new Array(height * 7).fill(0);
  const tops = new Array(7).fill(0);
  for (let column = 0; column < 7; column += 1) {
    for (let row = 0; row < 6; row += 1) {
      const held = board[5 - row][column];
      if (held === '') continue;
      cells[column * height + row] = held === mark ? 1 : -1;
      tops[column] += 1;
    }
  }
  let choices = [];
  let bestValue = -2000;
  for (const column of order.filter((each) => legal.includes(each))) {
    const at = column * height + tops[column];
    cells[at] = 1;
    tops[column] += 1;
    const value = wins(cells, at, 1) ? 1000 : -search(cells, tops, -1, depth - 2, -1000, 1000);
    cells[at] = 0;
    tops[column] -= 1;
    if (value > bestValue) choices = [];
    if (value >= bestValue) {
      bestValue = value;
      choices.push(column);
    }
  }
  // Choices are in order from the middle; taking the smaller of two draws prefers it without playing the same match twice.
  return choices[Math.floor(Math.min(Math.random(), Math.random()) * choices.length)];
}

export function act(observation) {
  return observation.game === 'tic-tac-toe' ? playTicTacToe(observation) : playConnectFour(observation);
}
