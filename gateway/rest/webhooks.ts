import { z } from 'zod';
import { AgonError, actsFor, type Command, derivedId } from '../../services/kernel/index.js';
import {
  AddWebhook,
  AskReplay,
  EVERYBODY,
  RemoveWebhook,
  type Webhook,
  webhookTypes,
} from '../../services/webhooks/index.js';
import { metaOf } from '../auth/actor.js';
import { type Asked, type Door, defineRoute } from './route.js';
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

const shown = ({ webhookId, accountId, url, types, status, failed }: Webhook) => {
  return { webhookId, accountId, url, types, status, failed: Object.values(failed) };
};

const whose = { accountId };
const which = { accountId, webhookId };
type AskedOne = Asked<typeof which>;

async function send({ execute, ports }: Door, id: string, command: Command) {
  const { events, position, repeated } = await execute(command);
  await ports.visible(position);
  return { id, events: events.map(({ type }) => type), position, repeated };
}

/** Whoever may not act for the account learns nothing of what it has. */
async function permitted(
  { context, params }: Pick<Asked<typeof whose>, 'context' | 'params'>,
  { ports }: Door,
  what: string,
) {
  const meta = metaOf(ports, await context(), what);
  if (actsFor(meta.actor, params.accountId)) return meta;
  throw new AgonError('AUTH.FORBIDDEN', `${meta.actor.role} ${meta.actor.id} may not act for ${params.accountId}.`);
}

async function oneOf(asked: AskedOne, door: Door): Promise<Webhook> {
  const { accountId: account, webhookId: id } = asked.params;
  const webhook = (await door.ports.webhooks.list())[id];
  if (webhook?.accountId === account) return webhook;
  throw new AgonError('WEBHOOKS.UNKNOWN', `${account} has no webhook ${id}.`);
}

const path = '/v1/accounts/{accountId}/webhooks' as const;
const common = { tag: 'webhooks', access: 'caller' } as const;

export const webhookRoutes = [
  defineRoute({
    ...common,
    id: 'listWebhooks',
    method: 'GET',
    path,
    summary: 'The webhooks of an account, with what could not be delivered.',
    params: whose,
    answer: {
      status: 200,
      description: 'All of them.',
      schema: name('Webhooks', z.strictObject({ items: z.array(WebhookSchema) })),
    },
    handle: async (asked, door) => {
      await permitted(asked, door, 'read');
      const all = Object.values(await door.ports.webhooks.list());
      return { items: all.filter((each) => each.accountId === asked.params.accountId).map(shown) };
    },
  }),
  defineRoute({
    ...common,
    id: 'addWebhook',
    method: 'POST',
    path,
    summary: 'Tells an address what happens to an account, signed with a secret that is shown once.',
    params: whose,
    body: name('NewWebhook', z.strictObject({ url, types: types.optional().describe('All when left out.') })),
    answer: { status: 201, description: 'The webhook, and its secret.', schema: Added },
    refuses: [409, 422],
    handle: async (asked, door) => {
      const { ports } = door;
      const meta = await permitted(asked, door, 'AddWebhook');
      const { url: address, types: wanted = [...webhookTypes] } = asked.body;
      ports.webhooks.assertAllowed(address);
      const id = derivedId(meta.id, 'webhook');
      const data = { webhookId: id, accountId: asked.params.accountId, url: address, types: wanted };
      const { repeated } = await send(door, id, new AddWebhook(data, meta));
      return { ...data, status: 'active', secret: ports.webhooks.secretOf(id), repeated };
    },
  }),
  defineRoute({
    ...common,
    id: 'removeWebhook',
    method: 'DELETE',
    path: `${path}/{webhookId}`,
    summary: 'Tells an address nothing any more.',
    params: which,
    answer: { status: 200, description: 'What came of it.', schema: Receipt },
    refuses: [422],
    handle: async (asked, door) =>
      send(
        door,
        asked.params.webhookId,
        new RemoveWebhook(asked.params, await permitted(asked, door, 'RemoveWebhook')),
      ),
  }),
  defineRoute({
    ...common,
    id: 'testWebhook',
    method: 'POST',
    path: `${path}/{webhookId}/test`,
    summary: 'Sends a message of the type WebhookTest now, once, and says what came of it.',
    params: which,
    answer: { status: 200, description: 'What came of it.', schema: Tested },
    handle: async (asked, door) => {
      await permitted(asked, door, 'TestWebhook');
      return { ...(await door.ports.webhooks.test(await oneOf(asked, door))), at: door.ports.clock() };
    },
  }),
  defineRoute({
    ...common,
    id: 'replayWebhook',
    method: 'POST',
    path: `${path}/{webhookId}/replay`,
    summary: 'Delivers all dead letters again, and goes on with a webhook that was paused.',
    params: which,
    answer: { status: 202, description: 'It is being done.', schema: Receipt },
    refuses: [422],
    handle: async (asked, door) =>
      send(door, asked.params.webhookId, new AskReplay(asked.params, await permitted(asked, door, 'AskReplay'))),
  }),
];
