import type { SeatRuntime } from '../services/kernel/index.js';
import type { Progress } from './protocol.js';

export interface Attempt {
  readonly matchId: string;
  readonly attempt: number;
}

/** What a runner gets when it claims a match: all it needs to play it. */
export interface WorkOrder extends Attempt {
  readonly game: string;
  readonly seed: string;
  readonly codeDigests: readonly string[];
  /** By seat, as the digests. */
  readonly runtimes: readonly SeatRuntime[];
  /** By seat: what a policy of egress names agents by. */
  readonly agentIds: readonly string[];
  /** How long the attempt is this runner's without a heartbeat. */
  readonly leaseMs: number;
}

/** The report in RFC 8785 form, and the runner's Ed25519 signature over its UTF-8 in hex. */
export interface SignedReport {
  readonly text: string;
  readonly signature: string;
}

/**
 * The write side, as a runner sees it. Only the write side turns a report into events. ARENA.LEASE_LOST says that the
 * attempt is no longer this runner's.
 */
export interface ArenaPort {
  /** At most `capacity` matches worth claiming. Waits a while for the first; none when there are none, or on abort. */
  next(capacity: number, signal: AbortSignal): Promise<readonly string[]>;
  /** Undefined when there is nothing to do: the match is over, or another runner has it. */
  claim(matchId: string): Promise<WorkOrder | undefined>;
  heartbeat(attempt: Attempt): Promise<void>;
  report(report: SignedReport): Promise<void>;
  /** The attempt broke down, and counts. */
  fail(attempt: Attempt, reason: string): Promise<void>;
  /** The attempt is handed back untouched, and does not count. */
  release(attempt: Attempt, reason: string): Promise<void>;
  artifact(digest: string): Promise<Uint8Array>;
  /** For those who watch. It may get lost, and never fails. */
  progress(attempt: Attempt, progress: Progress): void;
}
