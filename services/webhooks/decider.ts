import { AgonError, type CommandOf, type Decider } from '../kernel/index.js';
import type * as commands from './commands.js';
import type { DeliveryFailure, WebhookEvent } from './events.js';

type WebhookCommand = CommandOf<typeof commands>;

export interface Webhook {
  readonly webhookId: string;
  readonly accountId: string;
  readonly url: string;
  readonly types: readonly string[];
  readonly status: 'active' | 'paused';
  /** Dead letters by delivery; those under way again are in `replaying`. */
  readonly failed: Readonly<Record<string, DeliveryFailure>>;
  readonly replaying: Readonly<Record<string, DeliveryFailure>>;
}

export type WebhookState = Readonly<Record<string, Webhook>>;

/** Endpoints of one account, and dead letters of one endpoint before it is paused. */
export const WEBHOOKS_MAX = 10;
export const FAILED_MAX = 100;

function evolve(state: WebhookState, event: WebhookEvent): WebhookState {
  const { webhookId } = event.data;
  if (event.type === 'WebhookAdded') {
    return { ...state, [webhookId]: { ...event.data, status: 'active', failed: {}, replaying: {} } };
  }
  const webhook = state[webhookId];
  if (!webhook) return state;
  const become = (change: Partial<Webhook>) => ({ ...state, [webhookId]: { ...webhook, ...change } });
  switch (event.type) {
    case 'WebhookRemoved': {
      const { [webhookId]: _gone, ...others } = state;
      return others;
    }
    case 'DeliveryFailed': {
      const { webhookId: _webhook, accountId: _account, ...failure } = event.data;
      const { [failure.deliveryId]: _again, ...replaying } = webhook.replaying;
      return become({ replaying, failed: { ...webhook.failed, [failure.deliveryId]: failure } });
    }
    case 'WebhookPaused':
      return become({ status: 'paused' });
    case 'ReplayAsked':
      return become({ status: 'active', failed: {}, replaying: { ...webhook.replaying, ...webhook.failed } });
    case 'DeliveryReplayed': {
      const { [event.data.deliveryId]: _arrived, ...replaying } = webhook.replaying;
      return become({ replaying });
    }
  }
}

function decide(command: WebhookCommand, state: WebhookState): WebhookEvent[] {
  const { webhookId, accountId } = command.data;
  if (command.type === 'AddWebhook') {
    const theirs = Object.values(state).filter((each) => each.accountId === accountId);
    if (theirs.length >= WEBHOOKS_MAX) {
      throw new AgonError('WEBHOOKS.TOO_MANY', `An account has at most ${WEBHOOKS_MAX} webhooks. Remove one first.`);
    }
    return [{ type: 'WebhookAdded', data: command.data }];
  }
  const webhook = state[webhookId];
  const known = webhook?.accountId === accountId;
  switch (command.type) {
    case 'RecordFailure': {
      // Removed while it was being tried: nobody waits for it any more.
      if (!webhook || !known || webhook.failed[command.data.deliveryId]) return [];
      const failed: WebhookEvent = { type: 'DeliveryFailed', data: command.data };
      const full = webhook.status === 'active' && Object.keys(webhook.failed).length + 1 >= FAILED_MAX;
      return full ? [failed, { type: 'WebhookPaused', data: { webhookId, accountId } }] : [failed];
    }
    case 'RecordReplay':
      return webhook?.replaying[command.data.deliveryId] ? [{ type: 'DeliveryReplayed', data: command.data }] : [];
  }
  if (!webhook || !known) throw new AgonError('WEBHOOKS.UNKNOWN', `${accountId} has no webhook ${webhookId}.`);
  if (command.type === 'RemoveWebhook') return [{ type: 'WebhookRemoved', data: command.data }];
  const deliveries = Object.keys(webhook.failed);
  if (deliveries.length === 0 && webhook.status === 'active') return [];
  return [{ type: 'ReplayAsked', data: { ...command.data, deliveries } }];
}

export const webhookDecider: Decider<WebhookState, WebhookCommand, WebhookEvent> = { initial: {}, evolve, decide };
