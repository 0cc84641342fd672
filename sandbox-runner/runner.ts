import { type Artifacts, asAgonError, type Bus, type Consumer, isAgonError } from '../services/kernel/index.js';
import { cleanDetail } from './drivers/driver.js';
import type { MatchJob } from './protocol.js';
import type { MatchRecord } from './referee.js';

/** What a runner gets when it claims a match: all it needs to play it. */
export interface WorkOrder {
  readonly matchId: string;
  readonly attempt: number;
  readonly game: string;
  readonly seed: string;
  readonly codeDigests: readonly string[];
}

/** The write side, as a runner sees it. Only the write side turns a report into events. */
export interface ArenaPort {
  /** Undefined when there is nothing to do: the match is over, or another runner has it. */
  claim(matchId: string): Promise<WorkOrder | undefined>;
  report(order: WorkOrder, record: MatchRecord): Promise<void>;
  fail(order: WorkOrder, reason: string): Promise<void>;
}

export interface RunnerOptions {
  readonly bus: Bus;
  readonly artifacts: Artifacts;
  readonly arena: ArenaPort;
  readonly pool: { play(job: MatchJob): Promise<MatchRecord> };
  /** Matches taken in hand at once. */
  readonly concurrency: number;
  readonly onPlayed?: (record: MatchRecord) => void;
}

/**
 * Claims matches that are ready, plays them in the pool, and reports. A batch is done when all its matches are
 * reported, so a runner that dies is given them again: the claim decides whether there is anything left to do.
 */
export function startRunner(options: RunnerOptions): Promise<Consumer> {
  const { bus, concurrency } = options;
  const types = ['MatchReady', 'MatchRequeued'];
  return bus.consume({ group: 'runner', types, batchSize: concurrency }, async (events) => {
    const matchIds = new Set(events.map((event) => (event.data as { matchId: string }).matchId));
    const results = await Promise.allSettled([...matchIds].map((matchId) => playOne(options, matchId)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  });
}

async function playOne({ arena, artifacts, pool, onPlayed }: RunnerOptions, matchId: string): Promise<void> {
  const order = await arena.claim(matchId);
  if (!order) return;
  let record: MatchRecord;
  try {
    const { game, seed, codeDigests } = order;
    const agents = await Promise.all(
      codeDigests.map(async (codeDigest) => ({
        codeDigest,
        source: Buffer.from(await artifacts.get(codeDigest)).toString(),
      })),
    );
    record = await pool.play({ matchId, game, seed, agents });
  } catch (error) {
    // Stopping is not the match's fault: it stays claimed, and the next start takes it up again.
    if (isAgonError(error, 'SANDBOX.CLOSED')) throw error;
    const { code, message } = asAgonError(error);
    return arena.fail(order, cleanDetail(`${code}: ${message}`));
  }
  await arena.report(order, record);
  onPlayed?.(record);
}
