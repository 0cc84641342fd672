import { chance } from '../../sandbox-runner/games/chance.js';
import { assertSeats, gameNamed, isLegal, type Outcome } from '../../sandbox-runner/games/index.js';
import type { Actions, GameName, Observations } from './games.js';
import { Decision, type Turn } from './player.js';

type ActionOrDecision<A> = A | Decision<A>;

export interface PracticeOptions<Game extends GameName> {
  readonly game: Game;
  act(
    observation: Observations[Game],
    turn: Turn,
  ): ActionOrDecision<Actions[Game]> | Promise<ActionOrDecision<Actions[Game]>>;
  /** Plays every other seat; at random when left out. */
  opponent?(observation: Observations[Game]): Actions[Game];
  readonly seat?: number;
  /** Two, unless the game takes more. */
  readonly seats?: number;
  /** The same seed deals the same cards and draws the same moves for the opponent, in every language. */
  readonly seed?: number;
}

export interface Practised {
  readonly winner: number | null;
  /** From 0 to 1, as the arena would count it. */
  readonly score: number;
  readonly reason: string;
  readonly won: boolean;
  /** How many moves were played, by all seats. */
  readonly turns: number;
}

const TIME = { turnMs: 2_000, bankMs: 60_000 };

/** Whoever breaks a rule gets nothing, and the others share the point. */
function forfeited(seat: number, seats: number, reason: string): Outcome {
  const scores = Array.from({ length: seats }, (_, each) => (each === seat ? 0 : 1 / (seats - 1)));
  return { winner: seats === 2 ? 1 - seat : null, scores, reason };
}

/**
 * Plays a whole match offline, by the arena's own rules and its clock.
 *
 * @example (await practise({ game: 'chess', act: ({ legal }) => legal[0] ?? '' })).reason
 */
export async function practise<Game extends GameName>(options: PracticeOptions<Game>): Promise<Practised> {
  const { game, seat = 0, seats = 2, seed = 0 } = options;
  const rules = gameNamed(game);
  assertSeats(rules, seats);
  const draw = chance('practice', `${seed}`);
  const atRandom = ({ legal }: Observations[Game]) => legal[draw.below(legal.length)] as Actions[Game];
  const { opponent = atRandom } = options;
  let bankLeftMs = TIME.bankMs;
  let turns = 0;
  const end = ({ winner, scores, reason }: Outcome): Practised => {
    return { winner, score: scores[seat] ?? 0, reason, won: winner === seat, turns };
  };
  let state = rules.setup(`${seed}`, seats);
  for (let ended = rules.outcome(state); ; ended = rules.outcome(state)) {
    if (ended) return end(ended);
    const onMove = rules.toMove(state);
    const observation = overTheWire(rules.observe(state, onMove)) as Observations[Game];
    let acted: ActionOrDecision<Actions[Game]>;
    if (onMove === seat) {
      const startedMs = performance.now();
      const turn = { matchId: 'practice', turn: turns + 1, seat, turnLeftMs: TIME.turnMs, bankLeftMs, deadline: '' };
      acted = await options.act(observation, turn);
      bankLeftMs -= Math.max(0, performance.now() - startedMs - TIME.turnMs);
      if (bankLeftMs < 0) return end(forfeited(seat, seats, 'timeout'));
    } else acted = opponent(observation);
    const action = rules.parse(overTheWire(acted instanceof Decision ? acted.action : acted));
    if (action === undefined || !isLegal(rules, state, action)) return end(forfeited(onMove, seats, 'illegal_move'));
    state = rules.apply(state, action);
    turns += 1;
  }
}

/** What is left of a value once it was sent as JSON, as everything is in the arena. */
const overTheWire = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? 'null');
