import { upcast } from '../../projections/views.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import {
  type Checkpoints,
  type Clock,
  type Command,
  type Consumer,
  derivedId,
  type EventStore,
  type Handled,
  isAgonError,
  newMeta,
  SYSTEM,
} from '../../services/kernel/index.js';
import { ExpireHolds, ExpiringHolds, type WalletEvent } from '../../services/wallet/index.js';

const SWEEP_MS = 500;
const GROUP = 'expiry';

interface ExpiryOptions {
  readonly store: EventStore;
  readonly checkpoints: Checkpoints;
  readonly clock: Clock;
  execute(command: Command): Promise<Handled>;
  onRetry(group: string, error: unknown): void;
}

/** Gives back holds whose time has run out. Its checkpoint never passes one that has not ended. */
export async function followExpiry(options: ExpiryOptions): Promise<Consumer> {
  const { store, checkpoints, clock, execute, onRetry } = options;
  const holds = new ExpiringHolds(clock);
  const behind: Checkpoints = {
    load: (group) => checkpoints.load(group),
    save: (group, position) => checkpoints.save(group, holds.completeUpTo(position)),
    reset: (group) => checkpoints.reset(group),
    bury: (letter) => checkpoints.bury(letter),
    deadLetters: (group) => checkpoints.deadLetters(group),
  };
  const bus = new EmbeddedBus(store, behind, onRetry);
  const consumer = await bus.consume({ group: GROUP, types: ExpiringHolds.types }, async (events) => {
    for (const event of events) holds.apply(upcast(event) as never as WalletEvent & { position: number });
  });
  const sweep = async () => {
    for (const accountId of holds.due()) {
      const meta = newMeta(SYSTEM, { id: derivedId('expire holds', accountId, clock()), clock });
      await execute(new ExpireHolds({ accountId }, meta)).catch((error: unknown) => {
        // A log that is closing has no more to say about holds.
        if (!isAgonError(error, 'STORE.CLOSED')) onRetry(GROUP, error);
      });
    }
  };
  const sweeper = setInterval(() => void sweep(), SWEEP_MS);
  const stop = async () => {
    clearInterval(sweeper);
    await bus.close();
  };
  return { stop, done: consumer.done, position: () => consumer.position() };
}
