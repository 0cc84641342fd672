import { defineContext, type EventStore, storeLimits } from '../kernel/index.js';
import { AddWebhook, AskReplay, REGISTRY, RecordFailure, RecordReplay, RemoveWebhook } from './commands.js';
import { type WebhookState, webhookDecider } from './decider.js';
import { type WebhookEvent, webhookEvents } from './events.js';

export const webhooks = defineContext({
  name: 'webhooks',
  streams: 'webhooks',
  events: webhookEvents,
  decider: webhookDecider,
  commands: [AddWebhook, RemoveWebhook, AskReplay, RecordFailure, RecordReplay],
});

/**
 * Every endpoint there is, by the events themselves. All tenants share one stream, which only grows: what was read is
 * kept, so that a look costs what is new and not what ever happened.
 */
export class WebhookRegistry {
  #state: WebhookState = webhookDecider.initial;
  #revision = -1;
  readonly #addedAt = new Map<string, number>();
  #reading: Promise<unknown> = Promise.resolve();

  constructor(private readonly store: Pick<EventStore, 'readStream'>) {}

  /** One look at a time, so that nothing is taken in twice. */
  read(): Promise<WebhookState> {
    const read = this.#reading.then(() => this.#catchUp());
    this.#reading = read.catch(() => {});
    return read;
  }

  /** The position at which an endpoint that was read of came to be. */
  addedAt(webhookId: string): number | undefined {
    return this.#addedAt.get(webhookId);
  }

  async #catchUp(): Promise<WebhookState> {
    for (;;) {
      const page = await this.store.readStream(REGISTRY, { fromRevision: this.#revision + 1 });
      for (const recorded of page) {
        const event = recorded as unknown as WebhookEvent;
        const { webhookId } = event.data;
        if (event.type === 'WebhookAdded') this.#addedAt.set(webhookId, recorded.position);
        if (event.type === 'WebhookRemoved') this.#addedAt.delete(webhookId);
        this.#state = webhookDecider.evolve(this.#state, event);
        this.#revision = recorded.revision;
      }
      if (page.length < storeLimits.pageEventsMax) return this.#state;
    }
  }
}
