import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { ChessObservation } from '../sandbox-runner/games/chess.js';
import type { ConnectFourObservation } from '../sandbox-runner/games/connect-four.js';
import type { LeducObservation } from '../sandbox-runner/games/leduc-holdem.js';
import type { PrisonersObservation } from '../sandbox-runner/games/prisoners.js';
import type { TicTacToeObservation } from '../sandbox-runner/games/tic-tac-toe.js';
import { gameNamed } from '../sandbox-runner/index.js';
import { pythonPath, pythonWithSdk, whyNoPython } from './python/python.contract.js';
import { Decision, type Observations, type PracticeGame, practise } from './typescript/index.js';
import { observeOf, practiceRules } from './typescript/practice.js';

const games: readonly PracticeGame[] = ['tic-tac-toe', 'connect-four'];

/** Random play by the arena's own rules: what was seen before every move, and how it ended. */
function playout(name: PracticeGame, choices: readonly number[]) {
  const game = gameNamed(name);
  let state = game.setup('seed', 2);
  const steps: { seen: unknown; action: number }[] = [];
  for (let i = 0; !game.outcome(state); i++) {
    const legal = game.legal(state);
    const action = legal[(choices[i] ?? 0) % legal.length] as number;
    steps.push({ seen: game.observe(state, game.toMove(state)), action });
    state = game.apply(state, action);
  }
  const { winner, reason } = game.outcome(state) ?? {};
  return { game: name, steps, winner, reason };
}

const choices = fc.array(fc.nat({ max: 41 }), { minLength: 42, maxLength: 42 });

describe('practising at home', () => {
  it.each(games)('has the rules of %s that the arena has', (name) => {
    fc.assert(
      fc.property(choices, (drawn) => {
        const { steps, winner, reason } = playout(name, drawn);
        let state = practiceRules[name]();
        for (const [i, { seen, action }] of steps.entries()) {
          expect(observeOf(name, state, i % 2)).toEqual(seen);
          state = state.apply(action);
        }
        expect(state.outcome()).toEqual({ winner, reason });
      }),
      { numRuns: 50 },
    );
  });

  it('plays a whole match, the same for the same seed', async () => {
    for (const game of games) {
      const act = ({ legal }: { legal: readonly number[] }) => legal[0] ?? 0;
      const once = await practise({ game, act, seed: 7, seat: 1 });
      expect(once).toEqual(await practise({ game, act, seed: 7, seat: 1 }));
      expect(['line', 'full_board']).toContain(once.reason);
    }
  });

  it('judges as the referee does', async () => {
    expect(await practise({ game: 'tic-tac-toe', act: () => 9 })).toMatchObject({ reason: 'illegal_move', won: false });
    const opponent = ({ legal }: { legal: readonly number[] }) => legal.at(-1) ?? 0;
    const act = ({ legal }: { legal: readonly number[] }) => new Decision(legal[0] ?? 0, { reasoning: 'first' });
    expect(await practise({ game: 'connect-four', act, opponent })).toMatchObject({ won: true, reason: 'line' });
  });

  it.skipIf(whyNoPython !== undefined)(`in Python, too${whyNoPython ? ` (${whyNoPython})` : ''}`, () => {
    const playouts = fc.sample(choices, 40).flatMap((drawn) => games.map((name) => playout(name, drawn)));
    const script = `
import json, sys
from agon import practise
from agon.practice import RULES
for playout in json.load(sys.stdin):
    state = RULES[playout["game"]]()
    for at, step in enumerate(playout["steps"]):
        assert state.observe(at % 2) == step["seen"], (state.observe(at % 2), step["seen"])
        state.apply(step["action"])
    assert state.outcome() == (playout["winner"], playout["reason"]), state.outcome()
assert practise(lambda observation, turn: 9).reason == "illegal_move"
assert practise(lambda o, turn: o["legal"][0], game="connect-four", opponent=lambda o: o["legal"][-1]).won
print("agreed")
`;
    const input = JSON.stringify(playouts);
    const { stdout, stderr } = spawnSync(pythonWithSdk, ['-c', script], {
      input,
      encoding: 'utf8',
      env: { ...process.env, ...pythonPath },
    });
    expect({ stdout: stdout.trim(), stderr }).toEqual({ stdout: 'agreed', stderr: '' });
  });
});

describe('observations', () => {
  it('are typed as the games make them', () => {
    expectTypeOf<TicTacToeObservation['board']>().toExtend<Observations['tic-tac-toe']['board']>();
    expectTypeOf<ConnectFourObservation['board']>().toExtend<Observations['connect-four']['board']>();
    expectTypeOf<LeducObservation['board']>().toExtend<Observations['leduc-holdem']['board']>();
    expectTypeOf<Omit<ChessObservation, 'legal'>>().toExtend<Omit<Observations['chess'], 'legal'>>();
    expectTypeOf<Omit<PrisonersObservation, 'legal'>>().toExtend<Omit<Observations['prisoners'], 'legal'>>();
  });
});
