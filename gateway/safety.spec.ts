import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { MemoryLimits } from '../services/adapters/limits/memory.js';
import type { Actor } from '../services/kernel/index.js';
import type { GatewayPorts } from './ports.js';
import { momentary } from './rest/health.js';
import { guard, type SafetyOptions } from './safety.js';

const ACTORS: Readonly<Record<string, Actor>> = {
  staff: { id: 'oskar', role: 'operator' },
  auditor: { id: 'aud', role: 'auditor' },
  owner: { id: 'ada', role: 'owner' },
};
const servers: FastifyInstance[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

async function serve(options: Partial<SafetyOptions> = {}): Promise<string> {
  const fastify = Fastify({
    forceCloseConnections: true,
    trustProxy: (_address, hop) => hop < (options.proxies ?? 0),
  });
  const ports = {
    limits: new MemoryLimits(() => 0),
    actorOf: (token: string) => ACTORS[token],
    payments: undefined,
    identities: { bearerOf: async () => undefined },
  } as never as GatewayPorts;
  guard(fastify, ports, { proxies: 0, ...options });
  fastify.get('/metrics', async () => 'figures');
  fastify.get('/healthz', async () => 'ok');
  fastify.get('/slow', async () => {
    await sleep(60_000, undefined, { ref: false });
  });
  fastify.get('/stream', (_request, reply) => void reply.hijack().raw.writeHead(200).write('first'));
  servers.push(fastify);
  return fastify.listen({ port: 0, host: '127.0.0.1' });
}

const get = (url: string, headers: Record<string, string> = {}) => fetch(url, { headers });

describe('the gateway over HTTP', () => {
  it.each<[string, string | undefined, number]>([
    ['nobody', undefined, 401],
    ['somebody unknown', 'made-up', 401],
    ['an owner', 'owner', 403],
    ['an auditor', 'auditor', 200],
    ['those who run it', 'staff', 200],
  ])('shows its figures from outside to %s: %s', async (_who, token, status) => {
    const url = await serve({ proxies: 1 });
    const from = {
      'x-forwarded-for': '203.0.113.1',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    expect((await get(`${url}/metrics`, from)).status).toBe(status);
    expect((await get(`${url}/%6Detrics`, from)).status).toBe(status);
    expect((await get(`${url}/healthz`, from)).status).toBe(200);
  });

  it('shows them to whoever is on this machine', async () => {
    expect(await (await get(`${await serve()}/metrics`)).text()).toBe('figures');
  });

  it('lets nobody wait without end, and cuts off nothing that has begun', async () => {
    const url = await serve({ answerMs: 50 });
    const late = await get(`${url}/slow`);
    expect([late.status, await late.json()]).toMatchObject([503, { code: 'HTTP.TOO_LONG' }]);
    const stream = (await get(`${url}/stream`)).body?.getReader();
    expect(Buffer.from((await stream?.read())?.value ?? '').toString()).toBe('first');
    const end = stream?.read().then(({ done }) => done);
    expect(await Promise.race([end, sleep(200, 'goes on')])).toBe('goes on');
    end?.catch(() => {});
  });

  it('takes so many connections', async () => {
    const { hostname, port } = new URL(await serve({ connectionsMax: 2 }));
    const sockets = Array.from({ length: 4 }, () => connect(Number(port), hostname));
    const closed: unknown[] = [];
    for (const socket of sockets) socket.on('error', () => {}).once('close', () => closed.push(socket));
    await expect.poll(() => closed.length).toBe(2);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => closed.length).toBe(4);
    const again = connect(Number(port), hostname);
    again.write('GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n');
    await once(again, 'data');
    again.destroy();
  });

  it('looks once for all who ask at the same time', async () => {
    let looks = 0;
    const look = momentary(async () => ++looks, 0);
    expect(await Promise.all([look(), look(), look()])).toEqual([1, 1, 1]);
    await sleep(0);
    expect(await look()).toBe(2);
    const kept = momentary(async () => ++looks, 600_000);
    expect([await kept(), await kept()]).toEqual([3, 3]);
  });
});
