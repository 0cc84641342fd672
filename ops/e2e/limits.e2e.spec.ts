import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNoRedis } from '../engines/redis.js';
import { type OwnRedis, ownRedis } from '../engines/shared.contract.js';
import { type Served, serveWith, temporaryFolder } from './agon.contract.js';

const PER_SECOND = 1_200 / 60;
const BURST = 2_400;
const folder = temporaryFolder();
const missing = whyNoRedis();
let redis: OwnRedis | undefined;
let gateways: Served[] = [];

beforeAll(async () => {
  redis = missing ? undefined : await ownRedis();
  const env = {
    AGON_PROXIES: '1',
    AGON_CORS_ORIGINS: 'https://agon.example',
    ...(redis ? { REDIS_URL: redis.url } : {}),
  };
  const names = redis ? ['one', 'two'] : ['one'];
  gateways = await Promise.all(
    names.map((name) => serveWith(env, join(folder.path, name), '--no-ladder', '--no-runner')),
  );
});

afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
  redis?.close();
  folder.remove();
});

const get = (gateway: Served, path: string, headers: Record<string, string>) =>
  fetch(`${gateway.url}${path}`, { headers });

/** Asks until it is refused by each gateway in turn, or far too often. Returns how many were let through. */
async function flood(
  asked: readonly Served[],
  headers: Record<string, string>,
): Promise<{ passed: number; most: number }> {
  const began = performance.now();
  let passed = 0;
  for (let round = 0; round < 2 * BURST; round += 50) {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => get(asked[i % asked.length] as Served, '/missing', headers)),
    );
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    const refused = answers.filter(({ status }) => status === 429).length;
    passed += answers.length - refused;
    if (refused === answers.length) break;
  }
  // However slow the machine: what came back meanwhile is what the rate gives, and no more.
  return { passed, most: BURST + ((performance.now() - began) / 1000) * PER_SECOND + 1 };
}

describe('limits on requests', () => {
  it('hold for an address, with a time to come back, and leave other addresses alone', async () => {
    const [gateway] = gateways as [Served];
    const { passed, most } = await flood([gateway], { 'x-forwarded-for': '203.0.113.1' });
    expect(passed).toBeGreaterThanOrEqual(BURST);
    expect(passed).toBeLessThanOrEqual(most);
    await expect
      .poll(async () => (await get(gateway, '/missing', { 'x-forwarded-for': '203.0.113.1' })).status, { interval: 1 })
      .toBe(429);
    const other = await get(gateway, '/missing', { 'x-forwarded-for': '203.0.113.2' });
    expect(other.status).toBe(404);
    const probe = await get(gateway, '/healthz', { 'x-forwarded-for': '203.0.113.1' });
    expect(probe.status).toBe(200);
  });

  it('hold for two gateways taken together when they share a Redis', async (context) => {
    if (missing) return context.skip(missing);
    const { passed, most } = await flood(gateways, { 'x-forwarded-for': '203.0.113.9' });
    expect(passed).toBeGreaterThanOrEqual(BURST);
    expect(passed).toBeLessThanOrEqual(most);
  });

  it('believe only as many entries of X-Forwarded-For as there are proxies', async () => {
    const [gateway] = gateways as [Served];
    await flood([gateway], { 'x-forwarded-for': '198.51.100.7' });
    await expect
      .poll(
        async () => {
          const forged = { 'x-forwarded-for': `192.0.2.${Math.floor(Math.random() * 250)}, 198.51.100.7` };
          return (await get(gateway, '/missing', forged)).status;
        },
        { interval: 1 },
      )
      .toBe(429);
  });

  it.each(['/v1/auth/login', '/v1/%61uth/login', '/v1/auth/%6Cogin?x=1', '/%76%31/auth/login'])(
    'hold where people sign in, also when the address is written %s',
    async (path) => {
      const [gateway] = gateways as [Served];
      const from = `203.0.113.${100 + path.length}`;
      const answers = await Promise.all(
        Array.from({ length: 60 }, () =>
          fetch(`${gateway.url}${path}`, { method: 'POST', headers: { 'x-forwarded-for': from } }),
        ),
      );
      const refused = answers.filter(({ status }) => status === 429).length;
      expect(refused).toBeGreaterThan(0);
      expect(refused).toBeLessThanOrEqual(20);
    },
  );

  it('hold for a known caller whatever its address, apart for an agent with a key of its own', async () => {
    const [gateway] = gateways as [Served];
    const operator = `Bearer ${readFileSync(join(folder.path, 'one', 'operator.token'), 'utf8')}`;
    const ask = async (query: string) =>
      (await gateway.graphql<Record<string, { key: string }>>(query, {}, { authorization: operator })).data;
    await ask('mutation { registerOwner(accountId: "ada", displayName: "Ada") { id } }');
    const keyOf = async (rest: string) =>
      (await ask(`mutation { issueApiKey(accountId: "ada", scopes: ["read"]${rest}) { key } }`)).issueApiKey?.key;
    const [own, named] = [await keyOf(''), await keyOf(', agents: ["ada.bot"]')];
    let at = 0;
    const by = (key: string | undefined) =>
      get(gateway, '/missing', { authorization: `Bearer ${key}`, 'x-forwarded-for': `192.0.2.${++at % 250}` });
    const answers = await Promise.all(Array.from({ length: 260 }, () => by(own)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThanOrEqual(60);
    expect(await refused[0]?.json()).toMatchObject({ code: 'LIMITS.EXCEEDED', detail: expect.stringContaining('ada') });
    const apart = await by(named);
    expect([apart.status, Number(apart.headers.get('ratelimit-remaining'))]).toEqual([404, 199]);
  });

  it('hold for a whole network of IPv6', async () => {
    const [gateway] = gateways as [Served];
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        fetch(`${gateway.url}/v1/auth/login`, {
          method: 'POST',
          headers: { 'x-forwarded-for': `2001:db8::${i.toString(16)}:1` },
        }),
      ),
    );
    expect(answers.some(({ status }) => status === 429)).toBe(true);
  });

  it('say what is left to somebody who is known, and refuse as problem details', async () => {
    const [gateway] = gateways as [Served];
    const token = readFileSync(join(folder.path, 'one', 'operator.token'), 'utf8');
    const known = await get(gateway, '/missing', {
      authorization: `Bearer ${token}`,
      'x-forwarded-for': '203.0.113.3',
    });
    expect(Number(known.headers.get('ratelimit-remaining'))).toBeGreaterThan(10_000);
    await flood([gateway], { 'x-forwarded-for': '203.0.113.4' });
    let refused = known;
    await expect
      .poll(
        async () => {
          refused = await get(gateway, '/missing', { 'x-forwarded-for': '203.0.113.4' });
          return refused.status;
        },
        { interval: 1 },
      )
      .toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(refused.headers.get('content-type')).toMatch(/problem\+json/);
    expect(await refused.json()).toMatchObject({ code: 'LIMITS.EXCEEDED', status: 429 });
  });
});

describe('what browsers are told', () => {
  it.each([
    ['x-content-type-options', 'nosniff'],
    ['cross-origin-resource-policy', 'same-origin'],
    ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ])('%s: %s', async (name, value) => {
    const [gateway] = gateways as [Served];
    const answer = await get(gateway, '/missing', { 'x-forwarded-for': '203.0.113.5' });
    expect(answer.headers.get(name)).toBe(value);
  });

  it.each([
    ['https://agon.example', 'https://agon.example'],
    ['https://evil.example', null],
  ])('a page of %s may call: %s', async (origin, allowed) => {
    const [gateway] = gateways as [Served];
    const answer = await get(gateway, '/healthz', { origin, 'x-forwarded-for': '203.0.113.6' });
    expect(answer.headers.get('access-control-allow-origin')).toBe(allowed);
  });
});
