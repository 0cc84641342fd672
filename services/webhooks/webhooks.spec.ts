import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { addressOf } from '../../sandbox-runner/index.js';
import { MemoryEventStore } from '../adapters/store/memory.js';
import { webhookPost } from '../adapters/webhook-post.js';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, createHandle, Folds, manualClock, roles } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import { AddWebhook, AskReplay, RecordFailure, RecordReplay, RemoveWebhook } from './commands.js';
import { FAILED_MAX, WEBHOOKS_MAX, type Webhook } from './decider.js';
import { ATTEMPTS_MAX, concerns, type DispatchPorts, deliver, messageOf, secretFrom, waitMs } from './delivery.js';
import type { WebhookEvent } from './events.js';
import { addedAt, webhooks, webhooksIn } from './index.js';

const given = specification(webhooks);
const uuid = (n: number) => `00000000-0000-4000-8000-${n.toString().padStart(12, '0')}`;
const which = { webhookId: uuid(1), accountId: 'ada' };
const data = { ...which, url: 'https://example.com/hook', types: ['MatchSettled' as const] };
const failure = { deliveryId: uuid(2), eventId: uuid(3), position: 7, attempts: 8, why: 'it answered 500' };
const added: WebhookEvent = { type: 'WebhookAdded', data };
const failed: WebhookEvent = { type: 'DeliveryFailed', data: { ...which, ...failure } };
const asked: WebhookEvent = { type: 'ReplayAsked', data: { ...which, deliveries: [failure.deliveryId] } };
const removed: WebhookEvent = { type: 'WebhookRemoved', data: which };
const add = (change: object = {}, actor?: Actor) => new AddWebhook({ ...data, ...change }, metaOf('c1', actor));
const remove = (change: object = {}) => new RemoveWebhook({ ...which, ...change }, metaOf('c2'));
const replay = () => new AskReplay(which, metaOf('c3'));
const record = () => new RecordFailure({ ...which, ...failure }, metaOf('c4'));

describe('webhooks', () => {
  it('are added, and removed once', () => {
    given([]).when(add()).then([added]);
    given([added]).when(remove()).then([removed]);
    given([added, removed]).when(remove()).thenRefused('WEBHOOKS.UNKNOWN');
    given([added])
      .when(remove({ accountId: 'eve' }))
      .thenRefused('WEBHOOKS.UNKNOWN');
  });

  it('are few', () => {
    const many = Array.from({ length: WEBHOOKS_MAX }, (_, i): WebhookEvent => {
      return { type: 'WebhookAdded', data: { ...data, webhookId: uuid(100 + i) } };
    });
    given(many).when(add()).thenRefused('WEBHOOKS.TOO_MANY');
  });

  it('keep what could not be delivered until it is asked for again', () => {
    given([added]).when(record()).then([failed]);
    given([added, failed]).when(record()).then([]);
    given([added]).when(replay()).then([]);
    given([added, failed]).when(replay()).then([asked]);
    const arrived = new RecordReplay({ ...which, deliveryId: failure.deliveryId }, metaOf('c5'));
    const replayed = { type: 'DeliveryReplayed', data: { ...which, deliveryId: failure.deliveryId } } as const;
    given([added, failed, asked]).when(arrived).then([replayed]);
    given([added, failed, asked, replayed]).when(arrived).then([]);
    given([added, failed, asked]).when(record()).then([failed]);
    given([added, removed]).when(record()).then([]);
  });

  it('are paused when nothing arrives, until somebody asks', () => {
    const many = Array.from({ length: FAILED_MAX - 1 }, (_, i): WebhookEvent => {
      return { type: 'DeliveryFailed', data: { ...which, ...failure, deliveryId: uuid(1000 + i) } };
    });
    const paused: WebhookEvent = { type: 'WebhookPaused', data: which };
    given([added, ...many])
      .when(record())
      .then([failed, paused]);
    const empty: WebhookEvent = { type: 'ReplayAsked', data: { ...which, deliveries: [] } };
    given([added, paused]).when(replay()).then([empty]);
    given([added, paused, empty]).when(replay()).then([]);
  });

  it.each<[string, object]>([
    ['a file', { url: 'file:///etc/passwd' }],
    ['another protocol', { url: 'gopher://example.com' }],
    ['no address', { url: 'example' }],
    ['a password', { url: 'https://ada:secret@example.com/' }],
    ['a fragment', { url: 'https://example.com/#x' }],
    ['an address too long', { url: `https://example.com/${'x'.repeat(2_000)}` }],
    ['a type that is not told', { types: ['ApiKeyIssued'] }],
    ['no type', { types: [] }],
  ])('do not understand %s', (_what, change) => {
    expect(() => add(change)).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });

  it.each(roles)('by %s', (role) => {
    const staff = ['operator', 'admin', 'system'].includes(role);
    expect(allowed(add({}, { id: 'ada', role }))).toBe(staff || role === 'owner');
    expect(allowed(add({}, { id: 'eve', role }))).toBe(staff);
    expect(allowed(add({ accountId: '*' }, { id: '*', role }))).toBe(staff || role === 'owner');
    expect(allowed(add({ accountId: '*' }, { id: 'ada', role }))).toBe(staff);
    const told = new RecordFailure({ ...which, ...failure }, metaOf('c', { id: 'ada', role }));
    expect(allowed(told)).toBe(role === 'system');
  });

  it('tell an owner of what is its own, and nobody of what they did not ask for', () => {
    const webhook = { ...data, types: ['MatchSettled', 'AgentSubmitted', 'CreditsGranted'] } as never as Webhook;
    const settled = { type: 'MatchSettled', data: { seats: [{ accountId: 'ada' }, { accountId: 'bob' }] } };
    expect(concerns(webhook, settled)).toBe(true);
    expect(concerns({ ...webhook, accountId: 'eve' }, settled)).toBe(false);
    expect(concerns({ ...webhook, accountId: '*' }, settled)).toBe(true);
    expect(concerns(webhook, { type: 'AgentSubmitted', data: { ownerId: 'ada' } })).toBe(true);
    expect(concerns(webhook, { type: 'CreditsGranted', data: { accountId: 'bob' } })).toBe(false);
    expect(concerns(webhook, { type: 'WithdrawalPaid', data: { accountId: 'ada' } })).toBe(false);
  });
});

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Got {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** A receiver that answers with these statuses, one after the other, and the last of them from then on. */
async function receiver(...statuses: number[]): Promise<{ url: string; got: Got[] }> {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => {
      got.push({ headers: request.headers as Record<string, string>, body });
      const status = statuses[Math.min(got.length, statuses.length) - 1] ?? 200;
      response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('x'.repeat(100_000));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, got };
}

const key = 'the key of this arena';
const event = {
  id: uuid(3),
  type: 'MatchSettled',
  version: 2,
  time: '2026-01-01T00:00:00.000Z',
  position: 7,
  revision: 3,
};
const stored = { ...event, stream: 'match-x', data: { seats: [] } };

function courier(waits: number[], allowPrivate = true): DispatchPorts {
  const resolve = async (host: string) => [{ address: host === 'inside.example' ? '10.0.0.1' : host, family: 4 }];
  return {
    clock: manualClock('2026-01-01T00:00:10.000Z'),
    random: () => 0.5,
    wait: async (ms) => void waits.push(ms),
    post: webhookPost({ addressOf: (host) => addressOf(host, allowPrivate, resolve), allowPlain: allowPrivate }),
    secretOf: (webhookId) => secretFrom(key, webhookId),
  };
}

const send = async (url: string, ports: DispatchPorts) => {
  const webhook = { ...data, url, status: 'active', failed: {}, replaying: {} } as Webhook;
  return deliver(ports, webhook, messageOf(webhook, stored), new AbortController().signal);
};

describe('the registry', () => {
  it('is read up to its end, and knows where each endpoint was added', async () => {
    const store = new MemoryEventStore();
    const folds = new Folds({ store });
    const handle = createHandle({ store });
    const added = (n: number, accountId: string) =>
      new AddWebhook({ ...data, webhookId: uuid(n), accountId }, metaOf(`add-${n}`, { id: accountId, role: 'owner' }));
    await handle(webhooks, added(1, 'ada'));
    await handle(webhooks, added(2, 'bob'));
    expect(Object.keys(await webhooksIn(folds.load))).toEqual([uuid(1), uuid(2)]);
    await handle(webhooks, new RemoveWebhook({ webhookId: uuid(1), accountId: 'ada' }, metaOf('remove')));
    expect(Object.keys(await webhooksIn(folds.load))).toEqual([uuid(2)]);
    expect([...(await addedAt(store))]).toEqual([
      [uuid(1), 1],
      [uuid(2), 2],
    ]);
  });
});

describe('a delivery', () => {
  it('is signed so that its receiver can tell who sent what, and when', async () => {
    const { url, got } = await receiver(200);
    expect(await send(url, courier([]))).toBeUndefined();
    const [{ headers, body } = { headers: {}, body: '' }] = got;
    expect(JSON.parse(body)).toMatchObject({ type: 'MatchSettled', id: event.id, position: 7, data: { seats: [] } });
    const {
      'webhook-id': id,
      'webhook-timestamp': at,
      'webhook-signature': signature,
    } = headers as Record<string, string>;
    expect(at).toBe('1767225610');
    const mine = createHmac('sha256', secretFrom(key, which.webhookId)).update(`${id}.${at}.${body}`).digest('base64');
    expect(signature).toBe(`v1,${mine}`);
    expect(secretFrom(key, uuid(9))).not.toEqual(secretFrom(key, which.webhookId));
  });

  it('is tried again under the same id, later each time, until it arrives', async () => {
    const { url, got } = await receiver(500, 429, 302, 200);
    const waits: number[] = [];
    expect(await send(url, courier(waits))).toBeUndefined();
    expect(waits).toEqual([750, 3_000, 12_000]);
    expect(new Set(got.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(got).toHaveLength(4);
  });

  it('is given up in the end, and says why', async () => {
    const { url, got } = await receiver(503);
    expect(await send(url, courier([]))).toEqual({ attempts: ATTEMPTS_MAX, why: 'it answered 503' });
    expect(got).toHaveLength(ATTEMPTS_MAX);
    expect([waitMs(1, 0), waitMs(1, 1), waitMs(20, 1)]).toEqual([500, 1_000, 3_600_000]);
  });

  it.each<[string, string]>([
    ['loopback', 'https://127.0.0.1/'],
    ['loopback in disguise', 'https://2130706433/'],
    ['loopback of the new kind', 'https://[::1]/'],
    ['an old address inside a new one', 'https://[::ffff:127.0.0.1]/'],
    ['what a cloud tells its machines', 'https://169.254.169.254/latest/meta-data'],
    ['a name that leads inside', 'https://inside.example/'],
    ['no TLS', 'http://93.184.216.34/'],
  ])('never goes to %s', async (_what, url) => {
    const { why, attempts } = (await send(url, courier([], false))) ?? { why: '', attempts: 0 };
    expect(attempts).toBe(ATTEMPTS_MAX);
    expect(why).toMatch(/not of the public internet|not https/);
  });

  it('waits for no receiver without end', async () => {
    const server = createServer(() => {});
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const post = webhookPost({
      addressOf: async (address) => ({ address, family: 4 }),
      allowPlain: true,
      limits: { totalMs: 30, answerBytes: 10 },
    });
    expect((await post(`http://127.0.0.1:${port}/`, {}, '{}')).why).toBe('no answer within 30 ms');
  });
});
