import { upcast } from '../index.js';
import { type Command, type Consumer, type Handled, heldBack, isAgonError, type Load } from '../kernel/index.js';
import type { Follows } from '../runtime/due.js';
import { definePart } from '../runtime/part.js';
import { writeSide } from '../runtime/write-side.js';
import type { PaymentProvider } from './index.js';
import { carryOut, outgoingTypes } from './outgoing.js';

const RETRY_MS = { first: 100, most: 30_000 } as const;
const GROUP = 'payments.outgoing';

/** Makes the calls that payments ask for, where somebody takes real money. */
export const paymentCalls = definePart({
  name: 'payments',
  needs: { writeSide },
  start: async ({ writeSide: { execute, load } }, host) => {
    const provider = await host.engines.payments();
    const ready = async () => provider?.title ?? 'play credits only: there is no key for Stripe';
    if (!provider) return { value: undefined, ready };
    const { stop } = host.follow(GROUP, await followPayments(host, { provider, execute, load }));
    return { value: undefined, ready, stop };
  },
});

interface Calls {
  readonly provider: PaymentProvider;
  readonly load: Load;
  execute(command: Command): Promise<Handled>;
}

type Outgoing = Parameters<typeof carryOut>[0] & { readonly position: number };

/**
 * Each call is tried until it is answered, beside the others, so that one that is stuck holds up nobody. The checkpoint
 * never passes a call that is not answered: the next start makes it again.
 */
export async function followPayments(
  { engines, clock, onRetry }: Follows,
  { execute, ...calls }: Calls,
): Promise<Consumer> {
  const [makeBus, checkpoints] = await Promise.all([engines.bus(), engines.checkpoints()]);
  const open = new Map<string, Outgoing>();
  const timers = new Set<NodeJS.Timeout>();
  const underWay = new Set<Promise<void>>();
  let stopped = false;
  const attempt = async (event: Outgoing, count: number): Promise<void> => {
    try {
      const command = await carryOut(event, { ...calls, clock });
      if (command) await execute(command);
      open.delete(event.id);
    } catch (error) {
      if (stopped || isAgonError(error, 'STORE.CLOSED')) return;
      onRetry(GROUP, error);
      const waitMs = Math.min(RETRY_MS.most, RETRY_MS.first * 2 ** (count - 1));
      const timer = setTimeout(() => {
        timers.delete(timer);
        begin(event, count + 1);
      }, waitMs);
      timers.add(timer);
    }
  };
  const begin = (event: Outgoing, count: number) => {
    if (stopped) return;
    const work = attempt(event, count).finally(() => underWay.delete(work));
    underWay.add(work);
  };

  const held = heldBack(checkpoints, () => open.values().next().value?.position);
  const bus = makeBus(held);
  const consumer = await bus.consume({ group: GROUP, types: outgoingTypes }, async (events) => {
    for (const event of events) {
      const outgoing = upcast(event) as never as Outgoing;
      open.set(event.id, outgoing);
      begin(outgoing, 1);
    }
  });
  const stop = async () => {
    stopped = true;
    for (const timer of timers) clearTimeout(timer);
    await bus.close();
    await Promise.all(underWay);
  };
  return { ...consumer, stop, position: held.complete };
}
