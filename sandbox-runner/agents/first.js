// Plays the lowest legal move, always. The weakest opponent that never breaks a rule.
export function act({ legal }) {
  return legal[0];
}
