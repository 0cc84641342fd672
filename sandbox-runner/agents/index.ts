import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgonError } from '../../services/kernel/index.js';
import { gameNames } from '../games/index.js';
import { root } from '../paths.js';

/** An agent that comes with the arena: an opponent for a first match, a sparring partner, and an example to read. */
export interface HouseAgent {
  readonly name: string;
  /** Relative to the repository's root. */
  readonly file: string;
  readonly games: readonly string[];
  readonly describe: string;
}

const houseAgent = (name: string, games: readonly string[], describe: string): HouseAgent => ({
  name,
  file: `sandbox-runner/agents/${name}.js`,
  games,
  describe,
});

const lines = ['tic-tac-toe', 'connect-four'];

/** Roughly from the weakest to the strongest. */
export const houseAgents: readonly HouseAgent[] = [
  houseAgent('random', gameNames, 'Plays any legal move with the same chance.'),
  houseAgent('first', gameNames, 'Plays the first legal move of the list, always.'),
  houseAgent('centre', lines, 'Prefers the middle of the board and looks no further.'),
  houseAgent('tactician', lines, 'Wins if it can, blocks if it must, gives no win away.'),
  houseAgent('minimax', lines, 'Perfect at tic-tac-toe; looks four moves ahead at connect four.'),
  houseAgent(
    'searcher',
    lines,
    'Perfect at tic-tac-toe; searches five moves deep at connect four and values open lines.',
  ),
  houseAgent('greedy', ['leduc-holdem', 'chess', 'prisoners'], 'Takes what looks best right now and looks no further.'),
  houseAgent(
    'reciprocator',
    ['prisoners'],
    'Answers trust with trust and betrayal with betrayal, and forgives a little.',
  ),
  houseAgent(
    'equilibrium',
    ['leduc-holdem'],
    "Works out Leduc hold'em's equilibrium before the first hand, and plays it.",
  ),
  houseAgent('alphabeta', ['chess'], 'Searches chess a few moves deep with alpha-beta, and captures to the end.'),
];

/**
 * The source of a house agent.
 *
 * @example await houseAgentSource('tactician')
 */
export async function houseAgentSource(name: string): Promise<string> {
  const agent = houseAgents.find((each) => each.name === name);
  if (agent === undefined) {
    const known = houseAgents.map((each) => each.name);
    throw new AgonError(
      'SANDBOX.UNKNOWN_AGENT',
      `There is no house agent "${name}"; choose one of ${known.join(', ')}.`,
      {
        known,
      },
    );
  }
  return readFile(join(root, agent.file), 'utf8');
}
