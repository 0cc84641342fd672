import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cells } from './cells.js';
import { type Answer, ExternalMatchHost, type Outside, type OutsideConnection } from './external-match-host.js';
import { codeDigest, type MatchAgent } from './protocol.js';
import { replay } from './replay.js';

const hosted = (source: string): MatchAgent => ({ source, codeDigest: codeDigest(source), agentId: 'house.bot' });
const external: MatchAgent = { source: '', codeDigest: '0'.repeat(64), runtime: 'external', agentId: 'ada.bot' };
const first = hosted('const act = ({ legal }) => { console.log("mine"); return legal[0] }');

/** An agent outside that answers as it is told to. */
function outside(answer: (observation: { legal: number[] }) => unknown, came = true): Outside & { told: unknown[] } {
  const told: unknown[] = [];
  const sit = (): OutsideConnection => {
    let leave = () => {};
    const gone = new Promise<never>((_resolve, reject) => {
      leave = () => reject(Object.assign(new Error('closed'), { code: 'SANDBOX.CLOSED' }));
    });
    gone.catch(() => {});
    return {
      start: async () => came,
      ask: async (observation, left): Promise<Answer> => {
        const value = await Promise.race([answer(observation as never), gone]);
        const wallMs = left.turnMs + 7;
        if (value === undefined) return { action: undefined, wallMs: wallMs + left.bankMs };
        return { action: { value, reasoning: 'because', computeMs: 1.5 }, wallMs };
      },
      tell: (result) => void told.push(result),
      leave,
    };
  };
  return { sit, told };
}

describe('the table', () => {
  let cells: Cells;
  const job = (agents: readonly MatchAgent[], game = 'tic-tac-toe') => ({ matchId: 'm', game, seed: 's', agents });

  beforeAll(() => {
    cells = new Cells({ size: 1 });
  });
  afterAll(() => cells.close({ kill: true }));

  it('seats an agent from outside and one in a cell, and anybody can replay what they played', async () => {
    const visitor = outside(({ legal }) => legal.at(-1));
    const progress: unknown[] = [];
    const record = await new ExternalMatchHost(visitor, cells).play(job([first, external]), (each) =>
      progress.push(each),
    );
    expect(record).toMatchObject({ driver: 'wasm+external', outcome: { reason: 'line' } });
    expect(replay(record)).toMatchObject({ agrees: true });
    const turns = record.turns.filter(({ seat }) => seat === 1);
    // 7 ms over what a turn is free of charge, each time.
    const { usage, limits } = record;
    expect(turns.map(({ fuel }) => fuel)).toEqual(turns.map(() => limits.clockTurnMs + 7));
    expect(usage[1]).toMatchObject({ driver: 'external', meter: 'clock', claimedComputeMs: turns.length * 1.5 });
    expect(usage[0]).toMatchObject({ driver: 'wasm', meter: 'fuel' });
    expect(visitor.told).toHaveLength(1);
    expect(progress).toContainEqual({ kind: 'log', seat: 0, text: expect.stringContaining('mine') });
    expect(progress).toContainEqual({ kind: 'log', seat: 1, text: 'because\n' });
  });

  it.each<[string, Outside, string]>([
    ['that does not come', outside(() => 0, false), 'timeout'],
    ['that does not answer in time', outside(() => undefined), 'timeout'],
    ['that answers nonsense', outside(() => 'x'), 'bad_reply'],
    ['that plays what is taken', outside(() => 0), 'illegal_move'],
  ])('has an agent from outside lose %s', async (_what, visitor, reason) => {
    const record = await new ExternalMatchHost(visitor, cells).play(job([first, external]));
    expect(record.outcome).toMatchObject({ reason, seatAtFault: 1, winner: 0 });
    expect(replay(record)).toMatchObject({ agrees: true });
  });

  it.each<[string, string, string]>([
    ['throws', 'const act = () => { throw new Error("no") }', 'crash'],
    ['loops', 'const act = () => { for (;;); }', 'out_of_fuel'],
  ])('has a hosted agent lose that %s, and its cell serves the next', async (_what, source, reason) => {
    const table = new ExternalMatchHost(
      outside(({ legal }) => legal[0]),
      cells,
    );
    expect((await table.play(job([hosted(source), external]))).outcome).toMatchObject({ reason, seatAtFault: 0 });
    expect((await table.play(job([first, external]))).outcome.seatAtFault).toBe(null);
  });

  it('blames nobody when a cell dies between turns', async () => {
    const dying = new Cells({ size: 1 });
    const kill = () => {
      for (const pid of dying.pids) process.kill(pid, 'SIGKILL');
    };
    try {
      const visitor = outside(async ({ legal }) => {
        kill();
        await expect.poll(() => dying.pids.length).toBeLessThan(2);
        return legal[0];
      });
      await expect(new ExternalMatchHost(visitor, dying).play(job([external, first]))).rejects.toMatchObject({
        code: 'SANDBOX.CELL_DIED',
      });
    } finally {
      await dying.close({ kill: true });
    }
  });

  it('stops a hosted agent that hangs, by the watchdog', async () => {
    // Native code that takes no fuel.
    const hanging = hosted('const act = () => [].indexOf.call({ length: 2 ** 53 - 1 }, 1)');
    const table = new ExternalMatchHost(
      outside(({ legal }) => legal[0]),
      cells,
      { wallMs: 1_000 },
    );
    const { outcome } = await table.play(job([hanging, external]));
    expect(outcome).toMatchObject({ reason: 'timeout', seatAtFault: 0, winner: 1 });
  });

  it('gives up what is under way when it closes', async () => {
    const table = new ExternalMatchHost(
      outside(() => new Promise(() => {})),
      cells,
    );
    const playing = table.play(job([external, first]));
    await expect.poll(() => cells.pids.length).toBeGreaterThan(1);
    await table.close();
    await expect(playing).rejects.toMatchObject({ code: 'SANDBOX.CLOSED' });
    await expect(table.play(job([external, first]))).rejects.toMatchObject({ code: 'SANDBOX.CLOSED' });
  });
});
