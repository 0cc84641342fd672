import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ledgerSums, trialBalance } from '../../projections/balances/query.js';
import { Folds, manualClock, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { GrantCredits, HoldFunds, pursesOf, wallet } from '../../services/wallet/index.js';
import { type Arena, arenaOfSpec } from '../engines/arena.contract.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-money-'));
const clock = manualClock('2026-03-01T12:00:00.000Z');
let arena: Arena;
let url: string;

beforeAll(async () => {
  const settings = { dataDir: folder, computePrice: 7 };
  arena = await arenaOfSpec(settings, { clock });
  url = await arena.listen();
  for (const [owner, credits] of Object.entries({ ada: 20, bob: 100 })) {
    await change(`registerOwner(accountId: "${owner}", displayName: "${owner}") { id }`);
    const grant = { accountId: owner, amountCents: `${credits}`, currency: 'COMPUTE', reason: 'welcome' } as const;
    await arena.execute(new GrantCredits(grant, newMeta(SYSTEM, { clock })));
    const source = `"function act(o) { return o.legal[0] } // ${owner}"`;
    await change(`submitAgent(ownerId: "${owner}", name: "bot", games: ["tic-tac-toe"], source: ${source}) { id }`);
  }
});

afterAll(async () => {
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask<T>(query: string): Promise<T> {
  const token = readFileSync(join(folder, 'operator.token'), 'utf8');
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
  expect(errors).toBeUndefined();
  return data;
}

const change = async (mutation: string) => (await ask<{ done: { id: string } }>(`mutation { done: ${mutation} }`)).done;

async function play(): Promise<{ status: string; detail: string }> {
  const { id } = await change('proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"]) { id }');
  type Found = { match: { status: string; detail: string } | null };
  const look = async () => (await ask<Found>(`{ match(matchId: "${id}") { status detail } }`)).match;
  await expect.poll(async () => (await look())?.status, { timeout: 60_000 }).toMatch(/settled|voided/);
  await arena.settled();
  return (await look()) as { status: string; detail: string };
}

const compute = async (accountId: string) => {
  const { state } = await new Folds({ store: arena.store }).load(wallet, accountId, 'tail');
  const purses = pursesOf(state, clock());
  const { availableCents, heldCents } = purses.find(({ currency }) => currency === 'COMPUTE') ?? {};
  return { availableCents, heldCents };
};

describe('money in a whole arena', () => {
  it('pays for compute: held before a match is played, charged after it, and given back when it is not', async () => {
    expect(await play()).toMatchObject({ status: 'settled' });
    expect(await play()).toMatchObject({ status: 'settled' });
    const types = (await arena.store.readStream('wallet-ada')).map(({ type }) => type);
    expect(types.filter((type) => /Hold|Held/.test(type))).toEqual(Array(2).fill(['FundsHeld', 'HoldPosted']).flat());
    // Six are left to ada, and a seat costs seven: nothing is played, and nobody pays.
    expect(await play()).toMatchObject({ status: 'voided', detail: expect.stringContaining('ada') });
    expect(await compute('ada')).toEqual({ availableCents: 6n, heldCents: 0n });
    expect(await compute('bob')).toEqual({ availableCents: 86n, heldCents: 0n });
    const rows = await trialBalance(arena.database);
    expect(ledgerSums(rows)).toMatchObject({ COMPUTE: 0n });
    expect(rows).toContainEqual(expect.objectContaining({ account: 'compute-used', balanceCents: 28n }));
  });

  it('gives back what was held for too long, when its time is over and not before', async () => {
    const expiresAt = new Date(Date.parse(clock()) + 60_000).toISOString();
    const hold = { accountId: 'bob', holdId: 'run-of-bob', amountCents: '6', currency: 'COMPUTE' } as const;
    const purpose = { kind: 'run', runId: 'r-1', agentId: 'bob.bot' } as const;
    await arena.execute(new HoldFunds({ ...hold, purpose, expiresAt }, newMeta(SYSTEM, { clock })));
    await arena.settled();
    expect(await compute('bob')).toEqual({ availableCents: 80n, heldCents: 6n });
    clock.advance(60_000);
    await expect.poll(() => compute('bob'), { timeout: 30_000 }).toEqual({ availableCents: 86n, heldCents: 0n });
    expect((await arena.store.readStream('wallet-bob')).at(-1)).toMatchObject({ type: 'HoldExpired' });
  });
});
