import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ProcessDriver, runtimeFor, WasmDriver } from '../../sandbox-runner/index.js';
import { type Attack, judge, strike, worked } from './attack.js';
import { pythonAttacks } from './python.js';
import { attackDriver, attacksNeeded, isGood, targets, whyNot } from './run.js';
import { wasmAttacks } from './wasm.js';
import { createWorld, type World } from './world.js';

const named = (attacks: readonly Attack[], name: string): Attack => attacks.find((attack) => attack.name === name)!;

describe.each(targets)('$name', (target) => {
  const why = whyNot(target.name);
  it.skipIf(why !== undefined)(
    `contains every attack that works without it${why ? ` (${why})` : ''}`,
    async () => {
      const results = await attackDriver(target);
      expect(results.filter((result) => !isGood(result))).toEqual([]);
      expect(results.filter(({ verdict }) => verdict === 'contained').length).toBeGreaterThanOrEqual(attacksNeeded);
    },
    240_000,
  );
});

describe('the check itself', () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld('secret-of-the-spec');
  });
  afterAll(() => world.close());

  const why = whyNot('process/python');
  it.skipIf(why !== undefined)(`notices a sandbox with a hole in it${why ? ` (${why})` : ''}`, async () => {
    const runtime = await runtimeFor('python');
    const driver = await ProcessDriver.open({ ...runtime, visible: [...runtime.visible, '/etc', '/tmp'] });
    try {
      for (const name of ['reading /etc/passwd', 'opening /etc']) {
        const attack = named(pythonAttacks, name);
        const seen = await strike(driver, attack, world);
        expect(judge('leaky', attack, worked(attack, seen, world), seen)).toMatchObject({ verdict: 'ESCAPED' });
      }
    } finally {
      await driver.close();
    }
  });

  it('takes no fault that it did not expect for a wall that held', async () => {
    const attack: Attack = { ...named(wasmAttacks, 'the global process'), source: 'throw new Error("broken attack")' };
    const seen = await strike(new WasmDriver(), attack, world);
    expect(judge('wasm', attack, worked(attack, seen, world), seen)).toMatchObject({ verdict: 'UNCLEAR' });
  });
});
