import { z } from 'zod';
import {
  type Actor,
  cents,
  commandsOn,
  defineCommand,
  isStaff,
  isSystem,
  notChosen,
  ownerOf,
  text,
} from '../kernel/index.js';
import { execution, extras, outcome, seat, signed, terms, turn } from './events.js';

const stream = (data: { matchId: string }) => `match-${data.matchId}`;
/** A runner speaks for itself. */
const isThatRunner = (actor: Actor, data: { runnerId: string }) =>
  actor.role === 'system' || (actor.role === 'runner' && actor.id === data.runnerId);
const byRunner = commandsOn<{ matchId: string; runnerId: string }>(stream, isThatRunner);
const byStaff = commandsOn(stream, isStaff);
const bySystem = commandsOn(stream, isSystem);
const leaseMs = z.int().min(1_000).max(3_600_000);
/** Checked as an event's is, by a call: zod compiles no schema that refers to itself, nor one around it. */
const { action: json } = turn.shape;
const action = z.custom<z.output<typeof json>>((value) => json.safeParse(value).success);
const runnerId = notChosen('names the runner that sends it', z.string().min(1).max(80));
const attempt = { matchId: z.uuid(), runnerId, attempt: z.int().min(1) };
/** Of staff, runners or the arena itself. */
const because = (lengthMin = 0) => notChosen('is said by those who run it', text(400, lengthMin));

export class ProposeMatch extends defineCommand({
  type: 'ProposeMatch',
  data: z.object({
    ...terms,
    // 16 digits: the pot of 16 such stakes still fits an amount, so what is accepted here can be settled.
    stakeCents: cents.max(16, 'must be at most 16 digits'),
    seed: notChosen('is for machines, and decides nothing but chance', text(80, 1)),
    seats: z.array(seat).min(2).max(16),
    rakeBps: z.int().min(500, 'is 500 to 1500 (5 to 15 percent)').max(1500, 'is 500 to 1500 (5 to 15 percent)'),
    ...extras,
  }),
  stream,
  // A proposal stakes the money of every seat. Until owners can agree to a match, only the house may propose one, and
  // whose money it is follows from whose agent sits there.
  allow: (actor, { seats }) =>
    isStaff(actor) && seats.every(({ agentId, accountId }) => ownerOf(agentId) === accountId),
}) {}

export class EscrowStake extends bySystem('EscrowStake', z.object({ matchId: z.uuid(), seat: z.int().min(0) })) {}

/** The fee for running a seat is held. */
export class EscrowCompute extends bySystem('EscrowCompute', z.object({ matchId: z.uuid(), seat: z.int().min(0) })) {}
export class EscrowBounty extends bySystem('EscrowBounty', z.object({ matchId: z.uuid() })) {}

/** Something that the match needs was not held: a stake, a fee for compute, or the bounty. */
export class RefuseStake extends bySystem(
  'RefuseStake',
  z.object({ matchId: z.uuid(), seat: z.int().min(0).optional(), detail: because() }),
) {}

export class ClaimMatch extends byRunner(
  'ClaimMatch',
  z.object({
    matchId: z.uuid(),
    runnerId,
    leaseMs,
    /** Only the arena's own table has a way to agents outside. */
    table: z.boolean().default(false),
  }),
) {}

export class ExtendLease extends byRunner('ExtendLease', z.object({ ...attempt, leaseMs })) {}

/** Asked for by the arena itself when a lease has run out; does nothing if it was extended meanwhile. */
export class ExpireLease extends bySystem('ExpireLease', z.object(attempt)) {}

/**
 * Asked for by the arena itself when a match has waited for too long for its stakes or for a runner; does nothing if it
 * has got on meanwhile.
 */
export class ExpireMatch extends bySystem(
  'ExpireMatch',
  z.object({
    matchId: z.uuid(),
    status: z.enum(['proposed', 'ready']),
    attempts: z.int().min(0),
    waitedS: z.int().min(0),
  }),
) {}

export class ReportMatch extends defineCommand({
  type: 'ReportMatch',
  data: z.object({
    ...attempt,
    turns: z.array(turn.extend({ action })).max(500),
    outcome,
    execution,
    signed: signed.nullable().default(null),
  }),
  stream,
  // What comes from a runner is signed. Only simulations, which act as the arena itself, do without.
  allow: (actor, data) => isThatRunner(actor, data) && (actor.role === 'system' || data.signed !== null),
}) {}

export class FailAttempt extends byRunner('FailAttempt', z.object({ ...attempt, reason: because() })) {}
export class ReleaseMatch extends byRunner('ReleaseMatch', z.object({ ...attempt, reason: because() })) {}

/** Asked for by the arena itself when nobody takes a match that is ready; does nothing once somebody has. */
export class AbandonMatch extends bySystem('AbandonMatch', z.object({ matchId: z.uuid(), detail: because() })) {}
export class VoidMatch extends byStaff('VoidMatch', z.object({ matchId: z.uuid(), detail: because() })) {}

/** Undoes a settled match: every stake goes back. Who decides that it was wrong is not the arena's to say. */
export class ReverseMatch extends byStaff('ReverseMatch', z.object({ matchId: z.uuid(), reason: because(1) })) {}
