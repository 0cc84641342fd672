import { upcast } from '../../projections/views.js';
import { heldBack } from '../adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../adapters/bus/embedded.js';
import { ExpireMatch, type Patience, WaitingMatches } from '../arena/index.js';
import {
  type Bus,
  type Checkpoints,
  type Clock,
  type Command,
  type CommandMeta,
  type Consumer,
  derivedId,
  type EventStore,
  type Handled,
  isAgonError,
  newMeta,
  SYSTEM,
} from '../kernel/index.js';
import { ExpireHolds, ExpiringHolds } from '../wallet/index.js';

const SWEEP_MS = 500;
/** After a start, what was waited for while nobody was there gets this long to come. */
const CATCH_UP_MS = 60_000;

interface ExpiryOptions {
  readonly store: EventStore;
  readonly checkpoints: Checkpoints;
  /** What carries the events; the log itself when left out. */
  readonly makeBus?: (checkpoints: Checkpoints) => Bus;
  readonly clock: Clock;
  execute(command: Command): Promise<Handled>;
  onRetry(group: string, error: unknown): void;
}

/** Gives back holds whose time has run out. */
export function followExpiry(options: ExpiryOptions): Promise<Consumer> {
  const { clock } = options;
  const begin = () => {
    const holds = new ExpiringHolds(clock);
    const due = () =>
      holds.due().map((accountId) => (meta: Meta) => new ExpireHolds({ accountId }, meta('expire holds', accountId)));
    return { fold: holds, due };
  };
  return followDue(options, { group: 'expiry', types: ExpiringHolds.types, begin });
}

/** Voids matches that nobody gave the stakes for, or played, in the time that they have. */
export function followWaiting(options: ExpiryOptions & { readonly config: Patience }): Promise<Consumer> {
  const { clock, config } = options;
  const graceMs = Math.min(CATCH_UP_MS, config.stakesWaitS * 1_000, config.runnerWaitS * 1_000);
  const fromMs = Date.parse(clock()) + graceMs;
  const begin = () => {
    const matches = new WaitingMatches(clock, config);
    const due = () => {
      const asked = Date.parse(clock()) < fromMs ? [] : matches.due();
      return asked.map((data) => (meta: Meta) => new ExpireMatch(data, meta('expire match', data.matchId)));
    };
    return { fold: matches, due };
  };
  return followDue(options, { group: 'waiting', types: WaitingMatches.types, begin });
}

type Meta = (what: string, id: string) => CommandMeta;

interface Due {
  readonly group: string;
  readonly types: readonly string[];
  begin(): {
    readonly fold: { apply(event: never): void; completeUpTo(position: number): number };
    due(): readonly ((meta: Meta) => Command)[];
  };
}

/** Asks for what is due, again and again. Its checkpoint never passes what has still to end. */
async function followDue(options: ExpiryOptions, { group, types, begin }: Due): Promise<Consumer> {
  const { store, checkpoints, clock, execute, onRetry } = options;
  const { makeBus = (behind: Checkpoints) => new EmbeddedBus(store, behind, onRetry) } = options;
  let following = begin();
  const behind: Checkpoints = {
    ...heldBack(checkpoints, (heard) => following.fold.completeUpTo(heard)),
    // What ended while another member had the group is never heard of: begin with nothing.
    load: (name) => {
      following = begin();
      return checkpoints.load(name);
    },
  };
  const bus = makeBus(behind);
  const consumer = await bus.consume({ group, types }, async (events) => {
    for (const event of events) following.fold.apply(upcast(event) as never);
  });
  const meta: Meta = (what, id) => newMeta(SYSTEM, { id: derivedId(what, id, clock()), clock });
  const sweep = async () => {
    for (const make of following.due()) {
      await execute(make(meta)).catch((error: unknown) => {
        // A log that is closing has no more to say about what is due.
        if (!isAgonError(error, 'STORE.CLOSED')) onRetry(group, error);
      });
    }
  };
  const sweeper = setInterval(() => void sweep(), SWEEP_MS);
  const stop = async () => {
    clearInterval(sweeper);
    await bus.close();
  };
  return { ...consumer, stop };
}
