import { z } from 'zod';
import { actsFor, commandsOn, isSystem } from '../kernel/index.js';
import { endpointUrl, failure, listener, types, webhookId } from './events.js';

/** All endpoints are in one stream: there are few, and whoever delivers has to know them all. */
export const ALL = 'registry';
export const REGISTRY = `webhooks-${ALL}`;

const byAccount = commandsOn(
  () => REGISTRY,
  (actor, data: { accountId: string }) => actsFor(actor, data.accountId),
);
const bySystem = commandsOn(() => REGISTRY, isSystem);
const endpoint = { webhookId, accountId: listener };

/** No password and no fragment: the one would be in the log, and the other never reaches anybody. */
const plainUrl = endpointUrl.refine((text) => {
  if (!URL.canParse(text)) return false;
  const { username, password, hash } = new URL(text);
  return username === '' && password === '' && hash === '';
}, 'must not hold a user, a password or a fragment');

export class AddWebhook extends byAccount('AddWebhook', z.object({ ...endpoint, url: plainUrl, types })) {}
export class RemoveWebhook extends byAccount('RemoveWebhook', z.object(endpoint)) {}

/** Delivers every dead letter again, and goes on with an endpoint that was paused. */
export class AskReplay extends byAccount('AskReplay', z.object(endpoint)) {}
export class RecordFailure extends bySystem('RecordFailure', z.object({ ...endpoint, ...failure.shape })) {}
export class RecordReplay extends bySystem('RecordReplay', z.object({ ...endpoint, deliveryId: z.uuid() })) {}
