import type { Actions, Mark, Observations } from './games.js';
import { Decision, type Turn } from './player.js';

/** Games that can be practised without an arena. */
export type PracticeGame = 'tic-tac-toe' | 'connect-four';

export interface PracticeOptions<Game extends PracticeGame> {
  readonly game: Game;
  act(
    observation: Observations[Game],
    turn: Turn,
  ): Actions[Game] | Decision<Actions[Game]> | Promise<Actions[Game] | Decision<Actions[Game]>>;
  /** Plays at random when left out. */
  opponent?(observation: Observations[Game]): Actions[Game];
  readonly seat?: 0 | 1;
  /** The same seed draws the same moves for the opponent. */
  readonly seed?: number;
}

export interface Practised {
  readonly winner: number | null;
  readonly reason: string;
  readonly won: boolean;
  readonly turns: number;
}

/** The rules of a game of two, as the arena has them. `board` is as an agent sees it. */
interface Rules {
  readonly board: readonly Mark[] | readonly (readonly Mark[])[];
  readonly played: number;
  legal(): number[];
  apply(action: number): Rules;
  outcome(): { readonly winner: number | null; readonly reason: string } | undefined;
}

const marks = ['X', 'O'] as const;
const LINES = [
  [0, 1, 2],
  [3, 4, 5],
  [6, 7, 8],
  [0, 3, 6],
  [1, 4, 7],
  [2, 5, 8],
  [0, 4, 8],
  [2, 4, 6],
] as const;

function ticTacToe(board: readonly Mark[] = Array<Mark>(9).fill(''), played = 0): Rules {
  const outcome = () => {
    const line = LINES.find(([a, b, c]) => board[a] && board[a] === board[b] && board[a] === board[c]);
    if (line) return { winner: marks.indexOf(board[line[0]] as 'X' | 'O'), reason: 'line' };
    return played === 9 ? { winner: null, reason: 'full_board' } : undefined;
  };
  return {
    ...{ board, played, outcome },
    legal: () => (outcome() ? [] : board.flatMap((mark, cell) => (mark === '' ? [cell] : []))),
    apply: (cell) => ticTacToe(board.with(cell, marks[played % 2] ?? ''), played + 1),
  };
}

const emptyRows = () => Array.from({ length: 6 }, () => Array<Mark>(7).fill(''));

function connectFour(board: readonly (readonly Mark[])[] = emptyRows(), played = 0): Rules {
  const at = (row: number, column: number) => board[row]?.[column] ?? '';
  const four = (row: number, column: number, down: number, right: number) =>
    at(row, column) !== '' && [1, 2, 3].every((i) => at(row + i * down, column + i * right) === at(row, column));
  const outcome = () => {
    for (let row = 0; row < 6; row++) {
      for (let column = 0; column < 7; column++) {
        const ways = [
          four(row, column, 0, 1),
          four(row, column, 1, 0),
          four(row, column, 1, 1),
          four(row, column, 1, -1),
        ];
        if (ways.includes(true)) return { winner: marks.indexOf(at(row, column) as 'X' | 'O'), reason: 'line' };
      }
    }
    return played === 42 ? { winner: null, reason: 'full_board' } : undefined;
  };
  return {
    ...{ board, played, outcome },
    legal: () => (outcome() ? [] : [0, 1, 2, 3, 4, 5, 6].filter((column) => at(0, column) === '')),
    apply: (column) => {
      const row = board.findLastIndex((cells) => cells[column] === '');
      const changed = board.map((cells, i) => (i === row ? cells.with(column, marks[played % 2] ?? '') : cells));
      return connectFour(changed, played + 1);
    },
  };
}

/** @example practiceRules['tic-tac-toe']().legal() // 0 to 8 */
export const practiceRules: Readonly<Record<PracticeGame, () => Rules>> = {
  'tic-tac-toe': () => ticTacToe(),
  'connect-four': () => connectFour(),
};

export const observeOf = (game: PracticeGame, state: Rules, seat: number) => {
  const { board, played } = state;
  return { game, version: 1, turn: played + 1, seat, mark: marks[seat], board, legal: state.legal() };
};

const TIME = { turnMs: 2_000, bankMs: 60_000 };

/** A small generator, so that the same seed gives the same opponent everywhere. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Plays a whole match offline, by the arena's rules and clock.
 *
 * @example (await practise({ game: 'tic-tac-toe', act: ({ legal }) => legal[0] ?? 0 })).won
 */
export async function practise<Game extends PracticeGame>(options: PracticeOptions<Game>): Promise<Practised> {
  const { game, seat = 0, seed = 0 } = options;
  const draw = random(seed);
  const atRandom = ({ legal }: Observations[Game]) => legal[Math.floor(draw() * legal.length)] as Actions[Game];
  const { opponent = atRandom } = options;
  let bankMs = TIME.bankMs;
  let state = practiceRules[game]();
  const end = (winner: number | null, reason: string): Practised => {
    return { winner, reason, won: winner === seat, turns: state.played };
  };
  for (let ended = state.outcome(); ; ended = state.outcome()) {
    if (ended) return end(ended.winner, ended.reason);
    const onMove = state.played % 2;
    const observation = structuredClone(observeOf(game, state, onMove)) as unknown as Observations[Game];
    if (onMove !== seat) {
      state = state.apply(opponent(observation) as number);
      continue;
    }
    const startedMs = performance.now();
    const turn = { matchId: 'practice', turn: state.played + 1, seat, deadline: '' };
    const acted = await options.act(observation, { ...turn, turnLeftMs: TIME.turnMs, bankLeftMs: bankMs });
    bankMs -= Math.max(0, performance.now() - startedMs - TIME.turnMs);
    const action = acted instanceof Decision ? acted.action : acted;
    if (bankMs < 0) return end(1 - seat, 'timeout');
    if (!state.legal().includes(action as number)) return end(1 - seat, 'illegal_move');
    state = state.apply(action as number);
  }
}
