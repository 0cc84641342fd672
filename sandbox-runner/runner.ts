import { setTimeout as sleep } from 'node:timers/promises';
import { type AgonError, asAgonError, isAgonError, type SigningKey } from '../services/kernel/index.js';
import type { ArenaPort, Attempt, WorkOrder } from './arena-port.js';
import { cleanDetail } from './drivers/driver.js';
import type { MatchAgent, MatchJob, Progress } from './protocol.js';
import type { MatchRecord } from './referee.js';
import { signedReport } from './report.js';

export interface RunnerOptions {
  readonly arena: ArenaPort;
  readonly key: SigningKey;
  readonly pool: {
    play(job: MatchJob, onProgress?: (progress: Progress) => void): Promise<MatchRecord>;
    close(options?: { readonly kill?: boolean }): Promise<void>;
  };
  /** Matches in hand at once; no more is ever claimed. */
  readonly concurrency: number;
  /** Whether turns and logs are passed on as they happen. */
  readonly live?: boolean;
  readonly onPlayed?: (record: MatchRecord) => void;
  /** Hears what the runner does, a line each. */
  readonly say?: (text: string, matchId: string) => void;
}

export interface Runner {
  /** The attempts in hand. */
  holding(): readonly Attempt[];
  /** Claims no more, gives what is in hand this long to end, and hands the rest back. The pool is closed after it. */
  drain(graceMs: number): Promise<void>;
  /** Rejects if the runner cannot go on: its key was revoked, or another process uses it. */
  readonly done: Promise<void>;
}

const BACKOFF_MS = { first: 100, max: 5_000 };
const SOURCES_MAX = 256;
const HANDED_BACK = 'The runner is stopping and hands the match back.';

/** What no waiting mends. */
const isFinal = ({ code }: AgonError) => code.startsWith('RUNNERS.') || code === 'AUTH.FORBIDDEN';

/** Asks for work as long as it has room, plays it in the pool, keeps the lease meanwhile, and reports. */
export function startRunner(options: RunnerOptions): Runner {
  const { arena, concurrency, pool, say = () => {} } = options;
  const stopping = new AbortController();
  const inHand = new Map<string, Promise<void>>();
  const held = new Map<string, Attempt>();
  const sources = new Map<string, string>();

  const begin = (matchId: string) => {
    if (inHand.has(matchId)) return;
    const work = playOne(options, matchId, held, sources)
      .catch((error: unknown) => say(describe(error), matchId))
      .finally(() => inHand.delete(matchId));
    inHand.set(matchId, work);
  };

  const run = async () => {
    for (let failures = 0; !stopping.signal.aborted; ) {
      const room = concurrency - inHand.size;
      if (room < 1) {
        await Promise.race(inHand.values());
        continue;
      }
      try {
        for (const matchId of await arena.next(room, stopping.signal)) begin(matchId);
        failures = 0;
      } catch (thrown) {
        if (stopping.signal.aborted) return;
        const error = asAgonError(thrown);
        say(describe(error), '');
        if (isFinal(error)) throw error;
        failures += 1;
        const waitMs = Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** Math.min(failures - 1, 10));
        await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {});
      }
    }
  };

  const done = run();
  done.catch(() => {});
  return {
    done,
    holding: () => [...held.values()],
    async drain(graceMs) {
      stopping.abort();
      await done.catch(() => {});
      const ended = Promise.all(inHand.values());
      const patience = new AbortController();
      await Promise.race([ended, sleep(graceMs, undefined, { signal: patience.signal }).catch(() => {})]);
      patience.abort();
      // What is still being played is stopped; each match then hands itself back.
      await Promise.all([pool.close({ kill: true }), ...inHand.values()]);
    },
  };
}

async function playOne(
  options: RunnerOptions,
  matchId: string,
  held: Map<string, Attempt>,
  sources: Map<string, string>,
): Promise<void> {
  const { arena, key, onPlayed, say = () => {} } = options;
  const order = await arena.claim(matchId);
  if (!order) return;
  held.set(matchId, { matchId, attempt: order.attempt });
  const lease = keepLease(arena, order);
  try {
    say(`attempt ${order.attempt} of ${order.game} begins`, matchId);
    const record = await play(options, order, sources);
    if (lease.lost()) return say('the lease was lost, and the outcome is dropped', matchId);
    await arena.report(signedReport(key, order, record));
    say(`attempt ${order.attempt} ended by ${record.outcome.reason}`, matchId);
    onPlayed?.(record);
  } catch (error) {
    say(`attempt ${order.attempt} came to nothing: ${describe(error)}`, matchId);
    await giveUp(arena, order, asAgonError(error));
  } finally {
    lease.stop();
    held.delete(matchId);
  }
}

async function giveUp(arena: ArenaPort, order: WorkOrder, error: AgonError): Promise<void> {
  // Not ours any more, or nobody there to tell: the lease decides.
  if (error.code === 'ARENA.LEASE_LOST' || error.code === 'NET.UNAVAILABLE') return;
  // Stopping is not the match's fault.
  if (error.code === 'SANDBOX.CLOSED') return arena.release(order, HANDED_BACK);
  await arena.fail(order, cleanDetail(describe(error)));
}

async function play(options: RunnerOptions, order: WorkOrder, sources: Map<string, string>): Promise<MatchRecord> {
  const { arena, pool, live = false, say = () => {} } = options;
  const { matchId, game, seed, codeDigests, runtimes, agentIds } = order;
  const agents: MatchAgent[] = [];
  for (const [seat, codeDigest] of codeDigests.entries()) {
    if (runtimes[seat] === 'external') {
      agents.push({ codeDigest, source: '', runtime: 'external', agentId: agentIds[seat] ?? '' });
      continue;
    }
    const source = sources.get(codeDigest) ?? Buffer.from(await arena.artifact(codeDigest)).toString();
    // The pool checks every source against its digest, so what is kept here cannot be anything else.
    sources.delete(codeDigest);
    sources.set(codeDigest, source);
    if (sources.size > SOURCES_MAX) sources.delete(sources.keys().next().value as string);
    agents.push({ codeDigest, source, runtime: runtimes[seat] ?? 'javascript', agentId: agentIds[seat] ?? '' });
  }
  const onProgress = (progress: Progress) => {
    if (progress.kind === 'log') say(`seat ${progress.seat}: ${progress.text}`, matchId);
    arena.progress(order, progress);
  };
  return pool.play({ matchId, game, seed, agents }, live ? onProgress : undefined);
}

/** Three heartbeats fit into a lease, so that one that gets lost costs nothing. */
function keepLease(arena: ArenaPort, order: WorkOrder): { lost(): boolean; stop(): void } {
  let lost = false;
  const timer = setInterval(
    () => {
      arena.heartbeat(order).catch((error: unknown) => {
        lost ||= isAgonError(error, 'ARENA.LEASE_LOST');
      });
    },
    Math.max(100, order.leaseMs / 3),
  );
  return { lost: () => lost, stop: () => clearInterval(timer) };
}

function describe(error: unknown): string {
  const { code, message } = asAgonError(error);
  return `${code}: ${message}`;
}
