// Plays any legal move with the same chance. Math.random is seeded, so a match can be played again.
export function act({ legal }) {
  return legal[Math.floor(Math.random() * legal.length)];
}
