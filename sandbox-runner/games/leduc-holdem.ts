import { invariant } from '../../services/kernel/errors.js';
import { chance } from './chance.js';
import { byShare, type Game, illegal, type Observation } from './game.js';
import { circle, muted, path, picture, rect, seatColour, tag, text } from './svg.js';

/** A rank and a suit; only the rank counts. */
export type Card = `${'J' | 'Q' | 'K'}${'s' | 'h'}`;
export type LeducMove = 'call' | 'check' | 'fold' | 'raise';

/** One deal in play. Moves are by round, as they were made. */
interface Hand {
  readonly moves: readonly [readonly LeducMove[], readonly LeducMove[]];
  readonly round: 0 | 1;
  /** Chips in the pot, by seat. */
  readonly paid: readonly [number, number];
}

/** A hand that is over, with the cards that nobody was made to show hidden from the other seat by `observe`. */
interface HandResult {
  readonly moves: Hand['moves'];
  readonly shown: boolean;
  readonly publicSeen: boolean;
  /** Chips won by each seat; the two sum to 0. */
  readonly won: readonly [number, number];
}

export interface Leduc {
  /** For every hand of the match: the card of seat 0, the card of seat 1, the public card. Decided by the seed. */
  readonly deals: readonly (readonly [Card, Card, Card])[];
  readonly hand: Hand;
  readonly finished: readonly HandResult[];
  /** Chips that each seat has, with nothing of the hand in play taken off. */
  readonly stacks: readonly [number, number];
  readonly played: number;
}

export interface LeducObservation extends Observation {
  readonly board: {
    /** Counts from 1. */
    readonly hand: number;
    readonly hands: number;
    readonly round: 1 | 2;
    readonly card: Card;
    readonly public: Card | null;
    readonly moves: Hand['moves'];
    /** The seat that moves first in both rounds of this hand. */
    readonly first: number;
    readonly paid: readonly [number, number];
    readonly stacks: readonly [number, number];
    /** The hand before this one, or null. A card that was not shown is null. */
    readonly previous: {
      readonly cards: readonly (Card | null)[];
      readonly public: Card | null;
      readonly moves: Hand['moves'];
      readonly first: number;
      readonly won: readonly [number, number];
    } | null;
  };
}

const name = 'leduc-holdem';
const version = 1;
const deck: readonly Card[] = ['Js', 'Jh', 'Qs', 'Qh', 'Ks', 'Kh'];
const hands = 40;
const buyIn = 64;
const ante = 1;
const raiseBy = [2, 4] as const;
const raisesMax = 2;
/** An ante and every raise of both rounds: what one hand can cost. */
const costMax = ante + raisesMax * (raiseBy[0] + raiseBy[1]);

const dealt: Hand = { moves: [[], []], round: 0, paid: [ante, ante] };
const rankOf = (card: Card): number => 'JQK'.indexOf(card.charAt(0));
const firstOf = (hand: number): number => hand % 2;
const toMove = ({ finished, hand }: Leduc): number => (firstOf(finished.length) + hand.moves[hand.round].length) % 2;

/** A seat that could not pay for another hand leaves the table, so nobody ever plays on credit. */
const over = ({ finished, stacks }: Leduc): boolean => finished.length === hands || Math.min(...stacks) < costMax;

const outcome = (state: Leduc) => (over(state) ? byShare(state.stacks, 'chips') : undefined);

function legal(state: Leduc): LeducMove[] {
  if (over(state)) return [];
  const { moves, round, paid } = state.hand;
  const raise: LeducMove[] = moves[round].filter((move) => move === 'raise').length < raisesMax ? ['raise'] : [];
  return paid[0] === paid[1] ? ['check', ...raise] : ['call', 'fold', ...raise];
}

function dealOf(state: Leduc, hand: number): Leduc['deals'][number] {
  const deal = state.deals[hand];
  invariant(deal !== undefined, `Hand ${hand} is dealt.`);
  return deal;
}

/** Of two hands at the showdown: a pair with the public card, or else the higher card. */
function strength(card: Card, shared: Card): number {
  return rankOf(card) === rankOf(shared) ? 3 : rankOf(card);
}

function finish(state: Leduc, hand: Hand, folded: number | undefined): Leduc {
  const [one, other, shared] = dealOf(state, state.finished.length);
  const difference = folded === undefined ? strength(one, shared) - strength(other, shared) : folded === 0 ? -1 : 1;
  const gain = difference > 0 ? hand.paid[1] : difference < 0 ? -hand.paid[0] : 0;
  const result: HandResult = {
    moves: hand.moves,
    shown: folded === undefined,
    publicSeen: hand.round === 1,
    won: [gain, 0 - gain],
  };
  return {
    ...state,
    hand: dealt,
    finished: [...state.finished, result],
    stacks: [state.stacks[0] + gain, state.stacks[1] - gain],
  };
}

function apply(before: Leduc, action: LeducMove): Leduc {
  if (!legal(before).includes(action)) throw illegal(`${action} is not possible now.`, action);
  const seat = toMove(before);
  const { moves, round, paid } = before.hand;
  const theirs = paid[1 - seat] ?? 0;
  const mine = action === 'call' ? theirs : action === 'raise' ? theirs + raiseBy[round] : (paid[seat] ?? 0);
  const now = [...moves[round], action];
  const hand: Hand = {
    round,
    moves: round === 0 ? [now, []] : [moves[0], now],
    paid: seat === 0 ? [mine, theirs] : [theirs, mine],
  };
  const state: Leduc = { ...before, hand, played: before.played + 1 };
  if (action === 'fold') return finish(state, hand, seat);
  const closed = action === 'call' || (action === 'check' && now.length === 2);
  if (!closed) return state;
  return round === 1 ? finish(state, hand, undefined) : { ...state, hand: { ...hand, round: 1 } };
}

function previousFor(state: Leduc, seat: number): LeducObservation['board']['previous'] {
  const index = state.finished.length - 1;
  const last = state.finished[index];
  if (!last) return null;
  const cards = dealOf(state, index);
  return {
    cards: [0, 1].map((owner) => (owner === seat || last.shown ? (cards[owner] ?? null) : null)),
    public: last.publicSeen ? cards[2] : null,
    moves: last.moves,
    first: firstOf(index),
    won: last.won,
  };
}

function observe(state: Leduc, seat: number): LeducObservation {
  // After the last hand there is no deal in play, and the board shows the one that was played last.
  const index = Math.min(state.finished.length, hands - 1);
  const deal = dealOf(state, index);
  const { moves, round, paid } = state.hand;
  return {
    game: name,
    version,
    turn: state.played + 1,
    seat,
    board: {
      hand: index + 1,
      hands,
      round: round === 0 ? 1 : 2,
      card: deal[seat === 0 ? 0 : 1],
      public: round === 1 ? deal[2] : null,
      moves,
      first: firstOf(index),
      paid,
      stacks: state.stacks,
      previous: previousFor(state, seat),
    },
    legal: toMove(state) === seat ? legal(state) : [],
  };
}

/** What a seat has in front of it, without what it has put into the pot. */
const behind = (state: Leduc, seat: 0 | 1): number => state.stacks[seat] - (over(state) ? 0 : state.hand.paid[seat]);

const moveText = (moves: Hand['moves']): string =>
  moves
    .map((round) => round.join(' '))
    .filter(Boolean)
    .join(' / ') || 'no move yet';

/** The hand in play, or the last one when the match is over. */
function handOf(state: Leduc) {
  const ended = over(state);
  const last = ended ? state.finished.at(-1) : undefined;
  const index = ended ? state.finished.length - 1 : state.finished.length;
  const [one, other, shared] = dealOf(state, index);
  return {
    ended,
    title: `hand ${index + 1} of ${hands}`,
    cards: [one, other] as const,
    shared: (last ? last.publicSeen : state.hand.round === 1) ? shared : undefined,
    pot: ended ? 0 : state.hand.paid[0] + state.hand.paid[1],
    moves: moveText((last ?? state.hand).moves),
  };
}

function render(state: Leduc): string {
  const { title, cards, shared = '--', pot, moves } = handOf(state);
  const seats = ([0, 1] as const).map((seat) => `seat ${seat}  ${cards[seat]}  ${behind(state, seat)} chips`);
  return [`${title}   public ${shared}   pot ${pot}`, ...seats, moves].join('\n');
}

const suits = {
  s: 'M0 -10C5 -4 11 0 11 5A5 5 0 0 1 2 8L4 13H-4L-2 8A5 5 0 0 1 -11 5C-11 0 -5 -4 0 -10Z',
  h: 'M0 11C-6 5 -11 1 -11 -4A5.5 5.5 0 0 1 0 -6A5.5 5.5 0 0 1 11 -4C11 1 6 5 0 11Z',
};

function drawCard(x: number, y: number, card: Card | undefined): string {
  const frame = rect(0, 0, 70, 100, { rx: 9, fill: '#ffffff', stroke: '#0d3b2a', 'stroke-width': 1.5 });
  if (card === undefined) {
    const back = rect(6, 6, 58, 88, { rx: 6, fill: '#2b5aa6' });
    const weave = path('M6 30L35 6L64 30M6 60L35 36L64 60M6 90L35 66L64 90', {
      fill: 'none',
      stroke: '#8fb1e6',
      'stroke-width': 3,
    });
    return tag('g', { transform: `translate(${x} ${y})` }, frame, back, weave);
  }
  const suit = card.endsWith('h') ? 'h' : 's';
  const fill = suit === 'h' ? '#c8322f' : '#1c2733';
  const rank = text(16, 28, 24, card.charAt(0), { fill, 'font-weight': 700 });
  const pip = tag('g', { transform: 'translate(38 62) scale(1.7)' }, path(suits[suit], { fill }));
  return tag('g', { transform: `translate(${x} ${y})` }, frame, rank, pip);
}

function drawChips(x: number, y: number, count: number, colour: string): string {
  const tower = Array.from({ length: Math.ceil(count / 8) }, (_, level) =>
    tag('ellipse', { cx: x, cy: y - level * 5, rx: 17, ry: 7, fill: colour, stroke: '#ffffff', 'stroke-width': 1.2 }),
  );
  return tower.join('');
}

function svg(state: Leduc): string {
  const { ended, title, cards, shared, pot, moves } = handOf(state);
  const white = { fill: '#ffffff' };
  const seats = ([0, 1] as const).flatMap((seat) => {
    const x = seat === 0 ? 70 : 420;
    const active = !ended && toMove(state) === seat;
    const ring = active
      ? rect(x - 6, 104, 82, 112, { rx: 13, fill: 'none', stroke: '#ffd75e', 'stroke-width': 4 })
      : '';
    return [
      ring,
      drawCard(x, 110, cards[seat]),
      drawChips(seat === 0 ? 176 : 384, 206, behind(state, seat), seatColour(seat)),
      text(x + 35, 92, 15, `seat ${seat}`, { ...white, 'font-weight': 700 }),
      text(x + 35, 236, 14, `${behind(state, seat)} chips`, white),
    ];
  });
  return picture(
    560,
    330,
    `Leduc hold'em, ${title}`,
    rect(14, 14, 532, 270, { rx: 130, fill: '#5b3a22' }),
    rect(26, 26, 508, 246, { rx: 120, fill: '#1f6f4f' }),
    circle(280, 160, 84, { fill: 'none', stroke: '#2f8f68', 'stroke-width': 3 }),
    ...seats,
    drawCard(245, 104, shared),
    text(280, 66, 15, title, white),
    text(280, 232, 15, ended ? 'the match is over' : `pot ${pot}`, white),
    text(280, 312, 14, moves, { fill: muted }),
  );
}

export const leducHoldem: Game<Leduc, LeducMove, LeducObservation> = {
  name,
  version,
  seats: { min: 2, max: 2 },
  // Check, raise, raise, call is the longest round there is.
  maxTurns: hands * 8,

  setup(seed) {
    const cards = chance(name, seed);
    const deals = Array.from({ length: hands }, () => cards.shuffled(deck).slice(0, 3) as [Card, Card, Card]);
    return { deals, hand: dealt, finished: [], stacks: [buyIn, buyIn], played: 0 };
  },

  toMove,
  legal,
  outcome,
  observe,
  parse: (raw) => (raw === 'call' || raw === 'check' || raw === 'fold' || raw === 'raise' ? raw : undefined),
  apply,
  render,
  svg,
};
