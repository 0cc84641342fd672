/** Called once before the first turn. */
export function init(config) {
  // config: { game, version, seat, seats, turnFuel, bankFuel }
}

/** Called on every turn: look at the observation, return one of its legal actions. */
export function act(observation) {
  const { legal } = observation;
  return legal[Math.floor(Math.random() * legal.length)];
}

/** Called once at the end. */
export function onResult(result) {
  // result: { game, seat, winner, score, reason }
}
