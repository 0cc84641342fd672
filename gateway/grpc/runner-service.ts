import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';
import {
  type ArenaEvent,
  arenaEvents,
  ClaimMatch,
  ExtendLease,
  FailAttempt,
  ReleaseMatch,
  ReportMatch,
  type WorkQueue,
} from '../../services/arena/index.js';
import {
  type Actor,
  AgonError,
  type Artifacts,
  type Cause,
  type Clock,
  type Command,
  type CommandMeta,
  canonical,
  derivedId,
  type EventStore,
  type Handled,
  type Ids,
  invariant,
  isAgonError,
  isSignedBy,
  type Load,
  newMeta,
  runnerIdOf,
  upcasterOf,
} from '../../services/kernel/index.js';
import { RegisterRunner, runners, trustedKey } from '../../services/runners/index.js';
import type { LiveMatches } from '../live/matches.js';

const upcast = upcasterOf([arenaEvents]);

export interface RunnerServicePorts {
  readonly store: EventStore;
  readonly load: Load;
  readonly artifacts: Artifacts;
  readonly queue: WorkQueue;
  readonly live: LiveMatches;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly leaseMs: number;
  execute(command: Command): Promise<Handled>;
}

interface Attempt {
  readonly matchId: string;
  readonly attempt: number;
}

export interface Registration {
  readonly publicKey: string;
  readonly time: string;
  readonly signature: string;
  readonly holding: readonly Attempt[];
}

/** A registration that is older or newer than this was not meant for now. */
const CLOCK_SKEW_MS = 5 * 60_000;
/** The match is over, with somebody else, or not for this kind of runner. */
const NOTHING_TO_DO = ['ARENA.NOT_READY', 'ARENA.LEASED', 'ARENA.NOT_FOR_YOU'];
const RESTARTED = 'The runner started again and no longer has this attempt.';

export const registrationText = (publicKey: string, time: string): string =>
  canonical({ kind: 'agon.runner-registration.v1', publicKey, time });

/** Makes a key known as a runner, and takes back what its holder had in hand and has lost. Returns the runner's id. */
export async function registerRunner(ports: RunnerServicePorts, registration: Registration): Promise<string> {
  const { store, queue, clock, execute } = ports;
  const { publicKey, time, signature, holding } = registration;
  if (!isSignedBy(publicKey, registrationText(publicKey, time), signature)) {
    throw new AgonError('RUNNERS.BAD_SIGNATURE', 'The registration is not signed by its key.');
  }
  // Written so that a time that is none is refused as well.
  if (!(Math.abs(Date.parse(clock()) - Date.parse(time)) <= CLOCK_SKEW_MS)) {
    throw new AgonError('RUNNERS.CLOCK_SKEW', `The registration is of ${time}, and it is ${clock()} here.`);
  }
  const runnerId = runnerIdOf(publicKey);
  const meta = newMetaOf(runnerId, clock);
  // The id is that of the place in the stream: a key that was revoked since does not pass for one that came before.
  const { revision = -1 } = (await store.head(`runner-${runnerId}`)) ?? {};
  await execute(new RegisterRunner({ runnerId, publicKey }, meta(derivedId('register', runnerId, revision))));
  const kept = new Set(holding.map(({ matchId, attempt }) => `${matchId}/${attempt}`));
  for (const { matchId, attempt } of queue.leasesOf(runnerId)) {
    if (kept.has(`${matchId}/${attempt}`)) continue;
    const data = { matchId, runnerId, attempt, reason: RESTARTED };
    const id = derivedId('fail', matchId, runnerId, attempt);
    await unlessLost(execute(new FailAttempt(data, meta(id, queue.causeOf(matchId)))));
  }
  return runnerId;
}

/**
 * The write side as one runner sees it, for runners in this process and behind gRPC alike. Command ids name the
 * attempt, so a call that is repeated is carried out once. Only the arena's own `table` gets matches with agents from
 * outside.
 */
export function runnerServiceOf(ports: RunnerServicePorts, runnerId: string, table = false) {
  const { store, load, artifacts, queue, live, clock, ids, leaseMs, execute } = ports;
  const metaOf = newMetaOf(runnerId, clock);
  /** Whatever is done with a match belongs to what its proposal began. */
  const meta = (matchId: string, id: string) => metaOf(id, queue.causeOf(matchId));

  return {
    next: (capacity: number, signal: AbortSignal) => queue.next(capacity, signal, table),

    async claim(matchId: string, claimId = ids()) {
      try {
        const id = derivedId('claim', matchId, runnerId, claimId);
        const { events } = await execute(new ClaimMatch({ matchId, runnerId, leaseMs, table }, meta(matchId, id)));
        const claimed = (events as readonly ArenaEvent[]).find((event) => event.type === 'MatchClaimed');
        if (!claimed) return undefined;
        const [first] = (await store.readStream(`match-${matchId}`, { limit: 1 })).map(upcast) as readonly ArenaEvent[];
        invariant(first?.type === 'MatchProposed', `match-${matchId} starts with its proposal.`);
        const { game, seed, seats } = first.data;
        const codeDigests = seats.map((seat) => seat.codeDigest);
        const runtimes = seats.map((seat) => seat.runtime);
        const agentIds = seats.map((seat) => seat.agentId);
        return { matchId, attempt: claimed.data.attempt, game, seed, codeDigests, runtimes, agentIds, leaseMs };
      } catch (error) {
        if (NOTHING_TO_DO.some((code) => isAgonError(error, code))) return undefined;
        throw error;
      }
    },

    async heartbeat({ matchId, attempt }: Attempt): Promise<void> {
      const id = derivedId('extend', matchId, runnerId, attempt, clock());
      await execute(new ExtendLease({ matchId, runnerId, attempt, leaseMs }, meta(matchId, id)));
    },

    /** The signature is checked before anything of the text is believed. The decision checks it against the facts. */
    async report({ text, signature }: { readonly text: string; readonly signature: string }): Promise<void> {
      const publicKey = trustedKey((await load(runners, runnerId, 'tail')).state);
      if (publicKey === undefined) throw new AgonError('RUNNERS.UNKNOWN', `No key is registered for ${runnerId}.`);
      if (!isSignedBy(publicKey, text, signature)) {
        throw new AgonError('ARENA.BAD_SIGNATURE', `The report is not signed by runner ${runnerId}.`);
      }
      const { matchId, attempt, turns, outcome, execution } = readReport(text);
      const data = { matchId, runnerId, attempt, turns, outcome, execution, signed: { publicKey, signature } };
      await execute(
        new ReportMatch(
          data as never,
          meta(String(matchId), derivedId('report', String(matchId), runnerId, String(attempt))),
        ),
      );
    },

    async fail({ matchId, attempt }: Attempt, reason: string): Promise<void> {
      const data = { matchId, runnerId, attempt, reason };
      await execute(new FailAttempt(data, meta(matchId, derivedId('fail', matchId, runnerId, attempt))));
    },

    /** What is handed back may be claimed again under the same number, so the id is that of the lease's place. */
    async release({ matchId, attempt }: Attempt, reason: string): Promise<void> {
      const head = await store.head(`match-${matchId}`);
      const id = derivedId('release', matchId, runnerId, head?.revision ?? 0);
      await unlessLost(execute(new ReleaseMatch({ matchId, runnerId, attempt, reason }, meta(matchId, id))));
    },

    artifact: (digest: string) => artifacts.get(digest),

    progress(attempt: Attempt, what: NonNullable<Progress['what']>): void {
      if (queue.holds({ ...attempt, runnerId })) live.publish({ ...attempt, what });
    },
  };
}

const newMetaOf = (runnerId: string, clock: Clock) => {
  const actor: Actor = { id: runnerId, role: 'runner' };
  return (id: string, cause?: Cause): CommandMeta => newMeta(actor, { id, clock, cause });
};

function readReport(text: string): Record<string, unknown> {
  try {
    const report = JSON.parse(text) as unknown;
    if (typeof report === 'object' && report !== null) return report as Record<string, unknown>;
  } catch {}
  throw new AgonError('ARENA.BAD_REPORT', 'The report is not a JSON object.');
}

/** Whoever gives something up does not mind that it was taken away already. */
const unlessLost = (work: Promise<unknown>) =>
  work.catch((error: unknown) => {
    if (!isAgonError(error, 'ARENA.LEASE_LOST')) throw error;
  });
