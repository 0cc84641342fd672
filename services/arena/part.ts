import { setTimeout as sleep } from 'node:timers/promises';
import { upcast } from '../index.js';
import {
  type Checkpoints,
  type Command,
  type Consumer,
  derivedId,
  heldBack,
  newMeta,
  SYSTEM,
} from '../kernel/index.js';
import { type Execute, type Follows, followDue, type MetaOf, sweep } from '../runtime/due.js';
import type { Host } from '../runtime/host.js';
import { definePart } from '../runtime/part.js';
import type { Leading } from '../runtime/serve.js';
import type { Config } from '../runtime/settings.js';
import { writeSide } from '../runtime/write-side.js';
import { AbandonMatch, type ArenaEvent, ExpireLease, ExpireMatch, WaitingMatches, WorkQueue } from './index.js';

/** After a start, what was waited for while nobody was there gets this long to come. */
const CATCH_UP_MS = 60_000;

/** The queue of open matches, and whoever fills it. */
export interface MatchQueue extends Consumer, Leading {
  readonly queue: WorkQueue;
}

/** The open matches, for one process of the group at a time. Queues that are filled in different processes are different groups. */
export const matchQueueOf = (group: 'runner' | 'table') =>
  definePart({
    name: 'match queue',
    needs: { writeSide },
    start: async ({ writeSide: { execute } }, host) => {
      const filled = await followMatches(host, execute, group);
      addQueueGauges(host, filled.queue);
      return host.follow(group, filled);
    },
  });

export const matchQueue = matchQueueOf('runner');

/** Voids matches that nobody gave the stakes for, or played, in the time that they have. */
export const matchExpiry = definePart({
  name: 'match expiry',
  needs: { writeSide },
  start: async ({ writeSide: { execute } }, host) => {
    const { clock, config } = host;
    const graceMs = Math.min(CATCH_UP_MS, config.stakesWaitS * 1_000, config.runnerWaitS * 1_000);
    const fromMs = Date.parse(clock()) + graceMs;
    const begin = () => {
      const matches = new WaitingMatches(clock, config);
      const due = (meta: MetaOf) => {
        const asked = Date.parse(clock()) < fromMs ? [] : matches.due();
        return asked.map((data) => new ExpireMatch(data, meta('expire match', data.matchId)));
      };
      return { fold: matches, due };
    };
    const consumer = await followDue(host, execute, { group: 'waiting', types: WaitingMatches.types, begin });
    return host.follow('waiting', consumer);
  },
});

/**
 * Fills a queue from the log, and ends leases that run out. Its checkpoint never passes a match that is not over, so that
 * the next start finds every open match again.
 */
export async function followMatches(
  { engines, clock, config, onRetry }: Follows & { readonly config: Pick<Config, 'playWaitMs'> },
  execute: Execute,
  group: string,
): Promise<MatchQueue> {
  const [makeBus, checkpoints] = await Promise.all([engines.bus(), engines.checkpoints()]);
  const queue = new WorkQueue(clock);
  let heard = 0;
  const forget = () => {
    queue.clear();
    heard = 0;
  };
  const held = heldBack(checkpoints, () => queue.firstOpen);
  const behind: Checkpoints = {
    ...held,
    // Whoever asks where to begin hears of every open match again, and of those that ended elsewhere meanwhile not at all.
    load: async (name) => {
      forget();
      heard = await held.load(name);
      return heard;
    },
    save: async (name, position) => {
      await held.save(name, position);
      heard = position;
    },
  };
  const bus = makeBus(behind);
  const consumer = await bus.consume({ group, types: WorkQueue.types }, async (events) => {
    for (const event of events) queue.apply(upcast(event) as never as ArenaEvent & { position: number });
  });
  const tell = (error: unknown) => onRetry(group, error);
  const sweeper = sweep(() => overdue(queue, clock, config.playWaitMs), execute, tell);
  const stop = async () => {
    await sweeper.stop();
    await bus.close();
  };
  return { ...consumer, stop, forget, queue, heard: () => heard, position: held.complete };
}

/** Resolves when this process has the queue and has heard all that was in the log: who asks for work then gets it. */
export async function untilHeard({ engines, signal }: Pick<Host, 'engines' | 'signal'>, { heard, active }: MatchQueue) {
  const known = await (await engines.log()).lastPosition();
  while (active?.() === false || heard() < known) await sleep(1, undefined, { signal });
}

const UNSERVED =
  'No server for agents from outside took it in time: none is open (AGON_PLAY_PORT), or too many play already.';

function overdue(queue: WorkQueue, clock: () => string, playWaitMs: number): readonly Command[] {
  const metaOf = (matchId: string, id: string) => newMeta(SYSTEM, { id, clock, cause: queue.causeOf(matchId) });
  return [
    ...queue.expired().map((lease) => {
      const { matchId, runnerId, attempt } = lease;
      return new ExpireLease(lease, metaOf(matchId, derivedId('expire', matchId, runnerId, attempt, clock())));
    }),
    ...queue.unserved(playWaitMs).map((matchId) => {
      return new AbandonMatch({ matchId, detail: UNSERVED }, metaOf(matchId, derivedId('abandon', matchId, clock())));
    }),
  ];
}

function addQueueGauges({ metrics }: Host, queue: WorkQueue): void {
  const places = (name: string, help: string, of: 'waiting' | 'leased' | 'asking') =>
    metrics.gauges(name, `${help}, by place: runners, or the table of agents from outside.`, 'place', async () => {
      const { runners, table } = queue.counts;
      return Object.entries({ runners: runners[of], table: table[of] });
    });
  places('agon_queue_waiting_matches', 'Matches that wait for a runner', 'waiting');
  places('agon_queue_leased_matches', 'Matches that a runner has in hand', 'leased');
  places('agon_queue_asking_runners', 'Runners that wait for a match', 'asking');
}
