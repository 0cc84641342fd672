import { setTimeout as sleep } from 'node:timers/promises';
import type { DeskPorts } from '../../gateway/grpc/desk.js';
import { deskOf, registerRunner, registrationText } from '../../gateway/grpc/desk.js';
import { upcast } from '../../projections/views.js';
import type { ArenaPort, Progress } from '../../sandbox-runner/index.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { type ArenaEvent, ExpireLease, WorkQueue } from '../../services/arena/index.js';
import {
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
} from '../../services/kernel/index.js';

const SWEEP_MS = 500;

interface QueueOptions {
  readonly store: EventStore;
  readonly checkpoints: Checkpoints;
  readonly queue: WorkQueue;
  readonly clock: Clock;
  execute(command: Command): Promise<Handled>;
  onRetry(group: string, error: unknown): void;
}

/**
 * Fills the queue from the log, and ends leases that run out. Its checkpoint never passes a match that is not over, so
 * that the next start finds every open match again.
 */
export async function followWork(options: QueueOptions): Promise<Consumer> {
  const { store, checkpoints, queue, onRetry } = options;
  const behind: Checkpoints = {
    load: (group) => checkpoints.load(group),
    save: (group, position) => checkpoints.save(group, queue.completeUpTo(position)),
    reset: (group) => checkpoints.reset(group),
    bury: (letter) => checkpoints.bury(letter),
    deadLetters: (group) => checkpoints.deadLetters(group),
  };
  const bus = new EmbeddedBus(store, behind, onRetry);
  const consumer = await bus.consume({ group: 'runner', types: WorkQueue.types }, async (events) => {
    for (const event of events) queue.apply(upcast(event) as never as ArenaEvent & { position: number });
  });
  const known = await store.lastPosition();
  while (consumer.position() < known) await sleep(1);
  const sweeper = setInterval(() => void sweep(options), SWEEP_MS);
  const stop = async () => {
    clearInterval(sweeper);
    await bus.close();
  };
  return { stop, done: consumer.done, position: () => queue.completeUpTo(consumer.position()) };
}

async function sweep({ queue, clock, execute, onRetry }: QueueOptions): Promise<void> {
  for (const lease of queue.expired()) {
    const { matchId, runnerId, attempt } = lease;
    const id = derivedId('expire', matchId, runnerId, attempt, clock());
    await execute(new ExpireLease(lease, newMeta(SYSTEM, { id, clock }))).catch((error: unknown) => {
      // A log that is closing has no more to say about leases.
      if (!isAgonError(error, 'STORE.CLOSED')) onRetry('runner', error);
    });
  }
}

/** The write side for a runner in the same process: the same desk that gRPC serves, without the wire. */
export async function localArena(ports: DeskPorts, key: SigningKey, table = false): Promise<ArenaPort> {
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
  return { ...desk, claim: (matchId) => desk.claim(matchId), progress };
}
