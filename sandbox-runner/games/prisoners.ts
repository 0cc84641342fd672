import { chance } from './chance.js';
import { byShare, type Game, illegal, type Observation } from './game.js';
import { ink, muted, picture, rect, seatColour, text } from './svg.js';

/** To cooperate or to defect. */
type Choice = 'C' | 'D';
/** One choice for each opponent, in the order of their seats. */
export type Choices = Choice[];

export interface Prisoners {
  readonly seats: number;
  /** How many rounds there will be. Whoever knew it would defect in the last one, so no agent is told. */
  readonly rounds: number;
  /** `history[round][seat]` */
  readonly history: readonly (readonly Choices[])[];
  /** What the first seats have chosen in the round under way. Nobody sees it before the round is complete. */
  readonly pending: readonly Choices[];
  readonly points: readonly number[];
}

interface PrisonersObservation extends Observation {
  /** Counts from 1. */
  readonly round: number;
  /** The seats of the opponents: the n-th choice of an action is for the n-th of them. */
  readonly opponents: readonly number[];
  /** The rounds so far, as this seat has seen them: its own choices, and what each opponent chose against it. */
  readonly board: readonly { readonly mine: Choices; readonly theirs: Choices }[];
  /** Of every seat. */
  readonly points: readonly number[];
}

const name = 'prisoners';
const version = 1;
const seats = { min: 2, max: 8 };
const rounds = { min: 20, max: 40 };

/** Axelrod's numbers: temptation 5, reward 3, punishment 1, and nothing for being alone in trusting. */
const payoffs: Readonly<Record<Choice, Readonly<Record<Choice, number>>>> = { C: { C: 3, D: 0 }, D: { C: 5, D: 1 } };

const toMove = (state: Prisoners): number => state.pending.length;
const over = (state: Prisoners): boolean => state.history.length === state.rounds;
const outcome = (state: Prisoners) => (over(state) ? byShare(state.points, 'payoffs') : undefined);
const opponentsOf = (state: Prisoners, seat: number): number[] =>
  Array.from({ length: state.seats }, (_, other) => other).filter((other) => other !== seat);

/** What one seat chose against another: its list leaves itself out. */
const against = (round: readonly Choices[], seat: number, other: number): Choice =>
  round[seat]?.[other < seat ? other : other - 1] ?? 'C';

/** Every list of choices for so many opponents, by their number; built once, since it has up to 128 entries. */
const lists: readonly (readonly Choices[])[] = Array.from({ length: seats.max }).reduce<Choices[][]>(
  (all) => [
    ...all,
    (all.at(-1) ?? []).flatMap((list): Choices[] => [
      [...list, 'C'],
      [...list, 'D'],
    ]),
  ],
  [[[]]],
);

const legal = (state: Prisoners): readonly Choices[] => (over(state) ? [] : (lists[state.seats - 1] ?? []));

const permits = (state: Prisoners, action: Choices): boolean => !over(state) && action.length === state.seats - 1;

function parse(raw: unknown): Choices | undefined {
  if (!Array.isArray(raw) || raw.length < 1 || raw.length >= seats.max) return undefined;
  const choices: Choices = raw.filter((each): each is Choice => each === 'C' || each === 'D');
  return choices.length === raw.length ? choices : undefined;
}

function apply(state: Prisoners, action: Choices): Prisoners {
  if (!permits(state, action)) throw illegal(`${action.length} choices are not one for each opponent.`, action);
  const pending = [...state.pending, action];
  if (pending.length < state.seats) return { ...state, pending };
  const points = state.points.map((sum, seat) =>
    opponentsOf(state, seat).reduce(
      (total, other) => total + payoffs[against(pending, seat, other)][against(pending, other, seat)],
      sum,
    ),
  );
  return { ...state, history: [...state.history, pending], pending: [], points };
}

function observe(state: Prisoners, seat: number): PrisonersObservation {
  const opponents = opponentsOf(state, seat);
  return {
    game: name,
    version,
    turn: state.history.length * state.seats + state.pending.length + 1,
    seat,
    round: state.history.length + 1,
    opponents,
    board: state.history.map((round) => ({
      mine: opponents.map((other) => against(round, seat, other)),
      theirs: opponents.map((other) => against(round, other, seat)),
    })),
    points: state.points,
    legal: toMove(state) === seat ? legal(state) : [],
  };
}

/** The round that was completed last, as a table: who chose what against whom. */
function render(state: Prisoners): string {
  const round = state.history.at(-1);
  const all = Array.from({ length: state.seats }, (_, seat) => seat);
  const rows = all.map((seat) => {
    const cells = all.map((other) => (other === seat ? '.' : round ? against(round, seat, other) : '-'));
    return `seat ${seat}  ${cells.join(' ')}  ${`${state.points[seat]}`.padStart(6)}`;
  });
  const played = `round ${state.history.length} of ${state.rounds}`;
  const waiting = state.pending.length > 0 ? `, ${state.pending.length} of ${state.seats} have chosen` : '';
  return [`        ${all.join(' ')}  points`, ...rows, `${played}${waiting}`].join('\n');
}

/** How often a seat has cooperated with another, 0 to 1. */
const trust = (state: Prisoners, seat: number, other: number): number =>
  state.history.filter((round) => against(round, seat, other) === 'C').length / Math.max(1, state.history.length);

const cell = 44;

/** From the red of constant defection over pale to the green of constant cooperation. */
function shade(value: number): string {
  const mix = (from: number, to: number, part: number) => Math.round(from + (to - from) * part);
  const [low, middle, high] = [[214, 84, 66] as const, [246, 236, 214] as const, [52, 152, 112] as const];
  const [from, to, part] = value < 0.5 ? [low, middle, value * 2] : [middle, high, value * 2 - 1];
  return `rgb(${[0, 1, 2].map((i) => mix(from[i] ?? 0, to[i] ?? 0, part)).join(',')})`;
}

function svg(state: Prisoners): string {
  const all = Array.from({ length: state.seats }, (_, seat) => seat);
  const last = state.history.at(-1);
  const [left, top] = [76, 74];
  const width = state.seats * cell;
  const barsLeft = left + width + 34;
  const most = Math.max(1, ...state.points);
  const rows = all.flatMap((seat) => {
    const y = top + seat * cell;
    const squares = all.map((other) => {
      const x = left + other * cell;
      if (other === seat) return rect(x + 2, y + 2, cell - 4, cell - 4, { rx: 8, fill: '#e6e1d6' });
      const fill = state.history.length === 0 ? '#ffffff' : shade(trust(state, seat, other));
      const choice = last ? against(last, seat, other) : '';
      return (
        rect(x + 2, y + 2, cell - 4, cell - 4, { rx: 8, fill, stroke: '#d8d2c4' }) +
        text(x + cell / 2, y + cell / 2 + 6, 17, choice, { 'font-weight': 700 })
      );
    });
    const points = state.points[seat] ?? 0;
    const bar = Math.max(3, (points / most) * 190);
    return [
      text(left - 12, y + cell / 2 + 5, 14, `seat ${seat}`, {
        fill: seatColour(seat),
        'font-weight': 700,
        'text-anchor': 'end',
      }),
      ...squares,
      rect(barsLeft, y + 9, bar, cell - 18, { rx: 6, fill: seatColour(seat) }),
      text(barsLeft + bar + 8, y + cell / 2 + 5, 14, points, { 'text-anchor': 'start' }),
    ];
  });
  const heads = all.map((seat) => text(left + (seat + 0.5) * cell, top - 10, 13, seat, { fill: muted }));
  const height = top + state.seats * cell + 46;
  const caption = 'letters: the last round; colour: how often each has cooperated so far';
  return picture(
    Math.max(520, barsLeft + 260),
    height,
    `iterated prisoner's dilemma, round ${state.history.length} of ${state.rounds}`,
    text(24, 36, 18, `round ${state.history.length} of ${state.rounds}`, {
      'text-anchor': 'start',
      'font-weight': 700,
    }),
    text(barsLeft, top - 10, 13, 'points', { 'text-anchor': 'start', fill: muted }),
    ...heads,
    ...rows,
    text(24, height - 18, 12, caption, { 'text-anchor': 'start', fill: ink, opacity: 0.6 }),
  );
}

export const prisoners: Game<Prisoners, Choices, PrisonersObservation> = {
  name,
  version,
  seats,
  maxTurns: seats.max * rounds.max,

  setup(seed, count) {
    const drawn = rounds.min + chance(name, seed).below(rounds.max - rounds.min + 1);
    return { seats: count, rounds: drawn, history: [], pending: [], points: Array<number>(count).fill(0) };
  },

  toMove,
  legal,
  permits,
  outcome,
  observe,
  parse,
  apply,
  render,
  svg,
};
