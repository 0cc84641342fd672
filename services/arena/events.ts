import { z } from 'zod';
import { cents, currency, type DomainEvent, defineEvents, type EventOf, slug, text } from '../kernel/index.js';

export const seat = z.object({
  agentId: z.string().min(3).max(80),
  accountId: slug,
  version: z.int().min(1),
  codeDigest: z.string().regex(/^[0-9a-f]{64}$/),
});

export const turn = z.object({
  turn: z.int().min(0),
  seat: z.int().min(0),
  action: z.json(),
  /** Deterministic compute spent, in the driver's fuel. */
  fuel: z.int().min(0),
});

export const outcome = z.object({
  winner: z.int().min(0).nullable(),
  /** One a seat, in 0 to 1; they sum to 1. */
  scores: z.array(z.number().min(0).max(1)),
  /** The rule that ended the game, e.g. line, full_board, illegal_move, crash, out_of_fuel. */
  reason: text(40, 1),
  detail: text(400),
  seatAtFault: z.int().min(0).nullable(),
});

/** How it was run: what an audit needs to run it again. */
export const execution = z.object({
  driver: z.string().max(40),
  gameVersion: z.int().min(1),
  limits: z.record(z.string(), z.number()),
  usage: z.array(z.object({ fuel: z.int().min(0), peakMemoryBytes: z.int().min(0) })),
});

export const terms = {
  matchId: z.uuid(),
  game: z.string().min(1).max(40),
  stakeCents: cents,
  currency,
};

const matchId = z.uuid();
const paidSeat = z.object({ agentId: z.string(), accountId: slug, score: z.number(), payoutCents: cents });

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const arenaEvents = defineEvents('arena', {
  MatchProposed: {
    version: 1,
    schema: z.object({ ...terms, seed: z.string().min(1).max(80), seats: z.array(seat), rakeBps: z.int() }),
  },
  StakeEscrowed: { version: 1, schema: z.object({ matchId, seat: z.int() }) },
  MatchReady: { version: 1, schema: z.object({ matchId }) },
  MatchClaimed: {
    version: 1,
    schema: z.object({ matchId, runnerId: z.string(), attempt: z.int().min(1), leaseUntil: z.iso.datetime() }),
  },
  MatchRequeued: { version: 1, schema: z.object({ matchId, attempt: z.int().min(1), reason: z.string().max(400) }) },
  TurnPlayed: { version: 1, schema: turn.extend({ matchId }) },
  MatchPlayed: {
    version: 1,
    schema: z.object({ matchId, runnerId: z.string(), attempt: z.int().min(1), outcome, execution }),
  },
  MatchSettled: {
    version: 1,
    schema: z.object({ ...terms, potCents: cents, rakeCents: cents, seats: z.array(paidSeat) }),
  },
  MatchVoided: {
    version: 1,
    schema: z.object({
      ...terms,
      reason: z.enum(['stake_refused', 'runner_failed', 'operator']),
      detail: z.string().max(400),
      seats: z.array(z.object({ agentId: z.string(), accountId: slug })),
    }),
  },
});

export type ArenaEvent = EventOf<typeof arenaEvents>;
type Of<Type extends ArenaEvent['type']> = Extract<ArenaEvent, DomainEvent<Type>>;
export type MatchProposed = Of<'MatchProposed'>;
export type MatchSettled = Of<'MatchSettled'>;
export type MatchVoided = Of<'MatchVoided'>;
export type MatchOutcome = z.output<typeof outcome>;
export type MatchExecution = z.output<typeof execution>;
export type Turn = z.output<typeof turn>;
