import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { whyNoRedis } from '../../ops/engines/redis.js';
import { ownRedis } from '../../ops/engines/shared.contract.js';
import { countMatches } from '../../projections/matches/query.js';
import { payerById } from '../../projections/payments/query.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { RedisLimits } from '../../services/adapters/limits/redis.js';
import { ProposeMatch } from '../../services/arena/index.js';
import { derivedId, manualClock, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { type PaymentProvider, planNamed, TakeNotice } from '../../services/payments/index.js';
import { plansOf } from './plans.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-limits-'));
const clock = manualClock('2026-03-01T12:00:00.000Z');
let arena: Arena;
let url: string;

beforeAll(async () => {
  const flags = { dataDir: folder, runner: false };
  arena = await arenaOfSpec(flags, { sandbox: { port: 0 }, clock });
  url = await arena.listen();
  for (const owner of ['ada', 'bob', 'gold']) await send(`registerOwner(accountId: "${owner}", displayName: "O")`);
});
afterAll(async () => {
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Said {
  readonly data?: Record<string, { id: string; events: string[] }> | null;
  readonly errors?: { message: string; extensions: { code: string; status: number } }[];
}

async function send(mutation: string, variables: object = {}): Promise<Said> {
  const authorization = `Bearer ${readFileSync(join(folder, 'operator.token'), 'utf8')}`;
  const query = `mutation ${'source' in variables ? '($source: String!)' : ''} { ${mutation} { id events } }`;
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as Said;
}

const submit = (owner: string, name: string, act = 'legal[0]') =>
  send(`submitAgent(ownerId: "${owner}", name: "${name}", games: ["tic-tac-toe"], source: $source)`, {
    source: `export const act = ({ legal }) => ${act}`,
  });
const codeOf = ({ errors }: Said) => errors?.[0]?.extensions.code ?? 'done';
const agents = ['ada.one', 'bob.one'];
const propose = () => send(`proposeMatch(game: "tic-tac-toe", agents: ${JSON.stringify(agents)})`);

let asOfS = 0;
/** What Stripe says of a subscription. */
async function plan(accountId: string, status: 'active' | 'late' | 'unpaid' | 'ended', planId = 'pro'): Promise<void> {
  asOfS += 1;
  const subscriptionId = `sub_${accountId}`;
  const notice = { kind: 'plan', accountId, planId, subscriptionId, status, asOfS, startedS: 1 } as const;
  await arena.execute(new TakeNotice({ accountId, notice }, newMeta(SYSTEM, { clock })));
  // Whoever never had a plan is on the free one, and that is active as well.
  const shown = async () => {
    const payer = await payerById(arena.database, accountId);
    return [payer.planId, payer.planStatus];
  };
  await expect.poll(shown, { timeout: 20_000 }).toEqual([planId, status]);
}

describe('a plan', () => {
  it('limits new agents, also those that come at once, and not those that are there', async () => {
    const said = await Promise.all(['one', 'two', 'three', 'four', 'five'].map((name) => submit('ada', name)));
    expect(said.map(codeOf).sort()).toEqual([...Array(2).fill('PAYMENTS.PLAN_LIMIT'), ...Array(3).fill('done')]);
    const refused = await submit('ada', 'six');
    expect(refused.errors?.[0]?.extensions.status).toBe(402);
    expect(refused.errors?.[0]?.message).toMatch(/free, which allows 3 agents.*agon plan subscribe ada pro/);

    await plan('ada', 'active');
    expect(codeOf(await submit('ada', 'one'))).toBe('done');
    for (const name of ['two', 'six']) expect(codeOf(await submit('ada', name))).toBe('done');

    await plan('ada', 'late');
    expect(codeOf(await submit('ada', 'seven'))).toBe('done');
    await plan('ada', 'unpaid');
    expect(codeOf(await submit('ada', 'eight'))).toBe('PAYMENTS.PLAN_LIMIT');
    const better = await submit('ada', 'seven', 'legal.at(-1)');
    expect(better.data?.submitAgent?.events).toEqual(['AgentVersionPublished']);
  }, 120_000);

  it('limits the matches of a day, also the last two at once, and orders those that wait', async () => {
    expect(codeOf(await submit('bob', 'one'))).toBe('done');
    const [first] = (await arena.store.readStream('agent-ada.one')) as never as { data: { codeDigest: string } }[];
    const codeDigest = first?.data.codeDigest ?? '';
    const seats = agents.map((agentId) => {
      return { agentId, accountId: agentId.slice(0, 3), version: 1, codeDigest, runtime: 'javascript' as const };
    });
    const { matchesPerDayMax } = planNamed('free');
    for (let i = 1; i < matchesPerDayMax; i++) {
      const matchId = derivedId('limits', i);
      const terms = { matchId, game: 'tic-tac-toe', seed: 's', stakeCents: '0', currency: 'PLAY', rakeBps: 1000 };
      const meta = newMeta(SYSTEM, { clock });
      await arena.execute(new ProposeMatch({ ...terms, seats, disputeWindowMs: 0 }, meta));
    }
    const counted = () => countMatches(arena.database, 'bob', clock().slice(0, 10));
    await expect.poll(counted, { timeout: 20_000 }).toBe(matchesPerDayMax - 1);
    const said = await Promise.all([propose(), propose(), propose()]);
    expect(said.map(codeOf).sort()).toEqual(['PAYMENTS.PLAN_LIMIT', 'PAYMENTS.PLAN_LIMIT', 'done']);

    await plan('ada', 'active', 'team');
    const bobs = await propose();
    expect(bobs.errors?.[0]?.message).toMatch(/bob is on the plan free, which allows 200 matches a day/);
    await plan('bob', 'active');
    const played = await propose();
    expect(played.errors ?? []).toEqual([]);
    const matchId = played.data?.proposeMatch?.id ?? '';
    const [proposed, ready] = await arena.store.readStream(`match-${matchId}`);
    expect([proposed?.data, ready?.data]).toMatchObject([{ priority: 2 }, { matchId, priority: 2 }]);
  }, 120_000);

  it('holds for two gateways together that have a Redis, and counts nothing that is not new', async (context) => {
    const missing = whyNoRedis();
    if (missing) return context.skip(missing);
    const redis = await ownRedis();
    const connections = [redis.connect(), redis.connect()];
    try {
      const { database } = arena;
      const [one, other] = connections.map((connection) => {
        const quotas = new RedisLimits(connection, new MemoryLimits(() => 0, 0));
        return plansOf({ database, clock, houseAccounts: [], payments: {} as PaymentProvider, quotas });
      }) as [ReturnType<typeof plansOf>, ReturnType<typeof plansOf>];
      const made =
        (type: string, repeated = false) =>
        async () => ({ id: 'new', position: 1, repeated, events: [type] });
      const taken = async (work: Promise<unknown>[]) =>
        (await Promise.allSettled(work)).filter(({ status }) => status === 'fulfilled').length;

      // Eve is known to nobody: nothing of what the gateways let in here is ever in the read model.
      const newAgent = (i: number, type = 'AgentSubmitted') =>
        (i % 2 ? one : other).newAgent('eve', `eve.agent-${i}`, made(type));
      for (let i = 0; i < 4; i++) expect(await taken([newAgent(i, 'AgentVersionPublished')])).toBe(1);
      expect(await taken(Array.from({ length: 10 }, (_, i) => newAgent(i)))).toBe(planNamed('free').agentsMax);

      const { matchesPerDayMax } = planNamed('free');
      const newMatch = (i: number, repeated = false) =>
        (i % 2 ? one : other).newMatch(['eve', 'mel'], made('MatchProposed', repeated));
      for (let i = 0; i < 4; i++) expect(await taken([newMatch(i, true)])).toBe(1);
      const asked = Array.from({ length: matchesPerDayMax + 20 }, (_, i) => newMatch(i));
      expect(await taken(asked)).toBe(matchesPerDayMax);
      const ofMel = one.newMatch(['mel'], made('MatchProposed'));
      await expect(ofMel).rejects.toMatchObject({ code: 'PAYMENTS.PLAN_LIMIT', details: { used: matchesPerDayMax } });
      const failing = () => one.newMatch(['zoe'], () => Promise.reject(new Error('no')));
      for (let i = 0; i <= matchesPerDayMax; i++) await expect(failing()).rejects.toThrow('no');
    } finally {
      redis.close();
    }
  }, 60_000);

  it('does not limit the house', async () => {
    for (const name of ['one', 'two', 'three', 'four']) expect(codeOf(await submit('gold', name))).toBe('done');
  }, 60_000);
});
