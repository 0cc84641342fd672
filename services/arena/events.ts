import { z } from 'zod';
import {
  cents,
  currency,
  type DomainEvent,
  defineEvents,
  type EventOf,
  notChosen,
  positiveCents,
  publicKeyHex,
  seatRuntime,
  signatureHex,
  slug,
  text,
  version1,
} from '../kernel/index.js';

const byRunner = 'is what a runner reports';

export const seat = z.object({
  agentId: notChosen('names an agent that is there', z.string().min(3).max(80)),
  accountId: slug,
  version: z.int().min(1),
  codeDigest: z.string().regex(/^[0-9a-f]{64}$/),
  runtime: seatRuntime,
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
  reason: notChosen(byRunner, text(40, 1)),
  detail: notChosen(byRunner, text(400)),
  seatAtFault: z.int().min(0).nullable(),
});

const count = z.int().min(0);
/** What one seat asked of one place on the network, and how many bytes went there and came back. */
const egress = z.object({
  host: notChosen(byRunner, text(260, 1)),
  port: z.int().min(0).max(65_535),
  requests: count,
  refused: count,
  bytesIn: count,
  bytesOut: count,
});

/** What one seat took, in the unit of its driver, and what ran it. What is measured in time never comes out twice the same. */
const usage = z.object({
  fuel: z.int().min(0),
  peakMemoryBytes: z.int().min(0),
  cpuMs: z.number().min(0).optional(),
  wallMs: z.number().min(0).optional(),
  driver: notChosen(byRunner, z.string().max(40)).optional(),
  driverVersion: notChosen(byRunner, z.string().max(200)).optional(),
  meter: z.enum(['fuel', 'time', 'clock']).optional(),
  /** What an agent outside says it took to think. Nobody here could check; `wallMs` less this is the way there and back. */
  claimedComputeMs: z.number().min(0).optional(),
  /** What went through the egress proxy, by place. Left out for a seat that was granted none. */
  egress: z.array(egress).max(64).optional(),
});

/** How it was run: what an audit needs to run it again. */
export const execution = z.object({
  driver: notChosen(byRunner, z.string().max(40)),
  gameVersion: z.int().min(1),
  limits: z.record(z.string(), z.number()),
  usage: z.array(usage),
  /** Said where egress was granted: such a match need not come out the same again. */
  deterministic: z.literal(false).optional(),
});

/** Who vouches for the outcome: the runner's registered key and its signature over the kernel's `reportText`. */
export const signed = z.object({ publicKey: publicKeyHex, signature: signatureHex });

export const terms = {
  matchId: z.uuid(),
  game: notChosen('names a game of the arena', z.string().min(1).max(40)),
  stakeCents: cents,
  currency,
};

/** A prize that a sponsor adds to the pot. No rake is taken of it. */
const bounty = z.object({
  bountyId: notChosen('is an id that the arena gave', z.string().min(1).max(120)),
  sponsorId: slug,
  amountCents: positiveCents,
});

/** Left out by matches that were proposed before there was such a thing, so that they read as they always did. */
export const extras = {
  /** How long winnings are playable before they are withdrawable. */
  disputeWindowMs: z.int().min(0).optional(),
  bounty: bounty.optional(),
  /** What each seat pays for being run, in COMPUTE. */
  computeCents: positiveCents.optional(),
  /** Among matches that wait, a higher one is played first. Fixed with the terms, whatever becomes of plans later. */
  priority: z.int().min(1).max(9).optional(),
};

const matchId = z.uuid();
const attempt = { matchId, runnerId: z.string(), attempt: z.int().min(1) };
const party = z.object({ agentId: z.string(), accountId: slug });
const paidSeat = party.extend({ score: z.number(), payoutCents: cents, bountyCents: positiveCents.optional() });
/** What nobody won of a bounty goes back to its sponsor. */
const paidBounty = bounty.extend({ remainderCents: cents });
const settlement = {
  ...terms,
  potCents: cents,
  rakeCents: cents,
  seats: z.array(paidSeat),
  bounty: paidBounty.optional(),
};
const { computeCents } = extras;
const same = (data: Record<string, unknown>) => data;

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const arenaEvents = defineEvents('arena', {
  MatchProposed: {
    version: 4,
    schema: z.object({ ...terms, seed: z.string().min(1).max(80), seats: z.array(seat), rakeBps: z.int(), ...extras }),
    upcast: {
      // In the days of version 1 every agent was written in JavaScript.
      1: (data) => ({
        ...data,
        seats: (data.seats as object[]).map((seat) => ({ ...seat, runtime: 'javascript' })),
      }),
      2: same,
      // Nobody played from outside before version 4.
      3: same,
    },
  },
  StakeEscrowed: version1({ matchId, seat: z.int() }),
  ComputeEscrowed: version1({ matchId, seat: z.int() }),
  BountyEscrowed: version1({ matchId }),
  /** What was held came when the match was over, and goes back. */
  EscrowDeclined: version1({
    matchId,
    accountId: slug,
    held: z.enum(['stake', 'compute', 'bounty']),
    seat: z.int().min(0).optional(),
  }),
  MatchReady: { version: 2, schema: z.object({ matchId, priority: extras.priority }), upcast: { 1: same } },
  MatchClaimed: version1({ ...attempt, leaseUntil: z.iso.datetime() }),
  LeaseExtended: version1({ ...attempt, leaseUntil: z.iso.datetime() }),
  /** Handed back untouched, by a runner that stops: no failed attempt. */
  MatchReleased: version1({ ...attempt, reason: z.string().max(400) }),
  MatchRequeued: version1({ matchId, attempt: z.int().min(1), reason: z.string().max(400) }),
  TurnPlayed: { version: 1, schema: turn.extend({ matchId }) },
  MatchPlayed: {
    version: 4,
    schema: z.object({ ...attempt, outcome, execution: execution.extend({ signed: signed.nullable() }) }),
    // Nobody signed in the days of version 1, had egress in those of version 2, or played from outside in those of 3.
    upcast: {
      1: (data) => ({ ...data, execution: { ...(data.execution as object), signed: null } }),
      2: same,
      3: same,
    },
  },
  MatchSettled: {
    version: 2,
    schema: z.object({
      ...settlement,
      computeCents,
      withdrawableAt: z.iso.datetime({ precision: 3 }).optional(),
    }),
    upcast: { 1: same },
  },
  /** The mirror image of a settlement: every stake goes back, and the rake with them. */
  MatchReversed: version1({ ...settlement, reason: z.string().max(400) }),
  MatchVoided: {
    version: 2,
    schema: z.object({
      ...terms,
      reason: z.enum(['stake_refused', 'runner_failed', 'operator']),
      detail: z.string().max(400),
      seats: z.array(party),
      bounty: bounty.optional(),
      computeCents,
    }),
    upcast: { 1: same },
  },
});

export type ArenaEvent = EventOf<typeof arenaEvents>;
type Of<Type extends ArenaEvent['type']> = Extract<ArenaEvent, DomainEvent<Type>>;
export type EscrowDeclined = Of<'EscrowDeclined'>;
export type MatchProposed = Of<'MatchProposed'>;
export type MatchSettled = Of<'MatchSettled'>;
export type MatchReversed = Of<'MatchReversed'>;
export type MatchVoided = Of<'MatchVoided'>;
export type MatchOutcome = z.output<typeof outcome>;
export type MatchExecution = z.output<typeof execution> & { readonly signed: z.output<typeof signed> | null };
export type Turn = z.output<typeof turn>;
