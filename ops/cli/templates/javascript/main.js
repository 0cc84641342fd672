import { choose } from './strategy.js';

/** Called on every turn: look at the observation, return one of its legal actions. */
export function act(observation) {
  return choose(observation.legal);
}
