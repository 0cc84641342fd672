import { z } from 'zod';
import { type MatchRecord, replay } from '../../sandbox-runner/index.js';
import { type ArenaEvent, arenaEvents } from '../../services/arena/index.js';
import {
  AgonError,
  chainFault,
  EMPTY_HEAD,
  type RecordedEvent,
  type StreamHead,
  upcasterOf,
} from '../../services/kernel/index.js';
import { readGiven } from './files.js';
import { colour, type Outcome } from './output.js';

const upcast = upcasterOf([arenaEvents]);
const FILE_BYTES_MAX = 64 * 1024 * 1024;

const replayFile = z.object({
  format: z.literal('agon replay 1'),
  matchId: z.uuid(),
  events: z
    .array(z.looseObject({ type: z.string(), stream: z.string(), hash: z.string(), prevHash: z.string() }))
    .min(1),
});

/** Checks a match by its file alone: every hash, the chain, and that the moves lead to the outcome. */
export async function verifyReplay(file: string): Promise<Outcome> {
  const verdict = verdictOf(replayIn(file));
  const good = `${colour.green('verified')}: match ${verdict.matchId}, ${verdict.turns} turns, ${verdict.outcome}`;
  const bad = `${colour.red('not verified')}: ${verdict.fault}`;
  return { json: verdict, text: verdict.verified ? good : bad, good: verdict.verified };
}

function replayIn(file: string): z.output<typeof replayFile> {
  const text = readGiven(file).toString();
  const parsed = text.length <= FILE_BYTES_MAX ? replayFile.safeParse(jsonOf(text)) : undefined;
  if (parsed?.success) return parsed.data;
  throw new AgonError('FILE.NO_REPLAY', `${file} is no replay of a match. GET /v1/matches/<id>/replay gives one.`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function verdictOf({ matchId, events }: z.output<typeof replayFile>) {
  const recorded = events as unknown as readonly RecordedEvent[];
  const match = recorded.map((event) => upcast(event) as ArenaEvent);
  const turns = match.flatMap((event) => (event.type === 'TurnPlayed' ? [event.data] : []));
  const played = match.find((event) => event.type === 'MatchPlayed');
  const ended = match.filter(({ type }) => ['MatchSettled', 'MatchVoided', 'MatchReversed'].includes(type)).at(-1);
  const outcome = `${ended?.type ?? 'not over'}${played ? ` by ${played.data.outcome.reason}` : ''}`;
  const fault = brokenChain(matchId, recorded) ?? disagreement(match) ?? '';
  return { verified: fault === '', matchId, events: events.length, turns: turns.length, outcome, fault };
}

function brokenChain(matchId: string, events: readonly RecordedEvent[]): string | undefined {
  let head: StreamHead = EMPTY_HEAD;
  for (const event of events) {
    const why = event.stream === `match-${matchId}` ? chainFault(event, head) : 'it is of another match';
    if (why) return `${event.type} ${event.id} (revision ${event.revision}): ${why}.`;
    head = { revision: event.revision, hash: event.hash };
  }
  return undefined;
}

function disagreement(events: readonly ArenaEvent[]): string | undefined {
  const proposed = events.find((event) => event.type === 'MatchProposed')?.data;
  const played = events.find((event) => event.type === 'MatchPlayed')?.data;
  if (!proposed) return 'it does not begin with a proposal.';
  if (!played) return undefined;
  const { driver, gameVersion, limits, usage } = played.execution;
  const record = {
    game: proposed.game,
    gameVersion,
    seed: proposed.seed,
    driver,
    limits,
    usage,
    outcome: played.outcome,
    agents: proposed.seats.map((seat) => seat.codeDigest),
    turns: events.flatMap((event) => (event.type === 'TurnPlayed' ? [event.data] : [])),
  } as unknown as MatchRecord;
  const { agrees, problem } = replay(record);
  return agrees ? undefined : `${problem}.`;
}
