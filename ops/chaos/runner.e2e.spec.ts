import { describe, expect, it } from 'vitest';
import { runDrain, runRunnerSeed } from './runner.js';

// Seeded, so that a failure repeats: npm run chaos -- runner --seed <n>.
describe('killing runners in the middle of matches', { timeout: 240_000 }, () => {
  it.each([1, 2])('leaves exactly one outcome for each match (seed %i)', async (seed) => {
    const { failures, settled, voided } = await runRunnerSeed(seed);
    expect(failures).toEqual([]);
    expect(settled + voided).toBe(6);
  });

  it('drains a queue through stops of runner and arena without losing a match', async () => {
    expect(await runDrain(40)).toMatchObject({ failures: [], settled: 40, voided: 0 });
  });
});
