// Prefers the middle of the board, where the most lines cross, and looks no further.
const preference = {
  'tic-tac-toe': [4, 0, 2, 6, 8, 1, 3, 5, 7],
  'connect-four': [3, 2, 4, 1, 5, 0, 6],
};

export function act({ game, legal }) {
  return preference[game].find((move) => legal.includes(move));
}
