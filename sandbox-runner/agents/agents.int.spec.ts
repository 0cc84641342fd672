import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Driver } from '../drivers/driver.js';
import { ProcessDriver, whyNoProcessSandboxes } from '../drivers/process.js';
import { WasmDriver } from '../drivers/wasm.js';
import { gameNamed, gameNames } from '../games/index.js';
import { limitsFrom } from '../limits.js';
import { root } from '../paths.js';
import { type MatchRecord, playMatch } from '../referee.js';
import { replay } from '../replay.js';
import { houseAgentNamed, houseAgentSource, houseAgents } from './index.js';

const driver = new WasmDriver();
let python: Driver | undefined;
const limits = limitsFrom();
const inJavaScript = houseAgents.filter((agent) => agent.runtime === 'javascript');
const inPython = houseAgents.filter((agent) => agent.runtime === 'python');

async function play(game: string, names: readonly string[], seed: string): Promise<MatchRecord> {
  const seats = await Promise.all(
    names.map(async (name, seat) => {
      const own = houseAgentNamed(name).runtime === 'python' ? python! : driver;
      return own.load(await houseAgentSource(name), { seed, seat, limits });
    }),
  );
  try {
    return await playMatch({ game: gameNamed(game), seed, seats, limits, driver: driver.name, agents: names });
  } finally {
    for (const seat of seats) seat.dispose();
  }
}

/** The first agent's wins, a draw for half, over matches with fixed seeds, sitting first and second in turn. */
async function points(game: string, one: string, other: string, matches: number): Promise<number> {
  let sum = 0;
  for (let index = 0; index < matches; index += 1) {
    const seat = index % 2;
    const record = await play(game, seat === 0 ? [one, other] : [other, one], `ladder-${index}`);
    expect(record.outcome.seatAtFault).toBeNull();
    sum += record.outcome.winner === null ? 0.5 : record.outcome.winner === seat ? 1 : 0;
  }
  return sum;
}

function faultless(record: MatchRecord): void {
  expect(record.outcome).toMatchObject({ seatAtFault: null, detail: '' });
  expect(Math.max(...record.turns.map((turn) => turn.fuel))).toBeLessThan(limits.turnFuel);
  expect(replay(record).agrees).toBe(true);
}

describe('house agents', () => {
  it('are all listed, and pass the check at submission', async () => {
    const files = readdirSync(join(root, 'sandbox-runner/agents')).filter((file) => /\.(js|py)$/.test(file));
    expect(files.sort()).toEqual(houseAgents.map((agent) => basename(agent.file)).sort());
    for (const { name } of inJavaScript) {
      expect(await driver.check(await houseAgentSource(name), limits)).toEqual({ ok: true });
    }
    await expect(houseAgentSource('nobody')).rejects.toMatchObject({ code: 'SANDBOX.UNKNOWN_AGENT' });
  });

  it.each(gameNames)('never fault at %s, whoever they meet, and stay within a turn without the bank', async (game) => {
    const players = inJavaScript.filter((agent) => agent.games.includes(game)).map((agent) => agent.name);
    expect(players.length).toBeGreaterThanOrEqual(4);
    for (const [index, one] of players.entries()) {
      for (const [offset, other] of players.slice(index).entries()) {
        faultless(await play(game, offset % 2 === 0 ? [one, other] : [other, one], `${one} ${other}`));
      }
    }
  });

  it('play with as many seats as there are', async () => {
    const players = inJavaScript.filter((agent) => agent.games.includes('prisoners')).map((agent) => agent.name);
    for (let seats = 3; seats <= 8; seats += 1) {
      const names = Array.from({ length: seats }, (_, seat) => players[seat % players.length] ?? '');
      const record = await play('prisoners', names, `${seats} seats`);
      faultless(record);
      expect(record.outcome.scores.length).toBe(seats);
    }
  });

  it.each([
    ['tic-tac-toe', 'tactician', 'random', 20],
    ['tic-tac-toe', 'tactician', 'first', 20],
    ['tic-tac-toe', 'minimax', 'random', 20],
    ['connect-four', 'centre', 'random', 20],
    ['connect-four', 'tactician', 'centre', 20],
    ['connect-four', 'minimax', 'tactician', 20],
    ['connect-four', 'searcher', 'minimax', 20],
    ['connect-four', 'searcher', 'tactician', 20],
    ['leduc-holdem', 'greedy', 'random', 20],
    ['chess', 'greedy', 'random', 4],
    ['chess', 'alphabeta', 'greedy', 4],
    ['prisoners', 'greedy', 'random', 20],
  ])('have a ladder: at %s, %s beats %s', async (game, stronger, weaker, matches) => {
    expect(await points(game, stronger, weaker, matches)).toBeGreaterThanOrEqual(0.7 * matches);
  });

  it.each(['random', 'first', 'greedy'])(
    'equilibrium takes the chips of %s, over the same cards from both seats',
    async (other) => {
      let share = 0;
      for (let index = 0; index < 16; index += 1) {
        const seat = index % 2;
        const record = await play('leduc-holdem', [other, other].with(seat, 'equilibrium'), `cards-${index - seat}`);
        share += (record.outcome.scores[seat] ?? 0) / 16;
      }
      expect(share).toBeGreaterThan(0.55);
    },
  );

  it('earn more by answering trust with trust than by greed, once there are three of them', async () => {
    for (let seat = 0; seat < 3; seat += 1) {
      const names = ['reciprocator', 'reciprocator', 'reciprocator'].with(seat, 'greedy');
      const { outcome } = await play('prisoners', names, `trust-${seat}`);
      expect(outcome.scores[seat]).toBe(Math.min(...outcome.scores));
    }
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

const why = whyNoProcessSandboxes();
describe.skipIf(why !== undefined)(`house agents in Python${why ? ` (${why})` : ''}`, () => {
  beforeAll(async () => {
    python = await ProcessDriver.open('python');
  });
  afterAll(() => python?.close());

  it.each(gameNames)('are there for %s, and never fault, whoever they meet', async (game) => {
    const players = inPython.filter((agent) => agent.games.includes(game)).map((agent) => agent.name);
    expect(players.length).toBeGreaterThanOrEqual(2);
    for (const one of players) {
      for (const [index, other] of ['random', 'greedy-py'].entries()) {
        const record = await play(game, index % 2 === 0 ? [one, other] : [other, one], `${one} ${other}`);
        expect(record.outcome).toMatchObject({ seatAtFault: null, detail: '' });
        expect(replay(record).agrees).toBe(true);
      }
    }
  });

  it.each([
    ['tic-tac-toe', 'search-py', 'random', 10],
    ['tic-tac-toe', 'greedy-py', 'random-py', 10],
    ['connect-four', 'greedy-py', 'random', 10],
    ['connect-four', 'search-py', 'random-py', 10],
    ['leduc-holdem', 'greedy-py', 'random', 20],
    ['prisoners', 'greedy-py', 'random-py', 4],
  ])('have a ladder: at %s, %s beats %s', async (game, stronger, weaker, matches) => {
    expect(await points(game, stronger, weaker, matches)).toBeGreaterThanOrEqual(0.7 * matches);
  });

  it('search never loses at tic-tac-toe', async () => {
    for (const [index, other] of ['tactician', 'minimax', 'greedy-py', 'random'].entries()) {
      const seat = index % 2;
      const record = await play('tic-tac-toe', [other, other].with(seat, 'search-py'), `perfect-${index}`);
      expect(record.outcome.scores[seat]).toBeGreaterThanOrEqual(0.5);
    }
  });
});
