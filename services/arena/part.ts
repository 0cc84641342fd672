import { setTimeout as sleep } from 'node:timers/promises';
import type { DeskPorts } from '../../gateway/grpc/desk.js';
import { deskOf, registerRunner, registrationText } from '../../gateway/grpc/desk.js';
import { upcast } from '../../projections/views.js';
import type { ArenaPort, Progress } from '../../sandbox-runner/index.js';
import { heldBack } from '../adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../adapters/bus/embedded.js';
import {
  type Bus,
  type Checkpoints,
  type Clock,
  type Command,
  type Consumer,
  canonical,
  derivedId,
  type EventStore,
  type Handled,
  isAgonError,
  newMeta,
  type SigningKey,
  SYSTEM,
} from '../kernel/index.js';
import { AbandonMatch, type ArenaEvent, ExpireLease, WorkQueue } from './index.js';

const SWEEP_MS = 500;
const PLAY_WAIT_MS = 600_000;

interface QueueOptions {
  readonly store: EventStore;
  readonly checkpoints: Checkpoints;
  /** What carries the events; the log itself when left out. */
  readonly makeBus?: (checkpoints: Checkpoints) => Bus;
  readonly queue: WorkQueue;
  readonly clock: Clock;
  /** Queues that are filled in different processes are different groups. */
  readonly group?: string;
  /** How long a match with agents from outside waits for a table before it is voided. */
  readonly playWaitMs?: number;
  execute(command: Command): Promise<Handled>;
  onRetry(group: string, error: unknown): void;
}

/** Whoever fills a queue. */
export interface Work extends Consumer {
  /** How far it has heard: further than what is done for good, while a match is open. */
  heard(): number;
  /** For a member of a group that has lost it: what the queue says is another one's to say. */
  forget(): void;
}

/**
 * Fills the queue from the log, and ends leases that run out. Its checkpoint never passes a match that is not over, so
 * that the next start finds every open match again.
 */
export async function followWork(options: QueueOptions): Promise<Work> {
  const { store, checkpoints, queue, onRetry, group = 'runner' } = options;
  const { makeBus = (behind: Checkpoints) => new EmbeddedBus(store, behind, onRetry) } = options;
  let heard = 0;
  const forget = () => {
    queue.clear();
    heard = 0;
  };
  const held = heldBack(checkpoints, (position) => queue.completeUpTo(position));
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
  // A member of a group may stand by for another one for ever, and has nothing to wait for.
  const known = options.makeBus ? 0 : await store.lastPosition();
  while (consumer.position() < known) await sleep(1);
  const sweeper = setInterval(() => void sweep(options), SWEEP_MS);
  const stop = async () => {
    clearInterval(sweeper);
    await bus.close();
  };
  return { ...consumer, stop, forget, heard: () => heard, position: () => queue.completeUpTo(heard) };
}

const UNSERVED =
  'No door for agents from outside took it in time: none is open (AGON_PLAY_PORT), or too many play already.';

async function sweep(options: QueueOptions): Promise<void> {
  const { queue, clock, execute, onRetry, group = 'runner', playWaitMs = PLAY_WAIT_MS } = options;
  const metaOf = (matchId: string, id: string) => newMeta(SYSTEM, { id, clock, cause: queue.causeOf(matchId) });
  const commands = [
    ...queue.expired().map((lease) => {
      const { matchId, runnerId, attempt } = lease;
      return new ExpireLease(lease, metaOf(matchId, derivedId('expire', matchId, runnerId, attempt, clock())));
    }),
    ...queue.unserved(playWaitMs).map((matchId) => {
      return new AbandonMatch({ matchId, detail: UNSERVED }, metaOf(matchId, derivedId('abandon', matchId, clock())));
    }),
  ];
  for (const command of commands) {
    await execute(command).catch((error: unknown) => {
      // A log that is closing has no more to say about leases.
      if (!isAgonError(error, 'STORE.CLOSED')) onRetry(group, error);
    });
  }
}

/** The write side for a runner in the same process: the same desk that gRPC serves, without the wire. */
export async function localArena(
  ports: DeskPorts,
  key: SigningKey,
  table = false,
  claimIds: (matchId: string) => string = () => ports.ids(),
): Promise<ArenaPort> {
  const { publicKey } = key;
  const time = ports.clock();
  const signature = key.sign(registrationText(publicKey, time));
  const runnerId = await registerRunner(ports, { publicKey, time, signature, holding: [] });
  const desk = deskOf(ports, runnerId, table);
  const progress = ({ matchId, attempt }: { matchId: string; attempt: number }, what: Progress) => {
    const turn = what.kind === 'turn';
    desk.progress(
      { matchId, attempt },
      turn
        ? { $case: 'turnJson', turnJson: canonical(what.turn) }
        : { $case: 'log', log: { seat: what.seat, text: what.text } },
    );
  };
  return { ...desk, claim: (matchId) => desk.claim(matchId, claimIds(matchId)), progress };
}
