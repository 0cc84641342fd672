import { defineContext, type EventStore, type Load, pagesOf, type RecordedEvent } from '../kernel/index.js';
import * as commands from './commands.js';
import { ALL, REGISTRY } from './commands.js';
import { type WebhookState, webhookDecider } from './decider.js';
import { webhookEvents } from './events.js';

export * from './commands.js';
export type { Webhook, WebhookState } from './decider.js';
export * from './delivery.js';
export { EVERYBODY, type WebhookEvent, webhookEvents, webhookTypes } from './events.js';

export const webhooks = defineContext({
  name: 'webhooks',
  streams: 'webhooks',
  events: webhookEvents,
  decider: webhookDecider,
  commands,
});

/** Every endpoint there is, by the events themselves: all tenants share one stream. */
export async function webhooksIn(load: Load): Promise<WebhookState> {
  return (await load(webhooks, ALL, 'tail')).state;
}

/** The position at which each endpoint came to be; it is told of what happened since. */
export async function addedAt(store: Pick<EventStore, 'readStream'>): Promise<Map<string, number>> {
  const positions = new Map<string, number>();
  for await (const page of pagesOf(store, REGISTRY)) {
    for (const [webhookId, position] of addedIn(page)) positions.set(webhookId, position);
  }
  return positions;
}

/** The endpoints that came to be in these events, and where. */
export const addedIn = (events: readonly RecordedEvent[]): (readonly [string, number])[] =>
  events.flatMap(({ type, data, position }) =>
    type === 'WebhookAdded' ? [[(data as { webhookId: string }).webhookId, position] as const] : [],
  );
