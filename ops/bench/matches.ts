import { Cells, codeDigest, houseAgentSource } from '../../sandbox-runner/index.js';
import { packageRoot } from '../../services/adapters/compiled.js';
import { startChild } from './child.js';
import { installKaggle } from './peers.js';
import { type BenchOptions, figures, type Report, race, ratio } from './rounds.js';

const KAGGLE_MATCHES = 10;
const WASM_MATCHES = 400;

/**
 * Connect-four matches a second between random agents. One match at a time on each side: a cell of ours, and one
 * interpreter of theirs.
 */
export async function matches(options: BenchOptions): Promise<Report> {
  const kaggle = startChild(installKaggle(), [`${packageRoot}/ops/bench/kaggle.py`]);
  const pool = new Cells({ size: 1 });
  const source = await houseAgentSource('random');
  const agents = Array.from({ length: 2 }, () => ({ source, codeDigest: codeDigest(source) }));
  let played = 0;
  try {
    const measured = await race(
      [
        { name: 'kaggle', run: () => kaggle.round(`${KAGGLE_MATCHES}`) },
        {
          name: 'wasm',
          run: async () => {
            const count = options.quick ? WASM_MATCHES / 10 : WASM_MATCHES;
            const startedMs = performance.now();
            const seeds = Array.from({ length: count }, () => `bench-${played++}`);
            await Promise.all(seeds.map((seed) => pool.play({ matchId: seed, game: 'connect-four', seed, agents })));
            return (count / (performance.now() - startedMs)) * 1000;
          },
        },
      ],
      options,
    );
    return {
      results: Object.fromEntries([...measured].map(([name, rounds]) => [name, figures(rounds)])),
      ratios: { kaggleWasm: ratio(measured, 'wasm', 'kaggle') },
      targets: { kaggleWasm: 20 },
      notes: ['Matches a second, one at a time on each side. Every match of ours has two new sandboxes.'],
    };
  } finally {
    await Promise.all([kaggle.stop(), pool.close({ kill: true })]);
  }
}
