import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { faultRules } from '../drivers/driver.js';
import { chance } from './chance.js';
import { chessFrom } from './chess.js';
import type { Cell } from './game.js';
import {
  type Action,
  assertSeats,
  chess,
  connectFour,
  type Game,
  gameNamed,
  gameNames,
  isLegal,
  leducHoldem,
  prisoners,
  ticTacToe,
} from './index.js';
import type { Card, Leduc, LeducMove } from './leduc-holdem.js';
import type { Choices, Prisoners } from './prisoners.js';

/** One random playout: the position before each turn and the last one, and what was played. */
interface Playout {
  readonly seats: number;
  readonly states: readonly unknown[];
  readonly actions: readonly Action[];
}

function playOut(game: Game, seed: string, seats: number, choose: (count: number) => number): Playout {
  const states = [game.setup(seed, seats)];
  const actions: Action[] = [];
  for (let state = states[0]; game.outcome(state) === undefined; ) {
    const legal = game.legal(state);
    expect(legal.length).toBeGreaterThan(0);
    const action = legal[choose(legal.length)]!;
    state = game.apply(state, action);
    actions.push(action);
    states.push(state);
    expect(actions.length).toBeLessThanOrEqual(game.maxTurns);
  }
  return { seats, states, actions };
}

const playouts = (game: Game): fc.Arbitrary<Playout> =>
  fc
    .record({ seed: fc.string({ minLength: 1, maxLength: 20 }), seats: fc.integer(game.seats), picks: fc.nat() })
    .map(({ seed, seats, picks }) => playOut(game, seed, seats, chance('picks', `${picks}`).below));

/** Chess positions take milliseconds each, because the library lists moves with everything about them. */
const runsOf = (game: Game): number => (game.name === 'chess' ? 3 : 60);

const isSmall = (action: Action): boolean => JSON.stringify(action).length <= 64;

describe.each(gameNames)('%s', (name) => {
  const game = gameNamed(name);
  const numRuns = runsOf(game);

  it('ends every playout within maxTurns, with scores that sum to 1 and a winner who has the best of them', () => {
    fc.assert(
      fc.property(playouts(game), ({ seats, states }) => {
        for (const state of states.slice(0, -1)) expect(game.outcome(state)).toBeUndefined();
        const last = states.at(-1);
        expect(game.legal(last)).toEqual([]);
        const outcome = game.outcome(last)!;
        expect(outcome.scores.length).toBe(seats);
        // A report of a match has room for this many turns.
        expect(game.maxTurns).toBeLessThanOrEqual(500);
        for (const score of outcome.scores) expect(score >= 0 && score <= 1).toBe(true);
        expect(Math.abs(outcome.scores.reduce((sum, score) => sum + score, 0) - 1)).toBeLessThan(1e-9);
        const best = Math.max(...outcome.scores);
        const leaders = outcome.scores.flatMap((score, seat) => (score === best ? [seat] : []));
        expect(outcome.winner).toBe(leaders.length === 1 ? leaders[0] : null);
        expect(outcome.reason).toMatch(/^[a-z_]{1,40}$/);
        expect([...faultRules, 'illegal_move', 'timeout']).not.toContain(outcome.reason);
      }),
      { numRuns },
    );
  });

  it('shows the seat on the move plain data, its legal actions among it, and numbers the turns', () => {
    fc.assert(
      fc.property(playouts(game), ({ seats, states, actions }) => {
        actions.forEach((action, index) => {
          const state = states[index];
          const seat = game.toMove(state);
          expect(seat >= 0 && seat < seats).toBe(true);
          const view = game.observe(state, seat);
          expect(view).toMatchObject({ game: name, version: game.version, turn: index + 1, seat });
          const sent = JSON.stringify(view);
          expect(JSON.stringify(JSON.parse(sent))).toBe(sent);
          expect(view.legal).toEqual(game.legal(state));
          expect(view.legal.every(isSmall)).toBe(true);
          expect(isLegal(game, state, action)).toBe(true);
        });
      }),
      { numRuns: Math.ceil(numRuns / 3) },
    );
  });

  it('plays the same game from the same seed, and never changes a position in place', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.integer(game.seats), fc.nat(), (seed, seats, picks) => {
        const first = playOut(game, seed, seats, chance('picks', `${picks}`).below);
        const texts = first.states.map((state) => JSON.stringify(state));
        let state = game.setup(seed, seats);
        first.actions.forEach((action, index) => {
          expect(JSON.stringify(state)).toBe(texts[index]);
          state = game.apply(freeze(state), JSON.parse(JSON.stringify(action)));
        });
        expect(JSON.stringify(state)).toBe(texts.at(-1));
      }),
      { numRuns: Math.ceil(numRuns / 3) },
    );
  });

  it('takes every legal action through parse unchanged, lists none twice, and refuses junk', () => {
    fc.assert(
      fc.property(playouts(game), ({ states }) => {
        const legal = states.flatMap((state) => game.legal(state).slice(0, 8));
        for (const action of legal) expect(game.parse(JSON.parse(JSON.stringify(action)))).toEqual(action);
        const first = game.legal(states[0]).map((action) => JSON.stringify(action));
        expect(new Set(first).size).toBe(first.length);
      }),
      { numRuns: Math.ceil(numRuns / 12) },
    );
    const junk = [-1, -0, 1.5, Number.NaN, 1e9, '', '1', 'e2', 'CALL', null, undefined, [], [1], ['C', 'X'], true, {}];
    for (const raw of [...junk, { valueOf: () => 1 }, Array<string>(8).fill('C'), 'e2e4 ', 'e9e4', 'e7e8k', ['call']]) {
      expect(game.parse(raw)).toBeUndefined();
    }
    fc.assert(
      fc.property(fc.anything(), (raw) => {
        const action = game.parse(raw);
        if (action !== undefined) expect(isSmall(action)).toBe(true);
      }),
    );
  });

  it('throws when an action is applied that is not legal, or after the end', () => {
    const never = { 'tic-tac-toe': 99, 'connect-four': 99, 'leduc-holdem': 'call', chess: 'a1h8', prisoners: [] };
    const refusal = expect.objectContaining({ code: 'SANDBOX.ILLEGAL_ACTION' });
    const { states, actions } = playOut(game, 'seed', game.seats.max, () => 0);
    expect(() => game.apply(states[0], never[name as keyof typeof never])).toThrow(refusal);
    expect(isLegal(game, states[0], never[name as keyof typeof never])).toBe(false);
    expect(() => game.apply(states.at(-1), actions[0]!)).toThrow(refusal);
    expect(isLegal(game, states.at(-1), actions[0]!)).toBe(false);
  });

  it('draws every position as plain text and as a picture that needs nothing else', () => {
    const { states } = playOut(game, 'seed', game.seats.max, chance('picks', 'draw').below);
    for (const state of [...states.slice(0, 30), states.at(-1)]) {
      expect(game.render(state)).toMatch(/^[\x20-\x7e\n]+$/);
      const svg = game.svg(state);
      expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 \d+ \d+"[^>]*>.*<\/svg>$/);
      expect(svg).not.toMatch(/NaN|undefined|<script|href|url\(|<image|@import/);
      expect(unbalanced(svg)).toEqual([]);
    }
    expect(game.svg(states[0])).not.toBe(game.svg(states.at(-1)));
  });

  it('is played by as many agents as it says', () => {
    for (const seats of [game.seats.min, game.seats.max]) assertSeats(game, seats);
    for (const seats of [0, 1, game.seats.max + 1]) {
      expect(() => assertSeats(game, seats)).toThrow(expect.objectContaining({ code: 'SANDBOX.WRONG_SEATS' }));
    }
  });
});

/** All the way down, so that any change in place throws. */
function freeze<T>(value: T): T {
  if (value !== null && typeof value === 'object') Object.values(Object.freeze(value)).forEach(freeze);
  return value;
}

/** Elements that are not closed in the order in which they were opened. */
function unbalanced(svg: string): string[] {
  const open: string[] = [];
  for (const [, close, name, alone] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (close && open.at(-1) === name) open.pop();
    else if (!alone) open.push(`${close}${name}`);
  }
  return open;
}

/** Slow on purpose: looks at every straight line of a grid, and shares no code with the games. */
function bruteForceWinner(grid: readonly (readonly Cell[])[], length: number): number | null {
  for (const [y, row] of grid.entries()) {
    for (const [x, mark] of row.entries()) {
      if (mark === '') continue;
      for (const [dx, dy] of [
        [0, 1],
        [1, 0],
        [1, 1],
        [1, -1],
      ] as const) {
        const cells = Array.from({ length }, (_, step) => grid[y + dy * step]?.[x + dx * step]);
        if (cells.every((cell) => cell === mark)) return mark === 'X' ? 0 : 1;
      }
    }
  }
  return null;
}

const gridOf = (name: string, board: unknown): Cell[][] => {
  if (name === connectFour.name) return board as Cell[][];
  const cells = board as Cell[];
  return [cells.slice(0, 3), cells.slice(3, 6), cells.slice(6, 9)];
};

describe.each([ticTacToe.name, connectFour.name])('%s, as a game of lines', (name) => {
  const game = gameNamed(name);

  it('agrees with a brute-force check about who has won', () => {
    fc.assert(
      fc.property(playouts(game), ({ states }) => {
        for (const state of states) {
          const board = gridOf(name, game.observe(state, 0).board);
          expect(game.outcome(state)?.winner ?? null).toBe(bruteForceWinner(board, name === 'connect-four' ? 4 : 3));
        }
      }),
      { numRuns: 150 },
    );
  });

  it('shows whose mark is where', () => {
    const text = game.render(game.apply(game.setup('seed', 2), 0));
    expect(text).toContain('X');
    expect(text).not.toContain('O');
  });
});

describe('leduc-holdem', () => {
  const start = leducHoldem.setup('seed', 2);
  const withDeal = (...deal: [Card, Card, Card]): Leduc => ({ ...start, deals: start.deals.with(0, deal) });
  const played = (state: Leduc, moves: string): Leduc =>
    moves.split(' ').reduce((each, move) => leducHoldem.apply(each, move as LeducMove), state);

  const payoffs: [what: string, deal: [Card, Card, Card], moves: string, won: number][] = [
    ['a fold to the first raise costs the ante', ['Ks', 'Js', 'Qs'], 'raise fold', 1],
    ['a fold to the second raise costs ante and raise', ['Ks', 'Js', 'Qs'], 'raise raise fold', -3],
    ['everybody checks, the king wins the ante', ['Ks', 'Js', 'Qs'], 'check check check check', 1],
    ['the lower card loses', ['Qs', 'Kh', 'Js'], 'check check check check', -1],
    ['a pair beats a king', ['Js', 'Ks', 'Jh'], 'check check raise call', 5],
    ['a pair of the second seat', ['Ks', 'Qs', 'Qh'], 'raise call raise call', -7],
    ['the same rank splits the pot', ['Ks', 'Kh', 'Js'], 'raise raise call raise raise call', 0],
    ['the dearest hand', ['Ks', 'Qs', 'Kh'], 'check raise raise call check raise raise call', 13],
    ['a fold in round two', ['Ks', 'Qs', 'Js'], 'raise call check raise fold', -3],
    ['a late fold keeps the last raise', ['Ks', 'Qs', 'Js'], 'raise raise call raise raise fold', -9],
  ];
  it.each(payoffs)('pays: %s', (_what, deal, moves, won) => {
    const state = played(withDeal(...deal), moves);
    expect(state.finished.at(-1)?.won).toEqual([won, 0 - won]);
    expect(state.stacks).toEqual([64 + won, 64 - won]);
  });

  it('offers what the rules offer', () => {
    const offers: [string, string[]][] = [
      ['check', ['check', 'raise']],
      ['raise', ['call', 'fold', 'raise']],
      ['raise raise', ['call', 'fold']],
      ['check raise raise', ['call', 'fold']],
      ['raise call', ['check', 'raise']],
      ['raise raise call raise raise', ['call', 'fold']],
    ];
    for (const [moves, offered] of offers) expect(leducHoldem.legal(played(start, moves))).toEqual(offered);
    expect(leducHoldem.legal(start)).toEqual(['check', 'raise']);
  });

  it('gives the first move of a hand to each seat in turn, in both rounds', () => {
    expect(leducHoldem.toMove(start)).toBe(0);
    expect(leducHoldem.toMove(played(start, 'check raise call'))).toBe(0);
    const second = played(start, 'raise fold');
    expect(leducHoldem.toMove(second)).toBe(1);
    expect(leducHoldem.toMove(played(second, 'check check'))).toBe(1);
  });

  it('deals six cards evenly, and none twice', () => {
    const seen = new Map<string, number>();
    for (let seed = 0; seed < 100; seed += 1) {
      for (const deal of leducHoldem.setup(`${seed}`, 2).deals) {
        expect(new Set(deal).size).toBe(3);
        for (const [place, card] of deal.entries()) {
          const key = `${place} ${card}`;
          seen.set(key, (seen.get(key) ?? 0) + 1);
        }
      }
    }
    expect(seen.size).toBe(18);
    // 4000 deals, each card in each place one time in six: 667 on average, and 24 either way is usual.
    for (const count of seen.values()) expect(Math.abs(count - 4000 / 6)).toBeLessThan(120);
  });

  it('shows a seat nothing that depends on a card it has not been shown', () => {
    const cards: Card[] = ['Js', 'Jh', 'Qs', 'Qh', 'Ks', 'Kh'];
    fc.assert(
      fc.property(playouts(leducHoldem as unknown as Game), fc.nat(), ({ states }, other) => {
        const draw = chance('other cards', `${other}`);
        for (const state of states.slice(0, -1) as Leduc[]) {
          const seat = leducHoldem.toMove(state) as 0 | 1;
          const now = state.finished.length;
          const deals = state.deals.map((deal, hand): [Card, Card, Card] => {
            const own = hand <= now ? deal[seat] : undefined;
            const finished = state.finished[hand];
            const shared = (hand === now ? state.hand.round === 1 : finished?.publicSeen) ? deal[2] : undefined;
            const theirs = finished?.shown ? deal[1 - seat] : undefined;
            const left = draw.shuffled(cards.filter((card) => ![own, shared, theirs].includes(card)));
            const [mine, yours] = [own ?? left.pop()!, theirs ?? left.pop()!];
            return [seat === 0 ? mine : yours, seat === 0 ? yours : mine, shared ?? left.pop()!];
          });
          expect(leducHoldem.observe({ ...state, deals }, seat)).toEqual(leducHoldem.observe(state, seat));
        }
      }),
      { numRuns: 25 },
    );
  });

  it('shows both cards after a showdown, and only its own after a fold', () => {
    const shown = leducHoldem.observe(played(withDeal('Ks', 'Js', 'Qs'), 'check check check check'), 0);
    expect(shown.board.previous).toMatchObject({ cards: ['Ks', 'Js'], public: 'Qs', won: [1, -1], first: 0 });
    const folded = played(withDeal('Ks', 'Js', 'Qs'), 'raise fold');
    expect(leducHoldem.observe(folded, 0).board.previous).toMatchObject({ cards: ['Ks', null], public: null });
    expect(leducHoldem.observe(folded, 1).board.previous).toMatchObject({ cards: [null, 'Js'], public: null });
  });

  it('ends once a seat could not pay for another hand, and scores by chips', () => {
    const state: Leduc = { ...withDeal('Ks', 'Js', 'Qs'), stacks: [115, 13] };
    expect(leducHoldem.outcome(state)).toBeUndefined();
    const ended = played(state, 'raise fold');
    expect(leducHoldem.outcome(ended)).toEqual({ winner: 0, scores: [116 / 128, 12 / 128], reason: 'chips' });
    expect(leducHoldem.legal(ended)).toEqual([]);
  });
});

describe('chess', () => {
  const perft = (depth: number, state = chess.setup('seed', 2)): number =>
    depth === 1
      ? chess.legal(state).length
      : chess.legal(state).reduce((sum, move) => sum + perft(depth - 1, chess.apply(state, move)), 0);
  const played = (moves: string, state = chess.setup('seed', 2)) =>
    moves.split(' ').reduce((each, move) => chess.apply(each, move), state);

  it.each([
    [1, 20],
    [2, 400],
    [3, 8902],
  ])('has as many positions at depth %i as everybody counts: %i', (depth, positions) => {
    expect(perft(depth)).toBe(positions);
  });

  it('castles, takes in passing and promotes', () => {
    expect(played('e2e4 e7e5 g1f3 g8f6 f1e2 f8e7 e1g1').fen).toContain('RNBQ1RK1');
    expect(played('e2e4 a7a6 e4e5 d7d5 e5d6').fen).toMatch(/^rnbqkbnr\/1pp1pppp\/p2P4\/8\//);
    const promoting = chessFrom('7k/P7/8/8/8/8/8/K7 w - - 0 1');
    expect(chess.legal(promoting)).toEqual(expect.arrayContaining(['a7a8b', 'a7a8n', 'a7a8q', 'a7a8r']));
    expect(played('a7a8q', promoting).fen).toMatch(/^Q6k/);
    expect(chess.legal(promoting)).not.toContain('a7a8');
  });

  const endings: [string, string, string, string, number | null][] = [
    ["the fool's mate", '', 'f2f3 e7e5 g2g4 d8h4', 'checkmate', 1],
    ["the scholar's mate", '', 'e2e4 e7e5 d1h5 b8c6 f1c4 g8f6 h5f7', 'checkmate', 0],
    ['a king without moves', '7k/8/6K1/8/8/8/8/5Q2 w - - 0 1', 'f1f7', 'stalemate', null],
    ['bare kings', '7k/8/6K1/8/8/8/8/5r2 w - - 0 1', 'g6h6 f1f6 h6g5 h8g8 g5f6', 'insufficient_material', null],
    ['the same position three times', '', 'g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8', 'threefold_repetition', null],
    ['fifty moves without progress', '7k/8/8/8/8/8/R7/K7 w - - 99 80', 'a2b2', 'fifty_moves', null],
    ['mate on the hundredth half move', '7k/R7/6K1/8/8/8/8/8 w - - 99 80', 'a7a8', 'checkmate', 0],
  ];
  it.each(endings)('ends by %s', (_what, fen, moves, reason, winner) => {
    const state = played(moves, fen ? chessFrom(fen) : chess.setup('seed', 2));
    expect(chess.outcome(state)).toMatchObject({ reason, winner });
    expect(chess.legal(state)).toEqual([]);
  });

  it('counts a position as another one when castling was possible before', () => {
    const state = played('e2e4 e7e5 g1f3 g8f6 h1g1 h8g8 g1h1 g8h8 h1g1 h8g8 g1h1 g8h8');
    expect(chess.outcome(state)).toBeUndefined();
    expect(chess.outcome(played('h1g1 h8g8', state))).toMatchObject({ reason: 'threefold_repetition' });
  });

  it('is a draw when it takes too long', () => {
    const state = { ...chess.setup('seed', 2), history: Array<string>(239).fill('g1f3') };
    expect(chess.outcome(played('e2e4', state))).toEqual({ winner: null, scores: [0.5, 0.5], reason: 'move_limit' });
  });
});

describe('prisoners', () => {
  const start = (seats: number) => prisoners.setup('seed', seats);
  const round = (state: Prisoners, ...choices: string[]): Prisoners =>
    choices.reduce((each, list) => prisoners.apply(each, [...list] as Choices), state);

  it.each([
    ['C', 'C', [3, 3]],
    ['C', 'D', [0, 5]],
    ['D', 'C', [5, 0]],
    ['D', 'D', [1, 1]],
  ])('pays %s against %s', (one, other, points) => {
    expect(round(start(2), one, other).points).toEqual(points);
  });

  it('plays every pair of seats: three seats, each with a choice for the two others', () => {
    // 0 trusts 1 and not 2; 1 trusts nobody; 2 trusts everybody.
    const state = round(start(3), 'CD', 'DD', 'CC');
    expect(state.points).toEqual([0 + 5, 5 + 5, 0 + 0]);
    expect(prisoners.observe(state, 1)).toMatchObject({
      round: 2,
      opponents: [0, 2],
      board: [{ mine: ['D', 'D'], theirs: ['C', 'C'] }],
      points: [5, 10, 0],
    });
  });

  it('has one list of choices for every way to treat the opponents', () => {
    for (let seats = 2; seats <= 8; seats += 1) {
      const legal = prisoners.legal(start(seats));
      expect(legal.length).toBe(2 ** (seats - 1));
      expect(legal.every((list) => list.length === seats - 1)).toBe(true);
    }
  });

  it('lasts as long as the seed says, between 20 and 40 rounds', () => {
    const lengths = Array.from({ length: 300 }, (_, seed) => prisoners.setup(`${seed}`, 2).rounds);
    expect(Math.min(...lengths)).toBe(20);
    expect(Math.max(...lengths)).toBe(40);
    expect(new Set(lengths).size).toBe(21);
  });

  it('shows nobody a pending choice, the number of rounds, or what goes on between others', () => {
    const turns = (seats: number, picks: number, rounds: number) => {
      const draw = chance('picks', `${picks}`);
      let state = start(seats);
      while (state.history.length < rounds) {
        const legal = prisoners.legal(state);
        state = prisoners.apply(state, legal[draw.below(legal.length)]!);
      }
      return state;
    };
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 8 }), fc.nat(), fc.nat(5), fc.nat(), (seats, picks, rounds, waiting) => {
        const state = turns(seats, picks, rounds);
        const pending = (choice: 'C' | 'D') =>
          Array.from({ length: waiting % seats }, () => Array<'C' | 'D'>(seats - 1).fill(choice));
        const one = { ...state, pending: pending('C') };
        const other = { ...state, pending: pending('D'), rounds: state.rounds + 1 };
        for (let seat = 0; seat < seats; seat += 1) {
          expect(prisoners.observe(one, seat)).toEqual(prisoners.observe(other, seat));
        }
        expect(prisoners.render(one)).toBe(prisoners.render({ ...one, pending: pending('D') }));
        expect(prisoners.svg(one)).toBe(prisoners.svg({ ...one, pending: pending('D') }));
      }),
      { numRuns: 60 },
    );
    const [trusting, hostile] = [round(start(3), 'CC', 'CC', 'CC'), round(start(3), 'CC', 'CD', 'CD')];
    expect(prisoners.observe(trusting, 0).board).toEqual(prisoners.observe(hostile, 0).board);
  });
});

describe('chance', () => {
  it('follows from game and seed alone', () => {
    const draws = (game: string, seed: string) => Array.from({ length: 20 }, chance(game, seed).below.bind(null, 1000));
    expect(draws('a', 's')).toEqual(draws('a', 's'));
    expect(draws('a', 's')).not.toEqual(draws('b', 's'));
    expect(draws('a', 's')).not.toEqual(draws('a', 't'));
  });

  it('is even', () => {
    const draw = chance('a', 'even');
    const counts = Array<number>(7).fill(0);
    for (let index = 0; index < 7_000; index += 1) counts[draw.below(7)]! += 1;
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });
});

describe('gameNamed', () => {
  it('names the choices when the name is unknown', () => {
    expect(() => gameNamed('go')).toThrow(
      expect.objectContaining({ code: 'SANDBOX.UNKNOWN_GAME', message: expect.stringContaining('tic-tac-toe') }),
    );
  });

  it('knows all games', () => {
    expect(gameNames).toEqual(['tic-tac-toe', 'connect-four', 'leduc-holdem', 'chess', 'prisoners']);
  });
});
