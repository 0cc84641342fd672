import { z } from 'zod';
import { EVERYBODY, type Webhook, webhookTypes } from '../../services/webhooks/index.js';
import { addWebhook, listWebhooks, removeWebhook, replayWebhook, testWebhook } from '../use-cases/webhooks.js';
import { defineRoute } from './route.js';
import { name, Receipt, time } from './schemas.js';

const accountId = z
  .string()
  .regex(/^(\*|[a-z0-9]([a-z0-9-]{0,37}[a-z0-9])?)$/, `must be an account, or ${EVERYBODY} for everybody`)
  .describe(`The account whose events are told; ${EVERYBODY} for everybody's, which is for staff.`)
  .meta({ examples: ['gold'] });
const webhookId = z.uuid().describe('The id of a webhook.');
const types = z.array(z.enum(webhookTypes)).min(1).max(webhookTypes.length);
const url = z
  .url({ protocol: /^https?$/ })
  .max(2_000)
  .describe('An https address on the public internet.');

const fields = { webhookId, accountId: z.string(), url: z.string(), types, status: z.enum(['active', 'paused']) };
const Failure = z.strictObject({
  deliveryId: z.uuid(),
  eventId: z.uuid(),
  position: z.int(),
  attempts: z.int(),
  why: z.string(),
});
const WebhookSchema = name(
  'Webhook',
  z.strictObject({ ...fields, failed: z.array(Failure).describe('Dead letters.') }),
);
const Added = name(
  'WebhookAdded',
  z.strictObject({
    ...fields,
    secret: z.string().describe('Shown now and never again: with it, the receiver checks signatures.'),
    repeated: z.boolean(),
  }),
);
const Tested = name(
  'WebhookTested',
  z.strictObject({ delivered: z.boolean(), status: z.int().nullable(), detail: z.string(), at: time }),
);

const rowOf = ({ webhookId, accountId, url, types, status, failed }: Webhook) => {
  return { webhookId, accountId, url, types, status, failed: Object.values(failed) };
};

const whose = { accountId };
const which = { accountId, webhookId };

const path = '/v1/accounts/{accountId}/webhooks' as const;

export const webhookRoutes = [
  defineRoute({
    id: 'listWebhooks',
    path,
    summary: 'The webhooks of an account, with what could not be delivered.',
    params: whose,
    answer: {
      description: 'All of them.',
      schema: name('Webhooks', z.strictObject({ items: z.array(WebhookSchema) })),
    },
    handle: async ({ params, context }, { ports }) => ({
      items: (await listWebhooks(ports, await context(), params.accountId)).map(rowOf),
    }),
  }),
  defineRoute({
    id: 'addWebhook',
    method: 'POST',
    path,
    summary: 'Tells an address what happens to an account, signed with a secret that is shown once.',
    params: whose,
    body: name('NewWebhook', z.strictObject({ url, types: types.optional().describe('All when left out.') })),
    answer: { status: 201, description: 'The webhook, and its secret.', schema: Added },
    refuses: [409, 422],
    handle: async ({ params, body, context }, { ports }) => addWebhook(ports, await context(), { ...params, ...body }),
  }),
  defineRoute({
    id: 'removeWebhook',
    method: 'DELETE',
    path: `${path}/{webhookId}`,
    summary: 'Tells an address nothing any more.',
    params: which,
    answer: { description: 'What came of it.', schema: Receipt },
    refuses: [422],
    handle: async ({ params, context }, { ports }) => removeWebhook(ports, await context(), params),
  }),
  defineRoute({
    id: 'testWebhook',
    method: 'POST',
    path: `${path}/{webhookId}/test`,
    summary: 'Sends a message of the type WebhookTest now, once, and says what came of it.',
    params: which,
    answer: { description: 'What came of it.', schema: Tested },
    handle: async ({ params, context }, { ports }) => testWebhook(ports, await context(), params),
  }),
  defineRoute({
    id: 'replayWebhook',
    method: 'POST',
    path: `${path}/{webhookId}/replay`,
    summary: 'Delivers all dead letters again, and goes on with a webhook that was paused.',
    params: which,
    answer: { status: 202, description: 'It is being done.', schema: Receipt },
    refuses: [422],
    handle: async ({ params, context }, { ports }) => replayWebhook(ports, await context(), params),
  }),
];
