import type {
  chess,
  connectFour,
  Game,
  leducHoldem,
  Observation,
  prisoners,
  ticTacToe,
} from '../../sandbox-runner/games/index.js';

/** What a game's own file says that its agents see, with its name and its actions told exactly. */
type ObservationOf<Name extends string, Rules> =
  Rules extends Game<infer _State, infer Action, infer Saw extends Observation>
    ? Omit<Saw, 'game' | 'legal'> & {
        readonly game: Name;
        /** Every action that may be returned. */
        readonly legal: readonly Action[];
      }
    : never;

/** What an agent sees on its turn, by game. */
export interface Observations {
  'tic-tac-toe': ObservationOf<'tic-tac-toe', typeof ticTacToe>;
  'connect-four': ObservationOf<'connect-four', typeof connectFour>;
  'leduc-holdem': ObservationOf<'leduc-holdem', typeof leducHoldem>;
  chess: ObservationOf<'chess', typeof chess>;
  prisoners: ObservationOf<'prisoners', typeof prisoners>;
}

export type GameName = keyof Observations;

/** What an agent returns, by game: a cell, a column, a word, a move in UCI, or a choice for each opponent. */
export type Actions = { [Name in GameName]: Observations[Name]['legal'][number] };

export type Mark = Observations['tic-tac-toe']['board'][number];
export type Choice = Actions['prisoners'][number];
export type LeducMove = Actions['leduc-holdem'];
export type LeducBoard = Observations['leduc-holdem']['board'];
