import { AgonError } from '../services/kernel/index.js';
import { faultRules } from './drivers/driver.js';
import { assertSeats, type Game, gameNamed, isLegal } from './games/index.js';
import { allowanceOf } from './limits.js';
import { type ForfeitReason, lostBy, type MatchOutcome, type MatchRecord } from './referee.js';

interface Replay {
  /** Whether the recorded actions, under the recorded rules and limits, lead to the recorded outcome. */
  readonly agrees: boolean;
  /** The outcome that the record should have, when it can be derived at all. */
  readonly outcome: MatchOutcome | undefined;
  /** What is wrong with the record; empty when it agrees. */
  readonly problem: string;
  /** The position before the first turn and after each legal one, for drawing. */
  readonly states: readonly unknown[];
}

/**
 * Runs the referee over a record, without agents. The moves, who made them, an ending by the rules, an illegal move and
 * the fuel account are all derived again. That an agent crashed cannot be seen from its moves; of such a fault a replay
 * only confirms that it was that seat's turn and that the scores follow. Playing the match again settles the rest.
 */
export function replay(record: MatchRecord): Replay {
  const game = gameNamed(record.game);
  if (game.version !== record.gameVersion) {
    const message = `${record.game} is at version ${game.version} here.`;
    throw new AgonError('SANDBOX.UNKNOWN_GAME', message, { recorded: record.gameVersion });
  }
  assertSeats(game, record.agents.length);
  const states: unknown[] = [game.setup(record.seed, record.agents.length)];
  const { outcome, problem } = walk(game, record, states);
  if (problem) return { agrees: false, outcome, problem, states };
  const expected = outcome ?? record.outcome;
  const agrees = sameOutcome(expected, record.outcome);
  return { agrees, outcome: expected, problem: agrees ? '' : 'the outcome does not follow from the moves', states };
}

interface Walk {
  readonly outcome: MatchOutcome | undefined;
  readonly problem: string;
}

const wrong = (problem: string): Walk => ({ outcome: undefined, problem });

function walk(game: Game, record: MatchRecord, states: unknown[]): Walk {
  const allowances = record.agents.map((_, seat) => allowanceOf(record.limits, record.usage[seat]?.meter ?? 'fuel'));
  const bank = allowances.map((allowance) => allowance.bank);
  let state = states[0];
  for (const [index, { turn, seat, action, fuel }] of record.turns.entries()) {
    if (game.outcome(state)) return wrong(`turn ${turn} was played after the end`);
    if (turn !== index + 1) return wrong(`turn ${turn} stands at place ${index + 1}`);
    if (seat !== game.toMove(state)) return wrong(`turn ${turn} was not seat ${seat}'s to play`);
    const parsed = game.parse(action);
    if (parsed === undefined || !Number.isInteger(fuel) || fuel < 0) return wrong(`turn ${turn} is malformed`);
    const left = (bank[seat] ?? 0) - Math.max(0, fuel - (allowances[seat]?.turn ?? 0));
    if (left < 0) return wrong(`turn ${turn} took more fuel than seat ${seat} had`);
    bank[seat] = left;
    if (!isLegal(game, state, parsed)) {
      if (index !== record.turns.length - 1) return wrong(`turn ${turn} is illegal, yet the match went on`);
      return { outcome: lostBy(record.agents.length, seat, 'illegal_move', record.outcome.detail), problem: '' };
    }
    state = game.apply(state, parsed);
    states.push(state);
  }
  const ended = game.outcome(state);
  if (ended) return { outcome: { ...ended, detail: '', seatAtFault: null }, problem: '' };
  return fault(game, record, state);
}

/** The moves stop in the middle of the game, so the record has to blame somebody who could be to blame. */
function fault(game: Game, record: MatchRecord, state: unknown): Walk {
  const seats = record.agents.length;
  const { seatAtFault, reason, detail } = record.outcome;
  if (!isUnseen(reason)) return wrong(`the moves do not end in ${reason}`);
  const atStart = record.turns.length === 0;
  if (seatAtFault === null) {
    if (!atStart) return wrong('nobody is at fault for an unfinished match');
    const scores = record.agents.map(() => 1 / seats);
    return { outcome: { winner: null, scores, reason, detail, seatAtFault }, problem: '' };
  }
  if (!Number.isInteger(seatAtFault) || seatAtFault < 0 || seatAtFault >= seats) return wrong('no such seat');
  if (!atStart && seatAtFault !== game.toMove(state)) return wrong(`it was not seat ${seatAtFault}'s turn`);
  return { outcome: lostBy(seats, seatAtFault, reason, detail), problem: '' };
}

/** Faults that leave no trace in the moves. An illegal move does, and so does an end by the rules. */
const isUnseen = (reason: string): reason is Exclude<ForfeitReason, 'illegal_move'> =>
  reason === 'timeout' || faultRules.some((rule) => rule === reason);

function sameOutcome(a: MatchOutcome, b: MatchOutcome): boolean {
  return (
    a.winner === b.winner &&
    a.reason === b.reason &&
    a.seatAtFault === b.seatAtFault &&
    a.scores.length === b.scores.length &&
    a.scores.every((score, seat) => score === b.scores[seat])
  );
}
