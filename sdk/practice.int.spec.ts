import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { chance } from '../sandbox-runner/games/chance.js';
import { type Action, gameNamed, gameNames } from '../sandbox-runner/games/index.js';
import type { LeducObservation } from '../sandbox-runner/games/leduc-holdem.js';
import { pythonPath, pythonWithSdk, sdkFolder, whyNoPython } from './python/python.contract.js';
import {
  type Actions,
  Decision,
  type GameName,
  type Observations,
  type Practised,
  practise,
} from './typescript/index.js';

/** Every game the SDKs know; a name too many or too few does not compile. */
const games = Object.keys({
  'tic-tac-toe': true,
  'connect-four': true,
  'leduc-holdem': true,
  chess: true,
  prisoners: true,
} satisfies Record<GameName, true>) as GameName[];

/** A match by the arena's own rules: what was seen before every move, and how it ended. */
function playout(
  name: GameName,
  seed: string,
  seats: number,
  choose: (legal: readonly Action[], turn: number) => Action,
) {
  const game = gameNamed(name);
  let state = game.setup(seed, seats);
  const steps: { seat: number; seen: unknown; action: Action }[] = [];
  for (let turn = 0; !game.outcome(state); turn++) {
    const [seat, action] = [game.toMove(state), choose(game.legal(state), turn)];
    steps.push({ seat, seen: game.observe(state, seat), action });
    state = game.apply(state, action);
  }
  return { game: name, seed, seats, steps, outcome: game.outcome(state) };
}

const atRandom = (name: GameName, seed: string, seats: number) => {
  const { below } = chance('spec', seed);
  return playout(name, seed, seats, (legal) => legal[below(legal.length)] as Action);
};

/** Matches of chess that go where chance seldom does: each ends by another rule. */
const scripted = Object.entries({
  checkmate: 'f2f3 e7e5 g2g4 d8h4',
  threefold_repetition: 'e2e4 a7a6 e4e5 d7d5 e5d6 g8f6 d6c7 f6g8 c7b8q a8b8 g1f3 b8a8 f3g1 a8b8 g1f3 b8a8 f3g1 a8b8',
  stalemate: 'e2e3 a7a5 d1h5 a8a6 h5a5 h7h5 h2h4 a6h6 a5c7 f7f6 c7d7 e8f7 d7b7 d8d3 b7b8 d3h7 b8c8 f7g6 c8e6',
}).map(([reason, moves]) => {
  const played = playout('chess', 'seed', 2, (_legal, turn) => moves.split(' ')[turn] ?? 'none');
  expect(played.outcome?.reason).toBe(reason);
  return played;
});

const playouts = [
  ...scripted,
  // Chess takes long, and each match of it shows a lot.
  ...['one', 'two'].map((seed) => atRandom('chess', seed, 2)),
  ...games
    .filter((name) => name !== 'chess')
    .flatMap((name) =>
      Array.from({ length: 20 }, (_, i) => atRandom(name, `${i}`, name === 'prisoners' ? 2 + (i % 3) : 2)),
    ),
];

const last = ({ legal }: { legal: readonly unknown[] }) => legal.at(-1) as never;

function python(script: string, input: unknown): unknown {
  const { stdout, stderr } = spawnSync(pythonWithSdk, ['-c', script], {
    input: JSON.stringify(input),
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    env: { ...process.env, ...pythonPath },
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

describe('practising at home', () => {
  it('has every game of the arena', () => {
    expect(games).toEqual(gameNames);
  });

  it.each(games)('plays a whole match of %s, the same for the same seed', async (game) => {
    const once = await practise({ game, act: last, seed: 7, seat: 1 });
    expect(once).toEqual(await practise({ game, act: last, seed: 7, seat: 1 }));
    expect(once.turns).toBeGreaterThan(4);
    expect(['illegal_move', 'timeout']).not.toContain(once.reason);
  });

  it('judges as the referee does', async () => {
    const first = ({ legal }: { legal: readonly number[] }) => new Decision(legal[0] ?? 0, { reasoning: 'first' });
    const refused = { reason: 'illegal_move', won: false, score: 0, turns: 0 };
    expect(await practise({ game: 'tic-tac-toe', act: () => 9 })).toMatchObject(refused);
    const cheat = { game: 'tic-tac-toe', act: first, opponent: () => 0 } as const;
    expect(await practise(cheat)).toMatchObject({ reason: 'illegal_move', won: true, score: 1 });
    expect(await practise({ game: 'connect-four', act: first, opponent: last })).toMatchObject({ won: true });
    const short = practise({ game: 'prisoners', seats: 3, act: () => ['C'] });
    expect(await short).toMatchObject({ ...refused, winner: null });
    await expect(practise({ game: 'chess', seats: 3, act: last })).rejects.toMatchObject({
      code: 'SANDBOX.WRONG_SEATS',
    });
  });
});

describe.skipIf(whyNoPython !== undefined)(`practising in Python${whyNoPython ? ` (${whyNoPython})` : ''}`, () => {
  it('goes by the rules of the arena, in every game', () => {
    const script = `
import json, sys
from agon.practice import RULES
assert list(RULES) == ${JSON.stringify(gameNames)}, list(RULES)
for playout in json.load(sys.stdin):
    state = RULES[playout["game"]](playout["seed"], playout["seats"])
    for step in playout["steps"]:
        seat = state.to_move()
        assert seat == step["seat"] and state.outcome() is None, playout["game"]
        assert state.observe(seat) == step["seen"], (state.observe(seat), step["seen"])
        state.apply(step["action"])
    assert state.outcome()._asdict() == playout["outcome"], (state.outcome(), playout["outcome"])
    assert state.legal() == [], playout["game"]
print(json.dumps("agreed"))
`;
    expect(python(script, playouts)).toBe('agreed');
  });

  it('gives the same matches as in TypeScript', async () => {
    const script = `
import json, sys
from agon import practise
def told(game):
    done = practise(lambda seen, turn: seen["legal"][-1], game=game, seat=1, seed=7)
    return {"winner": done.winner, "score": done.score, "reason": done.reason, "won": done.won, "turns": done.turns}
refused = practise(lambda seen, turn: True)
assert (refused.reason, refused.score, refused.turns) == ("illegal_move", 0, 0), refused
print(json.dumps([told(game) for game in json.load(sys.stdin)]))
`;
    const ours: Practised[] = [];
    for (const game of games) ours.push(await practise({ game, act: last, seed: 7, seat: 1 }));
    expect(python(script, games)).toEqual(ours);
  });
});

describe('what agents see', () => {
  it('is typed in TypeScript by the games themselves', () => {
    expectTypeOf<Observations['chess']['game']>().toEqualTypeOf<'chess'>();
    expectTypeOf<Observations['chess']['legal']>().toEqualTypeOf<readonly string[]>();
    expectTypeOf<Observations['leduc-holdem']['board']>().toEqualTypeOf<LeducObservation['board']>();
    expectTypeOf<Actions['leduc-holdem']>().toEqualTypeOf<'call' | 'check' | 'fold' | 'raise'>();
    expectTypeOf<Actions['prisoners']>().toEqualTypeOf<('C' | 'D')[]>();
    expectTypeOf<Actions['tic-tac-toe' | 'connect-four']>().toEqualTypeOf<number>();
  });

  it.skipIf(whyNoPython !== undefined)('has those types in Python, no key and no word more or less', () => {
    const script = readFileSync(join(sdkFolder, 'tests', 'conform.py'), 'utf8');
    expect(python(script, playouts)).toEqual([]);
  });

  it.skipIf(whyNoPython !== undefined)('is what type checkers hold an agent in Python to', () => {
    const file = join(sdkFolder, 'tests', 'typed_agents.py');
    const wrong = readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, i) => (line.endsWith('# wrong') ? [i + 1] : []));
    const flags = ['--strict', '--disable-error-code', 'import-untyped', '--no-error-summary', '--cache-dir=/dev/null'];
    const { stdout } = spawnSync(pythonWithSdk, ['-m', 'mypy', ...flags, 'agon', file], {
      cwd: sdkFolder,
      encoding: 'utf8',
    });
    const errors = stdout.split('\n').filter((line) => line.includes(': error: '));
    expect(errors.filter((line) => !line.includes('typed_agents.py:'))).toEqual([]);
    const lines = errors.map((line) => Number(line.split(':')[1]));
    expect([...new Set(lines)].sort((a, b) => a - b)).toEqual(wrong);
  });
});
