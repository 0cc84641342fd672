import { Cells, codeDigest, houseAgentSource, type MatchAgent } from '../../sandbox-runner/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { startChild } from './child.js';
import { installKaggle } from './peers.js';
import { type BenchOptions, compare, perSecond, type Report, scaled } from './rounds.js';

const KAGGLE_MATCHES = 10;
const WASM_MATCHES = 400;
const PROCESS_MATCHES = 20;
/** Draws from the system, because importing Python's random takes as long as half the match. */
const PYTHON = `from posix import urandom


def act(observation):
    legal = observation["legal"]
    return legal[urandom(1)[0] % len(legal)]
`;

/**
 * Connect-four matches a second between random agents. One match at a time on each side: a cell of ours, and one
 * interpreter of theirs.
 */
export async function matches(options: BenchOptions): Promise<Report> {
  const kaggle = startChild(installKaggle(), [`${packageRoot}/ops/bench/kaggle.py`]);
  const cells = new Cells({ size: 1 });
  const source = await houseAgentSource('random');
  let played = 0;
  const play = (agent: MatchAgent, count: number) => () => {
    const seeds = Array.from({ length: count }, () => `bench-${played++}`);
    const agents = [agent, agent];
    return perSecond(count, () =>
      Promise.all(seeds.map((seed) => cells.play({ matchId: seed, game: 'connect-four', seed, agents }))),
    );
  };
  const wasm = { source, codeDigest: codeDigest(source) };
  const python = { source: PYTHON, codeDigest: codeDigest(PYTHON), runtime: 'python' } as const;
  const contenders = {
    kaggle: () => kaggle.round(`${KAGGLE_MATCHES}`),
    wasm: play(wasm, scaled(options, WASM_MATCHES)),
    process: play(python, PROCESS_MATCHES),
  };
  try {
    return await compare(contenders, options, {
      ratios: { kaggleWasm: ['wasm', 'kaggle'], kaggleProcess: ['process', 'kaggle'] },
      targets: { kaggleWasm: 20, kaggleProcess: 2 },
      notes: [
        'Matches a second, one at a time on each side. Every match of ours has two new sandboxes; those of the process ' +
          'driver are started while earlier matches are played.',
      ],
    });
  } finally {
    await Promise.all([kaggle.stop(), cells.close({ kill: true })]);
  }
}
