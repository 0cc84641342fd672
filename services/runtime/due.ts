import { upcast } from '../index.js';
import {
  type Checkpoints,
  type Command,
  type CommandMeta,
  type Consumer,
  derivedId,
  type Handled,
  heldBack,
  isAgonError,
  newMeta,
  SYSTEM,
} from '../kernel/index.js';
import type { Host } from './host.js';
import { type Repeating, repeat } from './repeat.js';

const SWEEP_MS = 500;

export type Execute = (command: Command) => Promise<Handled>;
export type MetaOf = (what: string, id: string) => CommandMeta;

/** What whoever follows events by itself needs of a host. */
export interface Follows extends Pick<Host, 'clock' | 'onRetry'> {
  readonly engines: Pick<Host['engines'], 'bus' | 'checkpoints'>;
}

interface Due {
  readonly group: string;
  readonly types: readonly string[];
  begin(): {
    readonly fold: { apply(event: never): void; readonly firstOpen: number | undefined };
    due(meta: MetaOf): readonly Command[];
  };
}

/** Asks for what is due, again and again. Its checkpoint never passes what has still to end. */
export async function followDue(
  { engines, clock, onRetry }: Follows,
  execute: Execute,
  { group, types, begin }: Due,
): Promise<Consumer> {
  const [makeBus, checkpoints] = await Promise.all([engines.bus(), engines.checkpoints()]);
  let following = begin();
  const held = heldBack(checkpoints, () => following.fold.firstOpen);
  const behind: Checkpoints = {
    ...held,
    // What ended while another member had the group is never heard of: begin with nothing.
    load: (name) => {
      following = begin();
      return held.load(name);
    },
  };
  const bus = makeBus(behind);
  const consumer = await bus.consume({ group, types }, async (events) => {
    for (const event of events) following.fold.apply(upcast(event) as never);
  });
  const meta: MetaOf = (what, id) => newMeta(SYSTEM, { id: derivedId(what, id, clock()), clock });
  const tell = (error: unknown) => onRetry(group, error);
  const sweeper = sweep(() => following.due(meta), execute, tell);
  const stop = async () => {
    await sweeper.stop();
    await bus.close();
  };
  return { ...consumer, stop };
}

/** Carries out what is due, again and again. A log that is closing has no more to say about anything. */
export const sweep = (due: () => readonly Command[], execute: Execute, tell: (error: unknown) => void): Repeating =>
  repeat(
    SWEEP_MS,
    async () => {
      for (const command of due()) {
        await execute(command).catch((error: unknown) => {
          if (!isAgonError(error, 'STORE.CLOSED')) tell(error);
        });
      }
    },
    tell,
  );
