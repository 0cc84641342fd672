// Wins if it can, blocks if it must, gives no win away, and otherwise takes a random move near the middle.
function lineThrough(board, y, x, mark, length) {
  for (const [dy, dx] of [
    [0, 1],
    [1, 0],
    [1, 1],
    [1, -1],
  ]) {
    let run = 1;
    for (const way of [1, -1]) {
      let r = y + dy * way;
      let c = x + dx * way;
      while (board[r]?.[c] === mark) {
        run += 1;
        r += dy * way;
        c += dx * way;
      }
    }
    if (run >= length) return true;
  }
  return false;
}

const games = {
  'tic-tac-toe': {
    grid: (board) => [board.slice(0, 3), board.slice(3, 6), board.slice(6, 9)],
    place: (_grid, move) => [Math.floor(move / 3), move % 3],
    length: 3,
    weight: (move) => (move === 4 ? 4 : move % 2 === 0 ? 2 : 1),
  },
  'connect-four': {
    grid: (board) => board.map((row) => row.slice()),
    place: (grid, move) => {
      let row = grid.length - 1;
      while (row >= 0 && grid[row][move] !== '') row -= 1;
      return [row, move];
    },
    length: 4,
    weight: (move) => 4 - Math.abs(3 - move),
  },
};

function wins(game, grid, move, mark) {
  const [y, x] = game.place(grid, move);
  return y >= 0 && grid[y][x] === '' && lineThrough(grid, y, x, mark, game.length);
}

export function act({ game: name, board, mark, legal }) {
  const game = games[name];
  const grid = game.grid(board);
  const other = mark === 'X' ? 'O' : 'X';
  const winning = legal.find((move) => wins(game, grid, move, mark));
  if (winning !== undefined) return winning;
  const threat = legal.find((move) => wins(game, grid, move, other));
  if (threat !== undefined) return threat;

  const safe = legal.filter((move) => {
    const [y, x] = game.place(grid, move);
    grid[y][x] = mark;
    const givesAway = legal.some((reply) => wins(game, grid, reply, other));
    grid[y][x] = '';
    return !givesAway;
  });
  const choices = safe.length > 0 ? safe : legal;
  let pick = Math.random() * choices.reduce((sum, move) => sum + game.weight(move), 0);
  for (const move of choices) {
    pick -= game.weight(move);
    if (pick < 0) return move;
  }
  return choices[choices.length - 1];
}
