import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Sandbox, type SandboxOptions, startStripeSandbox } from '../../ops/stripe-sandbox/server.js';
import { upcast } from '../../projections/views.js';
import { heldBack } from '../adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../adapters/bus/embedded.js';
import { stripeProvider } from '../adapters/stripe.js';
import {
  AgonError,
  type Bus,
  type Checkpoints,
  type Clock,
  type Command,
  type Consumer,
  type EventStore,
  type Handled,
  isAgonError,
  type Load,
  Secret,
} from '../kernel/index.js';
import type { Config } from '../runtime/settings.js';
import { carryOut, outgoingTypes, type PaymentProvider } from './index.js';

const RETRY_MS = { first: 100, most: 30_000 } as const;

export interface SandboxChoice extends Pick<SandboxOptions, 'mischief' | 'lostCalls' | 'port'> {}

/** Who takes real money here: Stripe by its key, the stand-in if it was asked for, or nobody. */
export async function paymentsFrom(
  config: Config,
  options: { clock: Clock; sandbox?: SandboxChoice; url(): string },
): Promise<{ provider: PaymentProvider | undefined; sandbox: Sandbox | undefined }> {
  const { clock, url } = options;
  const returnUrl = () => `${config.publicUrl ?? url()}/v1/stripe/return`;
  if (!options.sandbox) {
    const { stripeSecretKey: secretKey, stripeWebhookSecret: webhookSecret, stripeUrl } = config;
    if (!secretKey || !webhookSecret) return { provider: undefined, sandbox: undefined };
    return {
      provider: stripeProvider({ secretKey, webhookSecret, url: stripeUrl, clock, returnUrl }),
      sandbox: undefined,
    };
  }
  if (config.stripeSecretKey) {
    throw new AgonError(
      'CONFIG.INVALID',
      'There is a key for Stripe itself: start without --stripe-sandbox, or without it.',
    );
  }
  // Of this run alone: nobody else ever needs them.
  const [secretKey, webhookSecret] = [`sk_test_${random()}`, `whsec_${random()}`];
  const sandbox = await startStripeSandbox({
    ...options.sandbox,
    secretKey,
    webhookSecret,
    clock,
    file: join(config.dataDir, 'stripe-sandbox.json'),
    webhookUrl: () => `${url()}/v1/stripe/webhook`,
  });
  const provider = stripeProvider({
    secretKey: new Secret(secretKey),
    webhookSecret: new Secret(webhookSecret),
    url: sandbox.url,
    clock,
    returnUrl,
  });
  return { provider, sandbox };
}

const random = () => randomBytes(18).toString('hex');

interface OutgoingOptions {
  readonly store: EventStore;
  readonly load: Load;
  readonly checkpoints: Checkpoints;
  /** What carries the events; the log itself when left out. */
  readonly makeBus?: (checkpoints: Checkpoints) => Bus;
  readonly provider: PaymentProvider;
  readonly clock: Clock;
  execute(command: Command): Promise<Handled>;
  onRetry(group: string, error: unknown): void;
}

type Outgoing = Parameters<typeof carryOut>[0] & { readonly position: number };

/**
 * Makes the calls that payments ask for. Each is tried until it is answered, beside the others, so that one that is
 * stuck holds up nobody. The checkpoint never passes a call that is not answered: the next start makes it again.
 */
export async function followPayments(options: OutgoingOptions): Promise<Consumer> {
  const { store, checkpoints, onRetry } = options;
  const { makeBus = (behind: Checkpoints) => new EmbeddedBus(store, behind, onRetry) } = options;
  const open = new Map<string, Outgoing>();
  const timers = new Set<NodeJS.Timeout>();
  const underWay = new Set<Promise<void>>();
  let stopped = false;
  const completeUpTo = (position: number) => {
    let complete = position;
    for (const event of open.values()) complete = Math.min(complete, event.position - 1);
    return complete;
  };

  const attempt = async (event: Outgoing, count: number): Promise<void> => {
    try {
      const command = await carryOut(event, options);
      if (command) await options.execute(command);
      open.delete(event.id);
    } catch (error) {
      if (stopped || isAgonError(error, 'STORE.CLOSED')) return;
      onRetry('payments.outgoing', error);
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

  const behind = heldBack(checkpoints, (heard) => completeUpTo(heard));
  const bus = makeBus(behind);
  const consumer = await bus.consume({ group: 'payments.outgoing', types: outgoingTypes }, async (events) => {
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
  return { ...consumer, stop, position: () => completeUpTo(consumer.position()) };
}
