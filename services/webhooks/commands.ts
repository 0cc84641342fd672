import { z } from 'zod';
import { actsFor, defineCommand } from '../kernel/index.js';
import { endpointUrl, failure, listener, types, webhookId } from './events.js';

/** All endpoints are in one stream: there are few, and whoever delivers has to know them all. */
export const ALL = 'registry';
export const REGISTRY = `webhooks-${ALL}`;

const stream = () => REGISTRY;
const endpoint = { webhookId, accountId: listener };

/** No password and no fragment: the one would be in the log, and the other never reaches anybody. */
const plainUrl = endpointUrl.refine((text) => {
  if (!URL.canParse(text)) return false;
  const { username, password, hash } = new URL(text);
  return username === '' && password === '' && hash === '';
}, 'must not hold a user, a password or a fragment');

export class AddWebhook extends defineCommand({
  type: 'AddWebhook',
  data: z.object({ ...endpoint, url: plainUrl, types }),
  stream,
  allow: (actor, data) => actsFor(actor, data.accountId),
}) {}

export class RemoveWebhook extends defineCommand({
  type: 'RemoveWebhook',
  data: z.object(endpoint),
  stream,
  allow: (actor, data) => actsFor(actor, data.accountId),
}) {}

/** Delivers every dead letter again, and goes on with an endpoint that was paused. */
export class AskReplay extends defineCommand({
  type: 'AskReplay',
  data: z.object(endpoint),
  stream,
  allow: (actor, data) => actsFor(actor, data.accountId),
}) {}

export class RecordFailure extends defineCommand({
  type: 'RecordFailure',
  data: z.object({ ...endpoint, ...failure.shape }),
  stream,
  allow: (actor) => actor.role === 'system',
}) {}

export class RecordReplay extends defineCommand({
  type: 'RecordReplay',
  data: z.object({ ...endpoint, deliveryId: z.uuid() }),
  stream,
  allow: (actor) => actor.role === 'system',
}) {}

export type WebhookCommand = AddWebhook | RemoveWebhook | AskReplay | RecordFailure | RecordReplay;
