import { AgonError, actsFor, derivedId } from '../../services/kernel/index.js';
import { AddWebhook, AskReplay, RemoveWebhook, type Webhook, webhookTypes } from '../../services/webhooks/index.js';
import { metaOf, type RequestContext } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';
import { type AskPorts, asks, send } from './ask.js';

type Ports = AskPorts & Pick<GatewayPorts, 'webhooks'>;
type WebhookType = (typeof webhookTypes)[number];

/** Whoever may not act for the account learns nothing of what it has. */
function permitted(ports: Ports, context: RequestContext, commandType: string, accountId: string) {
  const meta = metaOf(ports, context, commandType);
  if (actsFor(meta.actor, accountId)) return meta;
  throw new AgonError('AUTH.FORBIDDEN', `${meta.actor.role} ${meta.actor.id} may not act for ${accountId}.`);
}

export async function listWebhooks(
  ports: Ports,
  context: RequestContext,
  accountId: string,
): Promise<readonly Webhook[]> {
  permitted(ports, context, 'read', accountId);
  return Object.values(await ports.webhooks.list()).filter((each) => each.accountId === accountId);
}

/** The secret is in the answer, and is shown this once. */
export async function addWebhook(
  ports: Ports,
  context: RequestContext,
  { types = [...webhookTypes], ...endpoint }: { accountId: string; url: string; types?: WebhookType[] | undefined },
) {
  const meta = permitted(ports, context, 'AddWebhook', endpoint.accountId);
  ports.webhooks.assertAllowed(endpoint.url);
  const webhookId = derivedId(meta.id, 'webhook');
  const data = { webhookId, ...endpoint, types };
  const { repeated } = await send(ports, webhookId, new AddWebhook(data, meta));
  return { ...data, status: 'active', secret: ports.webhooks.secretOf(webhookId), repeated };
}

export const removeWebhook = asks(RemoveWebhook, ({ webhookId }) => webhookId);

/** One message, now, and what came of it. */
export async function testWebhook(
  ports: Ports,
  context: RequestContext,
  { accountId, webhookId }: { accountId: string; webhookId: string },
) {
  permitted(ports, context, 'TestWebhook', accountId);
  const webhook = (await ports.webhooks.list())[webhookId];
  if (webhook?.accountId !== accountId) {
    throw new AgonError('WEBHOOKS.UNKNOWN', `${accountId} has no webhook ${webhookId}.`);
  }
  return { ...(await ports.webhooks.test(webhook)), at: ports.clock() };
}

/** Delivers all dead letters again, and goes on with a webhook that was paused. */
export const replayWebhook = asks(AskReplay, ({ webhookId }) => webhookId);
