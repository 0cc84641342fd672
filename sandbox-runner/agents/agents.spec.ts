import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WasmDriver } from '../drivers/wasm.js';
import { gameNamed, gameNames } from '../games/index.js';
import { limitsFrom } from '../limits.js';
import { root } from '../paths.js';
import { type MatchRecord, playMatch } from '../referee.js';
import { replay } from '../replay.js';
import { houseAgentSource, houseAgents } from './index.js';

const driver = new WasmDriver();
const limits = limitsFrom();

async function play(game: string, names: readonly string[], seed: string): Promise<MatchRecord> {
  const sources = await Promise.all(names.map(houseAgentSource));
  const seats = await Promise.all(sources.map((source, seat) => driver.load(source, { seed, seat, limits })));
  try {
    return await playMatch({ game: gameNamed(game), seed, seats, limits, driver: driver.name, agents: names });
  } finally {
    for (const seat of seats) seat.dispose();
  }
}

/** The first agent's points over matches with fixed seeds, sitting first and second in turn. */
async function points(game: string, one: string, other: string, matches: number): Promise<number> {
  let sum = 0;
  for (let index = 0; index < matches; index += 1) {
    const seat = index % 2;
    const record = await play(game, seat === 0 ? [one, other] : [other, one], `ladder-${index}`);
    expect(record.outcome.seatAtFault).toBeNull();
    sum += record.outcome.scores[seat] ?? 0;
  }
  return sum;
}

describe('house agents', () => {
  it('are all listed, and pass the check at submission', async () => {
    const files = readdirSync(join(root, 'sandbox-runner/agents')).filter((file) => file.endsWith('.js'));
    expect(files.sort()).toEqual(houseAgents.map((agent) => `${agent.name}.js`).sort());
    for (const { name } of houseAgents) {
      expect(await driver.check(await houseAgentSource(name), limits)).toEqual({ ok: true });
    }
    await expect(houseAgentSource('nobody')).rejects.toMatchObject({ code: 'SANDBOX.UNKNOWN_AGENT' });
  });

  it.each(gameNames)('never fault at %s, whoever they meet, and stay within a turn without the bank', async (game) => {
    for (const one of houseAgents) {
      for (const other of houseAgents) {
        const record = await play(game, [one.name, other.name], `${one.name} ${other.name}`);
        expect(record.outcome).toMatchObject({ seatAtFault: null, detail: '' });
        expect(Math.max(...record.turns.map((turn) => turn.fuel))).toBeLessThan(limits.turnFuel);
        expect(replay(record).agrees).toBe(true);
      }
    }
  });

  it.each([
    ['tic-tac-toe', 'tactician', 'random'],
    ['tic-tac-toe', 'tactician', 'first'],
    ['tic-tac-toe', 'minimax', 'random'],
    ['connect-four', 'centre', 'random'],
    ['connect-four', 'tactician', 'centre'],
    ['connect-four', 'minimax', 'tactician'],
    ['connect-four', 'searcher', 'minimax'],
    ['connect-four', 'searcher', 'tactician'],
  ])('have a ladder: at %s, %s beats %s', async (game, stronger, weaker) => {
    expect(await points(game, stronger, weaker, 20)).toBeGreaterThanOrEqual(14);
  });

  it.each(['minimax', 'searcher'])('%s never loses at tic-tac-toe', async (name) => {
    for (const other of ['random', 'tactician', 'minimax']) {
      for (let index = 0; index < 10; index += 1) {
        const seat = index % 2;
        const record = await play('tic-tac-toe', seat === 0 ? [name, other] : [other, name], `perfect-${index}`);
        expect(record.outcome.scores[seat]).toBeGreaterThanOrEqual(0.5);
      }
    }
  });
});
