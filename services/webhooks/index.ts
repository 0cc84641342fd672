export { AddWebhook, AskReplay, REGISTRY, RecordFailure, RecordReplay, RemoveWebhook } from './commands.js';
export {
  arrived,
  attempt,
  type CourierPorts,
  concerns,
  deliver,
  deliveryIdOf,
  messageOf,
  type Posted,
  secretFrom,
  secretText,
} from './courier.js';
export type { Webhook, WebhookState } from './decider.js';
export { EVERYBODY, type WebhookEvent, webhookEvents, webhookTypes } from './events.js';
export { addedAt, addedIn, webhooks, webhooksIn } from './module.js';
