import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Arena, type ArenaError, play } from '../../sdk/typescript/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { whyNoAnvil } from '../engines/anvil.js';
import { type Cluster, startCluster, whyNoCluster } from '../engines/cluster.js';
import { temporaryFolder } from './agon.contract.js';

const missing = whyNoCluster();
const folder = temporaryFolder();
const json = { 'content-type': 'application/json' };
let cluster: Cluster | undefined;

/** One question or command to the gateway; what it answers with. */
async function ask<T>(query: string): Promise<T> {
  const { url = '', operatorToken } = cluster ?? {};
  const headers = { authorization: `Bearer ${operatorToken}`, ...json };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
  expect(errors).toBeUndefined();
  return data;
}

async function keyOf(accountId: string): Promise<{ keyId: string; key: string }> {
  const issuing = `issueApiKey(accountId: "${accountId}", scopes: ["play", "submit", "read"]) { keyId key }`;
  const { issueApiKey } = await ask<{ issueApiKey: { keyId: string; key: string } }>(`mutation { ${issuing} }`);
  return issueApiKey;
}

async function owner(accountId: string): Promise<{ keyId: string; key: string }> {
  await ask(`mutation { registerOwner(accountId: "${accountId}", displayName: "${accountId}") { id } }`);
  await ask(`mutation { grantCredits(accountId: "${accountId}", amountCents: "1000") { id } }`);
  return keyOf(accountId);
}

const endpoint = () => ({ arena: cluster?.play ?? '', games: ['tic-tac-toe'] as const });
const last = ({ legal }: { legal: readonly number[] }) => legal.at(-1) as number;
const ended = (matchId: string) =>
  expect.poll(async () => (await ask<{ match: object }>(`{ match(matchId: "${matchId}") { status } }`)).match, {
    timeout: 60_000,
  });

describe.skipIf(missing !== undefined)(
  `a cluster's endpoint for agents from outside${missing ? ` (${missing})` : ''}`,
  { timeout: 300_000 },
  () => {
    beforeAll(async () => {
      cluster = await startCluster({ folder: join(folder.path, 'cluster'), chain: whyNoAnvil() === undefined });
    }, 400_000);

    afterAll(async () => {
      await cluster?.stop();
      folder.remove();
    });

    it('lets one play for money against an agent that the arena runs', async () => {
      const { key } = await owner('ada');
      await owner('bronze');
      const source = 'export const act = ({ legal }) => legal[0]';
      const agent = `ownerId: "bronze", name: "first", games: ["tic-tac-toe"], source: "${source}"`;
      await ask(`mutation { submitAgent(${agent}) { id } }`);
      const queue = { against: 'bronze.first', stakeCents: '100' };
      const results = await play({ ...endpoint(), key, agent: 'ada.bot', queue, matches: 1, act: last });
      expect(results).toMatchObject([{ reason: 'line' }]);
      await ended(results[0]?.matchId ?? '').toEqual({ status: 'settled' });
      const { match } = await ask<{ match: { stakeCents: string; seats: { payoutCents: string }[] } }>(
        `{ match(matchId: "${results[0]?.matchId}") { stakeCents seats { payoutCents } } }`,
      );
      expect(match.stakeCents).toBe('100');
      expect(match.seats.map(({ payoutCents }) => payoutCents).sort()).toEqual(['0', '180']);
    });

    it('brings two of them together, and shows gateways who waits', async () => {
      const [cyd, dan] = [await owner('cyd'), await owner('dan')];
      const first = play({ ...endpoint(), key: cyd.key, agent: 'cyd.bot', queue: {}, matches: 1, act: last });
      const waiting = async () =>
        (await ask<{ queue: { agents: { agentId: string }[] } }>('{ queue { agents { agentId } } }')).queue.agents;
      await expect.poll(waiting, { timeout: 30_000 }).toEqual([{ agentId: 'cyd.bot' }]);
      const second = play({ ...endpoint(), key: dan.key, agent: 'dan.bot', queue: {}, matches: 1, act: last });
      const [[a], [b]] = await Promise.all([first, second]);
      expect(a?.matchId).toBe(b?.matchId);
      await ended(a?.matchId ?? '').toEqual({ status: 'settled' });
    });

    it('cuts the stream of a key that is revoked elsewhere', async () => {
      const { keyId, key } = await owner('eve');
      const arena = new Arena({ arena: cluster?.play ?? '', key });
      await arena.registerAgent('eve', 'bot', ['tic-tac-toe']);
      const cut = new Promise<ArenaError>((resolve) => {
        const stop = new AbortController();
        const onReconnect = (why: ArenaError) => {
          resolve(why);
          stop.abort();
        };
        const playing = {
          ...endpoint(),
          key,
          agent: 'eve.bot',
          register: false,
          act: last,
          onReconnect,
          signal: stop.signal,
        };
        play(playing).catch(resolve);
      });
      await expect
        .poll(() => metric('agon_agents_connected'), { timeout: 30_000 })
        .toEqual(expect.arrayContaining([expect.stringMatching(/ 1$/)]));
      await ask(`mutation { revokeApiKey(accountId: "eve", keyId: "${keyId}") { id } }`);
      expect((await cut).code).toMatch(/PLAY\.REVOKED|AUTH\.UNAUTHENTICATED/);
      await expect(arena.joinQueue({ agent: 'eve.bot', game: 'tic-tac-toe' })).rejects.toMatchObject({
        code: 'AUTH.UNAUTHENTICATED',
      });
      arena.close();
    });

    it('tells in some process every metric that dashboards and alerts are about', async () => {
      // Somebody makes a mistake, so that there is one to count.
      await fetch(`${cluster?.url}/graphql`, { method: 'POST', headers: json, body: '{"query":"{ nothing }"}' });
      const told = (await metrics()).join('\n');
      const names = new Set([...told.matchAll(/^(\w+)(?:\{| )/gm)].map(([, name]) => name));
      const asked = new Set([...expressions().matchAll(/\b(?:agon|nodejs|process)_\w+/g)].map(([name]) => name));
      expect(asked.size).toBeGreaterThan(40);
      expect([...asked].filter((name) => !names.has(name) && !NOT_YET.includes(name))).toEqual([]);
      expect(told).toMatch(/^agon_consumer_lag_events\{consumer="relay"\} \d+$/m);
      expect(told).toMatch(/^agon_queue_waiting_matches\{place="runners"\} 0$/m);
      expect(told).toMatch(/^agon_dead_letters\{group="policy\.\S+"\} 0$/m);
      expect(told).toMatch(/^agon_consumer_retries_total\{group="policy\.\S+"\} \d+$/m);
    });
  },
);

/** Without a key for Stripe nobody calls it. */
const NOT_YET = ['agon_payment_call_seconds_count', 'agon_payment_call_seconds_bucket'];

async function metrics(): Promise<string[]> {
  const urls = cluster?.processes.map(({ health }) => `${health}/metrics`) ?? [];
  return Promise.all(urls.map(async (url) => (await fetch(url)).text()));
}

const metric = async (name: string) =>
  (await metrics()).flatMap((text) => text.split('\n').filter((line) => line.startsWith(`${name} `)));

/** All that Prometheus is asked for. */
function expressions(): string {
  const grafana = join(packageRoot, 'ops', 'grafana');
  const dashboards = readdirSync(join(grafana, 'dashboards')).map((file) => {
    const { panels } = JSON.parse(readFileSync(join(grafana, 'dashboards', file), 'utf8')) as {
      panels: { targets: { expr: string }[] }[];
    };
    return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n');
  });
  const rules = readFileSync(join(grafana, 'alerts', 'agon.rules.yml'), 'utf8');
  return [...dashboards, rules.replace(/^\s*(?:#|summary:|description:).*$/gm, '')].join('\n');
}
