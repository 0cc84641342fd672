import { invariant } from '../services/kernel/index.js';
import { type AgentInstance, cleanDetail, type Fault, type FaultRule, type Usage } from './drivers/driver.js';
import { type Action, assertSeats, type Game, isLegal, type Outcome } from './games/index.js';
import { allowanceOf, type Limits, type Meter } from './limits.js';

/** Why a match ended other than by the rules of its game: by a broken rule, or by the watchdog. */
export type ForfeitReason = 'illegal_move' | FaultRule;

/** The reason is the rule of the game that ended it, or a ForfeitReason. */
export interface MatchOutcome extends Outcome {
  readonly detail: string;
  readonly seatAtFault: number | null;
}

export interface TurnRecord {
  /** Counts from 1. */
  readonly turn: number;
  readonly seat: number;
  readonly action: Action;
  /** In the unit of the seat's driver: ticks, or milliseconds. */
  readonly fuel: number;
}

/** What one seat asked of one place on the network, and how many bytes went there and came back. */
export interface EgressUsage {
  readonly host: string;
  readonly port: number;
  readonly requests: number;
  readonly refused: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

interface SeatUsage extends Usage {
  /** What ran this seat; left out when its cell died before it could say. */
  readonly driver?: string;
  readonly driverVersion?: string;
  readonly meter?: Meter;
  /** Where it went on the network, if it was granted egress: one entry a place. */
  readonly egress?: readonly EgressUsage[];
}

/** Plain JSON, with all that is needed to play the match again and to check what is claimed about it. */
export interface MatchRecord {
  readonly game: string;
  readonly gameVersion: number;
  readonly seed: string;
  readonly driver: string;
  /** Digests of the sources, by seat. */
  readonly agents: readonly string[];
  /** An illegal move is the last entry, so that a replay can see that it was illegal. */
  readonly turns: readonly TurnRecord[];
  readonly outcome: MatchOutcome;
  readonly usage: readonly SeatUsage[];
  readonly limits: Limits;
  /** Said of a match in which somebody was granted egress: what comes from a network need not come again. */
  readonly deterministic?: false;
}

interface MatchSetup {
  readonly game: Game;
  readonly seed: string;
  readonly seats: readonly AgentInstance[];
  readonly limits: Limits;
  readonly driver: string;
  readonly agents: readonly string[];
  /** Called before any code of a seat runs; turn 0 is its start. `last` is the turn that has just been completed. */
  readonly onTurn?: (turn: number, seat: number, last: TurnRecord | undefined) => void;
}

/** What the host knows about a match that never came back. */
interface Forfeit extends Omit<MatchSetup, 'seats' | 'onTurn'> {
  readonly turns: readonly TurnRecord[];
  readonly seat: number;
  readonly reason: 'timeout' | 'crash';
  readonly detail: string;
}

/** The seat at fault gets nothing and the others share the point. */
export function lostBy(seats: number, seat: number, reason: ForfeitReason, detail: string): MatchOutcome {
  const share = 1 / (seats - 1);
  return {
    winner: seats === 2 ? 1 - seat : null,
    scores: Array.from({ length: seats }, (_, index) => (index === seat ? 0 : share)),
    reason,
    detail: cleanDetail(detail),
    seatAtFault: seat,
  };
}

/** Plays one match to its end. It never throws on account of an agent. */
export async function playMatch(setup: MatchSetup): Promise<MatchRecord> {
  const { game, seats, limits } = setup;
  assertSeats(game, seats.length);
  const turns: TurnRecord[] = [];
  const outcome = (await startSeats(setup)) ?? (await playTurns(setup, turns));
  for (const [seat, agent] of seats.entries()) {
    setup.onTurn?.(turns.length, seat, turns.at(-1));
    const { winner, scores, reason } = outcome;
    const { turn } = allowanceOf(limits, agent.meter);
    await agent.onResult({ game: game.name, seat, winner, score: scores[seat], reason }, turn);
  }
  const usage = seats.map((agent) => {
    const { driver, driverVersion, meter } = agent;
    return { ...agent.usage, driver, driverVersion, meter };
  });
  return recordOf(setup, { turns, outcome, usage });
}

const recordOf = (
  { game, seed, driver, agents, limits }: Omit<MatchSetup, 'seats'>,
  { turns, outcome, usage }: Pick<MatchRecord, 'turns' | 'outcome' | 'usage'>,
): MatchRecord => ({ game: game.name, gameVersion: game.version, seed, driver, agents, turns, outcome, usage, limits });

/**
 * Every seat is started before anyone is judged. Otherwise of two agents that cannot start, the one that happens to
 * sit first would lose to the other.
 */
async function startSeats({ game, seats, limits, onTurn }: MatchSetup): Promise<MatchOutcome | undefined> {
  const faults: (Fault & { seat: number })[] = [];
  for (const [seat, agent] of seats.entries()) {
    onTurn?.(0, seat, undefined);
    // The seed stays with the referee: whoever knows it can predict the other seat's random numbers.
    const { init, turn, bank } = allowanceOf(limits, agent.meter);
    const budget = agent.meter === 'fuel' ? { turnFuel: turn, bankFuel: bank } : { turnMs: turn, bankMs: bank };
    const config = { game: game.name, version: game.version, seat, seats: seats.length, ...budget };
    const started = await agent.init(config, init);
    if (started.kind === 'fault') faults.push({ ...started, seat });
  }
  const [first, second] = faults;
  if (first === undefined) return undefined;
  if (second === undefined) return lostBy(seats.length, first.seat, first.rule, first.detail);
  return {
    winner: null,
    scores: seats.map(() => 1 / seats.length),
    reason: first.rule,
    detail: cleanDetail(`no seat could start: ${faults.map((each) => `${each.seat}: ${each.detail}`).join('; ')}`),
    seatAtFault: null,
  };
}

async function playTurns(
  { game, seed, seats, limits, onTurn }: MatchSetup,
  turns: TurnRecord[],
): Promise<MatchOutcome> {
  const bank = seats.map((agent) => allowanceOf(limits, agent.meter).bank);
  let state = game.setup(seed, seats.length);
  for (let turn = 1; ; turn += 1) {
    const ended = game.outcome(state);
    if (ended) return { ...ended, detail: '', seatAtFault: null };
    invariant(turn <= game.maxTurns, `${game.name} goes on after ${game.maxTurns} turns.`);

    const seat = game.toMove(state);
    const agent = seats[seat];
    const saved = bank[seat];
    invariant(agent !== undefined && saved !== undefined, `${game.name} gives the move to seat ${seat}.`);
    onTurn?.(turn, seat, turns.at(-1));
    const allowed = allowanceOf(limits, agent.meter).turn;
    const reply = await agent.act(game.observe(state, seat), allowed + saved);
    if (reply.kind === 'fault') return lostBy(seats.length, seat, reply.rule, reply.detail);
    bank[seat] = saved - Math.max(0, reply.fuel - allowed);

    const action = game.parse(reply.value);
    if (action === undefined) {
      return lostBy(seats.length, seat, 'bad_reply', `${JSON.stringify(reply.value)} is no action of ${game.name}`);
    }
    turns.push({ turn, seat, action, fuel: reply.fuel });
    if (!isLegal(game, state, action)) {
      const possible = game.legal(state).map(shown).join(' ');
      return lostBy(seats.length, seat, 'illegal_move', `${shown(action)} is not one of ${possible}`);
    }
    state = game.apply(state, action);
  }
}

const shown = (action: Action): string => (typeof action === 'string' ? action : JSON.stringify(action));

/** The record of a match whose cell had to be killed, or died in the hands of one seat. */
export function forfeit({ turns, seat, reason, detail, ...setup }: Forfeit): MatchRecord {
  const fuelOf = (of: number): number => turns.reduce((sum, turn) => sum + (turn.seat === of ? turn.fuel : 0), 0);
  const usage = setup.agents.map((_, of) => ({ fuel: fuelOf(of), peakMemoryBytes: 0 }));
  return recordOf(setup, { turns, outcome: lostBy(setup.agents.length, seat, reason, detail), usage });
}
