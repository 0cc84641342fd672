/** What an agent sees on its turn, by game. `legal` lists every action that may be returned. */
export interface Observations {
  'tic-tac-toe': Seen<'tic-tac-toe', readonly Mark[], number> & { readonly mark: 'X' | 'O' };
  'connect-four': Seen<'connect-four', readonly (readonly Mark[])[], number> & { readonly mark: 'X' | 'O' };
  'leduc-holdem': Seen<'leduc-holdem', LeducBoard, LeducMove>;
  chess: Seen<'chess', string, string> & ChessSeen;
  prisoners: Seen<'prisoners', readonly { readonly mine: Choice[]; readonly theirs: Choice[] }[], Choice[]> & {
    readonly round: number;
    /** The seats of the opponents: the n-th choice of an action is for the n-th of them. */
    readonly opponents: readonly number[];
    readonly points: readonly number[];
  };
}

export type GameName = keyof Observations;

/** What an agent returns, by game: a cell, a column, a word, a move in UCI, or a choice for each opponent. */
export interface Actions {
  'tic-tac-toe': number;
  'connect-four': number;
  'leduc-holdem': LeducMove;
  chess: string;
  prisoners: Choice[];
}

interface Seen<Game extends string, Board, Action> {
  readonly game: Game | string;
  readonly version: number;
  /** Counts from 1 over all seats. */
  readonly turn: number;
  readonly seat: number;
  readonly board: Board;
  readonly legal: readonly Action[];
}

export type Mark = '' | 'X' | 'O';
export type Choice = 'C' | 'D';
export type LeducMove = 'call' | 'check' | 'fold' | 'raise';
export type LeducCard = `${'J' | 'Q' | 'K'}${'s' | 'h'}`;
type LeducMoves = readonly [readonly LeducMove[], readonly LeducMove[]];

export interface LeducBoard {
  readonly hand: number;
  readonly hands: number;
  readonly round: 1 | 2;
  readonly card: LeducCard;
  readonly public: LeducCard | null;
  readonly moves: LeducMoves;
  readonly first: number;
  readonly paid: readonly [number, number];
  readonly stacks: readonly [number, number];
  readonly previous: {
    readonly cards: readonly (LeducCard | null)[];
    readonly public: LeducCard | null;
    readonly moves: LeducMoves;
    readonly first: number;
    readonly won: readonly [number, number];
  } | null;
}

interface ChessSeen {
  readonly history: readonly string[];
  readonly colour: 'white' | 'black';
}
