import {
  allowanceOf,
  archivedAgent,
  type Driver,
  type FaultRule,
  gameNamed,
  type Limits,
  limitsFrom,
  playMatch,
} from '../../sandbox-runner/index.js';
import { asAgonError } from '../../services/kernel/index.js';
import type { Facts, World } from './world.js';

/** What a host can see of an agent that was asked once. */
export interface Evidence {
  readonly reply?: unknown;
  readonly fault?: { readonly rule: FaultRule | 'ended' | 'refused'; readonly detail: string };
  /** As far as it has arrived: what is printed takes another way than what is answered. */
  readonly log: string;
}

/** One thing that a hostile agent does. The same source runs in the sandbox and, as the control, without one. */
export interface Attack {
  readonly name: string;
  readonly source: string | ((facts: Facts) => string);
  /** Brought in as an archive instead, which the arena may refuse; the control unpacks it without any care. */
  readonly archive?: { readonly entry: string; readonly pack: (facts: Facts) => Buffer };
  /** Plays at the same time, in a sandbox of its own. */
  readonly neighbour?: string;
  readonly limits?: Partial<Limits>;
  /** How this attack may end. Without it the agent has to answer, and to answer that it failed. */
  readonly stopped?: readonly (FaultRule | 'refused' | 'answered')[];
  /** Whether the agent was granted egress, to a host that has nothing to hide. */
  readonly egress?: boolean;
  /** What it does is heard by the whole process, so nothing else may run beside it. */
  readonly alone?: boolean;
  /** Played as a whole match with a referee; a careless host takes the reply itself for the outcome. */
  readonly match?: boolean;
  /** What it is after does not exist on every machine; where the control finds nothing, there is nothing to show. */
  readonly optional?: boolean;
  /** How long after the agent's end to look. */
  readonly afterMs?: number;
  /** Whether the attacker got what it wanted; by default, whether it says so or shows the host's secret. */
  readonly worked?: (seen: Evidence, world: World) => boolean;
}

export interface Result {
  readonly driver: string;
  readonly attack: string;
  readonly verdict: 'contained' | 'ESCAPED' | 'UNCLEAR' | 'NO CONTROL' | 'absent';
  readonly detail: string;
}

/** Generous where time is not the attack, so that a busy machine is never taken for a wall that held. */
const limits: Partial<Limits> = {
  memoryBytes: 64 * 1024 * 1024,
  tasks: 32,
  diskBytes: 1024 * 1024,
  outputBytes: 1024 * 1024,
  initMs: 2_000,
  turnMs: 1_000,
  stallMs: 8_000,
};

const saysSo = (reply: unknown): boolean =>
  typeof reply === 'object' && reply !== null && 'worked' in reply && reply.worked === true;

export function worked(attack: Attack, seen: Evidence, world: World): boolean {
  if (attack.match) return (seen.reply as { winner?: unknown } | undefined)?.winner === 0;
  if (attack.worked) return attack.worked(seen, world);
  return saysSo(seen.reply) || JSON.stringify([seen.reply ?? null, seen.log]).includes(world.secret);
}

export const sourceOf = ({ source }: Attack, { facts }: World): string =>
  typeof source === 'string' ? source : source(facts);

/** The code as it is submitted, or what was seen when it was refused. */
function codeOf(attack: Attack, world: World): string | Evidence {
  if (!attack.archive) return sourceOf(attack, world);
  try {
    return archivedAgent(attack.archive.pack(world.facts)).source;
  } catch (error) {
    const { code, message } = asAgonError(error);
    return { fault: { rule: 'refused', detail: `${code}: ${message}` }, log: '' };
  }
}

/** Plays the attack in a sandbox: start, one question, end. */
export async function strike(driver: Driver, attack: Attack, world: World): Promise<Evidence> {
  const inForce = limitsFrom({ ...limits, ...attack.limits });
  const allowed = allowanceOf(inForce, driver.meter);
  const load = async (source: string, seat: number) => {
    const endpoint = attack.egress ? await world.egressFor(seat) : undefined;
    return driver.load(source, { seed: world.secret, seat, limits: inForce, endpoint });
  };
  const neighbour = attack.neighbour === undefined ? undefined : await load(attack.neighbour, 1);
  const source = codeOf(attack, world);
  if (typeof source !== 'string') return source;
  const agent = await load(source, 0);
  try {
    if (attack.match) {
      const seats = [agent, await load(source, 1)];
      const [game, seed] = [gameNamed('tic-tac-toe'), world.secret];
      const played = await playMatch({ game, seed, seats, limits: inForce, driver: driver.name, agents: [] });
      seats[1]?.dispose();
      return { reply: { winner: played.outcome.winner, reason: played.outcome.reason }, log: '' };
    }
    await neighbour?.init(world.facts, allowed.init);
    await neighbour?.act(world.facts, allowed.turn);
    const started = await agent.init(world.facts, allowed.init);
    const answer = started.kind === 'fault' ? started : await agent.act(world.facts, allowed.turn);
    if (answer.kind === 'fault') return { fault: { rule: answer.rule, detail: answer.detail }, log: agent.log() };
    return { reply: answer.kind === 'reply' ? answer.value : undefined, log: agent.log() };
  } finally {
    agent.dispose();
    neighbour?.dispose();
  }
}

export function judge(driver: string, attack: Attack, got: boolean, seen: Evidence): Result {
  const told = seen.fault ? `${seen.fault.rule}: ${seen.fault.detail}` : JSON.stringify(seen.reply);
  const result = { driver, attack: attack.name, detail: told.slice(0, 200) };
  if (got) return { ...result, verdict: 'ESCAPED' };
  const expected = (attack.stopped ?? ['answered']).some((end) => end === (seen.fault?.rule ?? 'answered'));
  return { ...result, verdict: expected ? 'contained' : 'UNCLEAR' };
}
