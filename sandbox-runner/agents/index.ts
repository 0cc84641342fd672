import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AgentRuntime, AgonError } from '../../services/kernel/index.js';
import { gameNames } from '../games/index.js';
import { root } from '../paths.js';

/** An agent that comes with the arena: an opponent for a first match, a sparring partner, and an example to read. */
interface HouseAgent {
  readonly name: string;
  readonly runtime: AgentRuntime;
  /** Relative to the repository's root. */
  readonly file: string;
  readonly games: readonly string[];
  readonly describe: string;
}

const houseAgent = (name: string, games: readonly string[], describe: string): HouseAgent => ({
  name,
  runtime: 'javascript',
  file: `sandbox-runner/agents/${name}.js`,
  games,
  describe,
});

/** The same in Python. It has the name of its file with a dash, because a name has no dots. */
const inPython = (name: string, games: readonly string[], describe: string): HouseAgent => ({
  ...houseAgent(`${name}-py`, games, describe),
  runtime: 'python',
  file: `sandbox-runner/agents/${name}.py`,
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
  inPython('random', gameNames, 'Plays any legal move with the same chance.'),
  inPython('greedy', gameNames, 'Takes what looks best right now and looks no further.'),
  inPython('search', lines, 'Perfect at tic-tac-toe; looks four moves ahead at connect four.'),
];

export function houseAgentNamed(name: string): HouseAgent {
  const agent = houseAgents.find((each) => each.name === name);
  if (agent) return agent;
  const known = houseAgents.map((each) => each.name);
  const message = `There is no house agent "${name}"; choose one of ${known.join(', ')}.`;
  throw new AgonError('SANDBOX.UNKNOWN_AGENT', message, { known });
}

export const houseAgentSource = async (name: string): Promise<string> =>
  readFile(join(root, houseAgentNamed(name).file), 'utf8');

/** The house plays in three stables, so that strength shows in the balances as well as in the ratings. */
export const houseStables: Readonly<Record<string, { displayName: string; agents: readonly string[] }>> = {
  bronze: { displayName: 'Bronze Stable', agents: ['first', 'random'] },
  silver: { displayName: 'Silver Stable', agents: ['centre', 'tactician', 'greedy'] },
  gold: {
    displayName: 'Gold Stable',
    agents: ['minimax', 'searcher', 'reciprocator', 'equilibrium', 'alphabeta'],
  },
};

/** Whose agents are the house's. */
export const houseAccounts: readonly string[] = Object.keys(houseStables);
