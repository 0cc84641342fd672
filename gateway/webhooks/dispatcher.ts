import { upcast } from '../../services/index.js';
import {
  type Bus,
  type Checkpoints,
  type Command,
  type Consumer,
  derivedId,
  type EventStore,
  type Handled,
  heldBack,
  isAgonError,
  type Load,
  newMeta,
  type RecordedEvent,
  type Subscription,
  SYSTEM,
} from '../../services/kernel/index.js';
import type { MakeBus } from '../../services/runtime/engines.js';
import {
  addedAt,
  addedIn,
  concerns,
  type DispatchPorts,
  deliver,
  messageOf,
  REGISTRY,
  RecordFailure,
  RecordReplay,
  type Webhook,
  webhooksIn,
  webhookTypes,
} from '../../services/webhooks/index.js';

/** Messages to one endpoint that are under way or wait for another attempt. More wait in the log. */
const UNDER_WAY_MAX = 16;

export interface DispatcherOptions {
  readonly store: EventStore;
  readonly load: Load;
  readonly checkpoints: Checkpoints;
  /** What reads the log for groups of this process. */
  readonly makeBus: MakeBus;
  readonly ports: DispatchPorts;
  execute(command: Command): Promise<Handled>;
  onRetry(group: string, error: unknown): void;
}

/**
 * Tells endpoints what happened, from the log. Each endpoint follows it by itself, with a checkpoint that never passes a
 * message that is neither delivered nor a dead letter: what was under way is sent again after a restart, with the same id.
 */
export async function dispatchWebhooks(options: DispatcherOptions): Promise<Subscription> {
  const { store, load } = options;
  const endpoints = new Map<string, Endpoint>();
  const turn = async () => {
    const state = await webhooksIn(load);
    for (const [webhookId, endpoint] of endpoints) {
      if (state[webhookId]?.status === 'active') continue;
      endpoints.delete(webhookId);
      await endpoint.stop();
    }
    for (const webhook of Object.values(state)) {
      if (webhook.status !== 'active') continue;
      const endpoint = endpoints.get(webhook.webhookId) ?? new Endpoint(webhook, options);
      const from = added.get(webhook.webhookId);
      // One that is newer than what was heard of is begun with when its event comes.
      if (from === undefined) continue;
      if (!endpoints.has(webhook.webhookId)) await endpoint.start(from);
      endpoints.set(webhook.webhookId, endpoint);
      for (const { position, deliveryId } of Object.values(webhook.replaying)) endpoint.replay(position, deliveryId);
    }
  };
  const after = await store.lastPosition();
  const added = await addedAt(store);
  await turn();
  const subscription = store.subscribe({ after }, async (events) => {
    const own = events.filter(({ stream }) => stream === REGISTRY);
    for (const [webhookId, position] of addedIn(own)) added.set(webhookId, position);
    if (own.length > 0) await turn();
  });
  const stop = async () => {
    await subscription.stop();
    await Promise.all([...endpoints.values()].map((endpoint) => endpoint.stop()));
  };
  return { stop, done: subscription.done };
}

class Endpoint {
  private readonly open = new Map<string, number>();
  private readonly replaying = new Set<string>();
  private readonly stopping = new AbortController();
  private readonly underWay = new Set<Promise<void>>();
  private readonly bus: Bus;
  private readonly group: string;
  private consumer: Consumer | undefined;

  constructor(
    private readonly webhook: Webhook,
    private readonly options: DispatcherOptions,
  ) {
    const { makeBus, checkpoints } = options;
    this.group = `webhook.${webhook.webhookId}`;
    this.bus = makeBus(heldBack(checkpoints, () => this.open.values().next().value));
  }

  /** What happened before it was added is not news to it. */
  async start(addedAt: number): Promise<void> {
    const { checkpoints } = this.options;
    if ((await checkpoints.load(this.group)) === 0) await checkpoints.save(this.group, addedAt);
    this.consumer = await this.bus.consume(
      { group: this.group, types: webhookTypes, batchSize: 64 },
      async (events) => {
        for (const event of events) {
          if (!concerns(this.webhook, upcast(event) as RecordedEvent)) continue;
          while (this.underWay.size >= UNDER_WAY_MAX) await Promise.race(this.underWay);
          this.begin(event, false);
        }
      },
    );
    this.consumer.done.catch(() => {});
  }

  replay(position: number, deliveryId: string): void {
    if (this.replaying.has(deliveryId)) return;
    this.replaying.add(deliveryId);
    const work = this.options.store
      .readAll({ from: position, limit: 1 })
      .then(([event]) => event && this.begin(event, true))
      .catch((error: unknown) => this.options.onRetry(this.group, error));
    void work;
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.bus.close();
    await Promise.allSettled(this.underWay);
  }

  private begin(event: RecordedEvent, again: boolean): void {
    if (this.stopping.signal.aborted) return;
    if (!again) this.open.set(event.id, event.position);
    const work = this.carry(event, again)
      .catch((error: unknown) => {
        if (this.stopping.signal.aborted || isAgonError(error, 'STORE.CLOSED')) return;
        this.options.onRetry(this.group, error);
      })
      .finally(() => this.underWay.delete(work));
    this.underWay.add(work);
  }

  private async carry(event: RecordedEvent, again: boolean): Promise<void> {
    const { ports, execute } = this.options;
    const { webhook } = this;
    const { webhookId, accountId } = webhook;
    const message = messageOf(webhook, upcast(event) as RecordedEvent);
    const { deliveryId } = message;
    const failure = await deliver(ports, webhook, message, this.stopping.signal);
    const meta = () => newMeta(SYSTEM, { id: derivedId(deliveryId, ports.clock()), clock: ports.clock });
    if (failure) {
      const what = { deliveryId, eventId: event.id, position: event.position, ...failure };
      await execute(new RecordFailure({ webhookId, accountId, ...what }, meta()));
    } else if (again) await execute(new RecordReplay({ webhookId, accountId, deliveryId }, meta()));
    this.replaying.delete(deliveryId);
    this.open.delete(event.id);
  }
}
