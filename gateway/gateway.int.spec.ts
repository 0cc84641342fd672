import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../ops/engines/arena.contract.js';
import { whyNoProcessSandboxes } from '../sandbox-runner/index.js';
import { AgonError } from '../services/kernel/index.js';
import { problemOf, statusOf } from './problem.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-gateway-'));
let arena: Arena;
let url: string;
let operator: Record<string, string>;

beforeAll(async () => {
  arena = await arenaOfSpec({ dataDir: folder });
  url = await arena.listen();
  operator = { authorization: `Bearer ${readFileSync(join(folder, 'operator.token'), 'utf8')}` };
});

afterAll(async () => {
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what each test says about it.
  readonly data: any;
  readonly errors?: { message: string; extensions?: { code?: string; status?: number } }[];
}

const ask = async (query: string, headers: Record<string, string> = {}, variables = {}): Promise<Answer> => {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as Answer;
};
const command = (mutation: string, headers = operator) => ask(`mutation { ${mutation} }`, headers);
const submit = (owner: string, name: string, source = 'function act(o) { return o.legal[0] }') =>
  ask(
    `mutation ($source: String!) { submitAgent(ownerId: "${owner}", name: "${name}", games: ["tic-tac-toe"], source: $source)
     { id events repeated } }`,
    operator,
    { source },
  );

describe('the gateway', () => {
  it('is ready without analytics, and says why there are none', async () => {
    const { errors } = await ask('{ analytics { from matchesPerDay { day } } }');
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'ANALYTICS.OFF', status: 503 });
    const wrong = await ask('{ analytics(from: "yesterday") { from } }');
    expect(wrong.errors?.[0]?.extensions).toMatchObject({ code: 'QUERY.BAD_TIME', status: 400 });
    const ready = await fetch(`${url}/readyz`);
    const { parts } = (await ready.json()) as { parts: { part: string; detail: string }[] };
    expect(ready.status).toBe(200);
    expect(parts.find(({ part }) => part === 'analytics')?.detail).toBe('switched off');
  });

  it('takes an owner, credits and agents, and shows them at once', async () => {
    for (const owner of ['ada', 'bob']) {
      await command(`registerOwner(accountId: "${owner}", displayName: "${owner}") { id }`);
      await command(`grantCredits(accountId: "${owner}", amountCents: "1000") { id }`);
      const { data } = await submit(owner, 'bot');
      expect(data.submitAgent).toMatchObject({ id: `${owner}.bot`, events: ['AgentSubmitted'] });
    }
    const { data } = await ask('{ agents(ownerId: "ada") { nodes { agentId version } pageInfo { hasNextPage } } }');
    expect(data.agents).toEqual({ nodes: [{ agentId: 'ada.bot', version: 1 }], pageInfo: { hasNextPage: false } });
  });

  it('takes a changed agent as its next version, and the same one as no news', async () => {
    expect((await submit('ada', 'bot')).data.submitAgent.events).toEqual([]);
    const source = 'export const act = ({ legal }) => legal.at(-1)';
    expect((await submit('ada', 'bot', source)).data.submitAgent.events).toEqual(['AgentVersionPublished']);
    const { data } = await ask('{ agent(agentId: "ada.bot") { version codeDigest versions { version codeDigest } } }');
    expect(data.agent.versions.map((v: { version: number }) => v.version)).toEqual([1, 2]);
    expect(data.agent.codeDigest).toBe(data.agent.versions[1].codeDigest);
  });

  it('plays a proposed match for its stakes and shows turns, ratings and balances', async () => {
    const { data } = await command(
      'proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], stakeCents: "300", seed: "s") { id events }',
    );
    const { id, events } = data.proposeMatch;
    expect(events).toEqual(['MatchProposed']);
    const look = async () => (await ask(`{ match(matchId: "${id}") { status } }`)).data.match?.status;
    await expect.poll(look, { timeout: 60_000 }).toBe('settled');
    await arena.settled();
    const found = await ask(
      `{
      match(matchId: "${id}") { winner potCents rakeCents transcript { turn seat action fuel } seats { agentId payoutCents } }
      matches(game: "tic-tac-toe", status: "settled", agentId: "ada.bot") { nodes { matchId } }
      leaderboard(game: "tic-tac-toe") { rank agentId rating games provisional }
      ratingHistory(game: "tic-tac-toe", agentId: "ada.bot") { before after matchId }
      balances(accountId: "ada") { nodes { balanceCents } }
      all: balances(first: 200) { nodes { account balanceCents } }
    }`,
      operator,
    );
    expect(found.errors ?? []).toEqual([]);
    const { match, matches, leaderboard, ratingHistory, balances, all } = found.data;
    expect(match).toMatchObject({ potCents: '600', rakeCents: '60' });
    const winner = match.seats[match.winner].agentId;
    expect(match.seats[match.winner].payoutCents).toBe('540');
    expect(match.transcript.length).toBeGreaterThan(4);
    expect(matches.nodes).toEqual([{ matchId: id }]);
    expect(leaderboard[0]).toMatchObject({ rank: 1, agentId: winner, rating: 1516, games: 1, provisional: true });
    const more = await ask(`{
      neighbours(game: "tic-tac-toe", agentId: "ada.bot", each: 1) { rank agentId season streak }
      standing(game: "tic-tac-toe", agentId: "${winner}") { rank confidence { rating deviation low high provisional } }
      byGlicko: leaderboard(game: "tic-tac-toe", by: "glicko") { agentId }
      headToHead(game: "tic-tac-toe", agentId: "${winner}") { opponentId wins draws losses }
      strengths(game: "tic-tac-toe") { agentId rating low high }
      seasons(game: "tic-tac-toe")
      then: ratingAt(game: "tic-tac-toe", agentId: "ada.bot", position: 1) { after }
      now: ratingAt(game: "tic-tac-toe", agentId: "${winner}", at: "2099-01-01T00:00:00Z") { after confidence { deviation } }
      far: ratingAt(game: "tic-tac-toe", agentId: "${winner}", position: 5000000000000) { after }
      paged: headToHeadConnection(game: "tic-tac-toe", agentId: "${winner}") { nodes { wins } pageInfo { hasNextPage } }
    }`);
    expect(more.errors ?? []).toEqual([]);
    expect(more.data.neighbours.map(({ rank }: { rank: number }) => rank)).toEqual([1, 2]);
    expect(more.data.standing.rank).toBe(1);
    const { confidence } = more.data.standing;
    expect(confidence).toMatchObject({ provisional: true });
    expect(confidence.high - confidence.low).toBeCloseTo(4 * confidence.deviation, 6);
    expect(more.data.byGlicko[0].agentId).toBe(winner);
    expect(more.data.headToHead).toMatchObject([{ wins: 1, draws: 0, losses: 0 }]);
    expect(more.data.strengths[0].agentId).toBe(winner);
    expect(more.data.seasons[0]).toBe('all');
    expect(more.data.then).toBeNull();
    expect(more.data.now).toEqual({ after: 1516, confidence: { deviation: 350 } });
    expect(more.data.far).toEqual({ after: 1516 });
    expect(more.data.paged).toEqual({ nodes: [{ wins: 1 }], pageInfo: { hasNextPage: false } });
    const nowhere = await ask(`{ ratingAt(game: "tic-tac-toe", agentId: "ada.bot", position: 1.5) { after } }`);
    expect(nowhere.errors?.[0]?.extensions?.code).toBe('QUERY.BAD_POSITION');
    expect(ratingHistory).toEqual([{ before: 1500, after: winner === 'ada.bot' ? 1516 : 1484, matchId: id }]);
    expect(balances.nodes[0].balanceCents).toBe(winner === 'ada.bot' ? '1240' : '700');
    expect(all.nodes.reduce((sum: bigint, row: { balanceCents: string }) => sum + BigInt(row.balanceCents), 0n)).toBe(
      0n,
    );
  });

  it('shows a wallet, its statement and the trial balance', async () => {
    const { data } = await ask(
      `{
      wallet(accountId: "ada") { purses { currency availableCents withdrawableCents heldCents owedCents } frozen budgets { currency } }
      statement(accountId: "ada", first: 2) { nodes { eventType amountCents account } pageInfo { hasNextPage endCursor } }
      trialBalance { currency sumCents accounts { account balanceCents } }
    }`,
      operator,
    );
    const [purse] = data.wallet.purses;
    expect(purse).toMatchObject({ currency: 'PLAY', withdrawableCents: '0', heldCents: '0', owedCents: '0' });
    expect(data.wallet).toMatchObject({ frozen: false, budgets: [] });
    expect(data.statement.nodes).toEqual([
      { eventType: 'CreditsGranted', amountCents: '1000', account: 'player:ada' },
      { eventType: 'FundsHeld', amountCents: '-300', account: 'player:ada' },
    ]);
    const [books] = data.trialBalance;
    expect(books).toMatchObject({ currency: 'PLAY', sumCents: '0' });
    const lines = books.accounts.map(({ account }: { account: string }) => account);
    expect(lines).toEqual(['escrow', 'house:grants', 'house:rake', 'player']);
  });

  it('gives out the ledger page by page, each account once', async () => {
    const seen: string[] = [];
    for (let after: string | null = null; ; ) {
      const { data } = await ask(
        'query ($after: String) { balances(first: 2, after: $after) { nodes { account currency } pageInfo { endCursor } } }',
        operator,
        { after },
      );
      seen.push(...data.balances.nodes.map(({ account }: { account: string }) => account));
      after = data.balances.pageInfo.endCursor;
      if (after === null) break;
    }
    expect(seen).toEqual(['escrow', 'house:grants', 'house:rake', 'player:ada', 'player:bob']);
  });

  it('exports a statement for a spreadsheet, to whom it may be shown', async () => {
    const get = (query = '', headers = operator) => fetch(`${url}/v1/accounts/ada/statement.csv${query}`, { headers });
    const file = await get();
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
    const [head, first, second] = (await file.text()).split('\r\n');
    expect(head).toBe('position,at,event,currency,amount,balance,match');
    expect(first).toMatch(/^\d+,\d{4}-\d\d-\d\dT.*Z,CreditsGranted,PLAY,10\.00,10\.00,$/);
    expect(second).toMatch(/,FundsHeld,PLAY,-3\.00,7\.00,[0-9a-f-]{36}$/);
    expect((await (await get('?currency=USD')).text()).trim()).toBe(head);
    expect((await get('', {})).status).toBe(401);
    expect((await get('', { authorization: 'Bearer nope' })).status).toBe(401);
  });

  it('says what a match would cost, and keeps to a budget', async () => {
    const estimate = (stakeCents: string) =>
      ask(
        `{ estimateMatch(agents: ["ada.bot", "bob.bot"], stakeCents: "${stakeCents}") { agentId computeCents refusal } }`,
        operator,
      );
    const free = { computeCents: '0', refusal: null };
    expect((await estimate('5')).data.estimateMatch).toEqual([
      { agentId: 'ada.bot', ...free },
      { agentId: 'bob.bot', ...free },
    ]);
    const set = await command(
      'setBudget(accountId: "ada", currency: "PLAY", agentId: "ada.bot", perDayCents: "4") { events }',
    );
    expect(set.data.setBudget.events).toEqual(['BudgetSet']);
    const [ada, bob] = (await estimate('5')).data.estimateMatch;
    expect([ada.refusal, bob.refusal]).toEqual(['budget: ada has 0.04 for 0.05 PLAY', null]);
    const { data } = await command(
      'proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], stakeCents: "5") { id }',
    );
    await arena.settled();
    const match = (await ask(`{ match(matchId: "${data.proposeMatch.id}") { status detail } }`)).data.match;
    expect(match).toEqual({ status: 'voided', detail: 'The budget of ada does not allow 0.05 PLAY for this.' });
    const { wallet } = (await ask('{ wallet(accountId: "ada") { budgets { spentCents spentTodayCents } } }', operator))
      .data;
    expect(wallet.budgets).toEqual([{ spentCents: '0', spentTodayCents: '0' }]);
    const lifted = await command('setBudget(accountId: "ada", currency: "PLAY", agentId: "ada.bot") { events }');
    expect(lifted.errors ?? []).toEqual([]);
    expect((await estimate('5')).data.estimateMatch[0].refusal).toBeNull();
  });

  it('plays for a bounty, and takes a settled match back to the last cent', async () => {
    const available = async () => {
      const { data } = await ask(
        '{ ada: wallet(accountId: "ada") { purses { availableCents heldCents } } bob: wallet(accountId: "bob") { purses { availableCents heldCents } } }',
        operator,
      );
      return data;
    };
    const before = await available();
    const { data } = await command(
      `proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], stakeCents: "7", bountyCents: "9", sponsorId: "bob") { id }`,
    );
    const { id } = data.proposeMatch;
    const look = async () => (await ask(`{ match(matchId: "${id}") { status } }`)).data.match?.status;
    await expect.poll(look, { timeout: 60_000 }).toBe('settled');
    await arena.settled();
    expect(await available()).not.toEqual(before);
    const reversed = await command(`reverseMatch(matchId: "${id}", reason: "replayed") { events }`);
    expect(reversed.data.reverseMatch.events).toEqual(['MatchReversed']);
    await arena.settled();
    expect(await available()).toEqual(before);
    expect(await look()).toBe('reversed');
    const half = await command(
      'proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], bountyCents: "9") { id }',
    );
    expect(half.errors?.[0]?.extensions?.code).toBe('COMMAND.INVALID');
    const frozen = await command('freezeWallet(accountId: "ada", frozen: true, reason: "dispute") { events }');
    expect(frozen.data.freezeWallet.events).toEqual(['WalletFrozen']);
    expect((await ask('{ wallet(accountId: "ada") { frozen } }', operator)).data.wallet.frozen).toBe(true);
  }, 90_000);

  it('plays an agent in Python against one in JavaScript, and records what ran them', async (context) => {
    const why = whyNoProcessSandboxes();
    if (why) context.skip(`process sandboxes: ${why}`);
    const source = 'def act(observation):\n    return observation["legal"][0]\n';
    const runtime = 'runtime: "python", games: ["tic-tac-toe"], source: $source';
    const submitted = await ask(
      `mutation ($source: String!) { submitAgent(ownerId: "ada", name: "snake", ${runtime}) { id } }`,
      operator,
      { source },
    );
    expect(submitted.errors ?? []).toEqual([]);
    expect((await ask('{ agent(agentId: "ada.snake") { runtime } }')).data.agent.runtime).toBe('python');
    const { data } = await command(
      'proposeMatch(game: "tic-tac-toe", agents: ["ada.snake", "bob.bot"], stakeCents: "10") { id }',
    );
    const { id } = data.proposeMatch;
    const look = async () => (await ask(`{ match(matchId: "${id}") { status } }`)).data.match?.status;
    await expect.poll(look, { timeout: 60_000 }).toBe('settled');
    const events = await arena.store.readStream(`match-${id}`);
    const played = events.find(({ type }) => type === 'MatchPlayed')?.data as { execution: Record<string, unknown> };
    expect(played.execution).toMatchObject({
      driver: 'process/python+wasm',
      usage: [
        { driver: 'process/python', meter: 'time', cpuMs: expect.any(Number) },
        { driver: 'wasm', meter: 'fuel' },
      ],
      signed: { signature: expect.stringMatching(/^[0-9a-f]{128}$/) },
    });
  }, 90_000);

  it.each([
    ['registerOwner(accountId: "ada", displayName: "A") { id }', 'ACCOUNTS.TAKEN'],
    ['registerOwner(accountId: "Not A Slug", displayName: "A") { id }', 'COMMAND.INVALID'],
    ['grantCredits(accountId: "nobody", amountCents: "1") { id }', 'ACCOUNTS.UNKNOWN'],
    ['grantCredits(accountId: "ada", amountCents: "0") { id }', 'COMMAND.INVALID'],
    ['grantCredits(accountId: "ada", amountCents: "1.5") { id }', 'COMMAND.INVALID'],
    [
      'submitAgent(ownerId: "zoe", name: "x", games: ["tic-tac-toe"], source: "function act(){}") { id }',
      'ACCOUNTS.UNKNOWN',
    ],
    [
      'submitAgent(ownerId: "ada", name: "x", games: ["go"], source: "function act(){}") { id }',
      'SANDBOX.UNKNOWN_GAME',
    ],
    [
      'submitAgent(ownerId: "ada", name: "x", games: ["tic-tac-toe"], source: "function (") { id }',
      'AGENTS.BROKEN_CODE',
    ],
    ['revokeRunner(runnerId: "r-0123456789abcdef", reason: "x") { id }', 'RUNNERS.UNKNOWN'],
    ['proposeMatch(game: "go", agents: ["ada.bot", "bob.bot"]) { id }', 'SANDBOX.UNKNOWN_GAME'],
    ['proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "zoe.bot"]) { id }', 'AGENTS.UNKNOWN'],
    ['proposeMatch(game: "connect-four", agents: ["ada.bot", "bob.bot"]) { id }', 'AGENTS.OTHER_GAME'],
    ['proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "ada.bot"]) { id }', 'ARENA.SAME_AGENT'],
    ['proposeMatch(game: "tic-tac-toe", agents: ["ada.bot"]) { id }', 'SANDBOX.WRONG_SEATS'],
    ['proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot", "cyd.bot"]) { id }', 'SANDBOX.WRONG_SEATS'],
  ])('refuses %s with %s', async (mutation, code) => {
    const { errors } = await command(mutation);
    expect(errors?.[0]?.extensions?.code).toBe(code);
    expect(errors?.[0]?.message).not.toMatch(/\n\s+at /);
  });

  it('asks for a token before it takes a command, and for a good one', async () => {
    const mutation = 'registerOwner(accountId: "eve", displayName: "E") { id }';
    expect((await command(mutation, {})).errors?.[0]?.extensions?.code).toBe('AUTH.UNAUTHENTICATED');
    for (const authorization of ['Bearer nope', 'Basic abc', 'Bearer', '']) {
      const { errors } = await command(mutation, { authorization });
      expect(errors?.[0]?.extensions?.code, authorization).toBe('AUTH.UNAUTHENTICATED');
    }
    expect((await ask('{ agents(ownerId: "eve") { nodes { agentId } } }')).data.agents.nodes).toEqual([]);
  });

  it('carries out the same Idempotency-Key once, and refuses it for another request', async () => {
    const headers = { ...operator, 'idempotency-key': 'k-1' };
    const grant = (cents: string) =>
      command(`grantCredits(accountId: "bob", amountCents: "${cents}") { position repeated }`, headers);
    const first = await grant('5');
    expect(first.data.grantCredits.repeated).toBe(false);
    expect((await grant('5')).data.grantCredits).toEqual({ ...first.data.grantCredits, repeated: true });
    expect((await grant('6')).errors?.[0]?.extensions).toMatchObject({ code: 'COMMAND.KEY_REUSED', status: 422 });
  });

  it('notices a key that is used again for another match, also if only the bounty is another', async () => {
    const propose = (more: string) =>
      command(
        `proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], seed: "key" ${more}) { id repeated }`,
        { ...operator, 'idempotency-key': 'bounty' },
      );
    const bounty = 'bountyCents: "5", sponsorId: "ada"';
    const first = await propose(bounty);
    expect((await propose(bounty)).data.proposeMatch).toEqual({ ...first.data.proposeMatch, repeated: true });
    for (const other of ['', 'bountyCents: "6", sponsorId: "ada"', 'bountyCents: "5", sponsorId: "bob"']) {
      expect((await propose(other)).errors?.[0]?.extensions?.code, other).toBe('COMMAND.KEY_REUSED');
    }
  });

  it.each([
    ['{ balances(after: "?") { nodes { account } } }', 'QUERY.BAD_CURSOR'],
    ['{ balances(first: 201) { nodes { account } } }', 'QUERY.BAD_PAGE'],
    ['{ matches(first: 0) { nodes { matchId } } }', 'QUERY.BAD_PAGE'],
    ['{ matches(first: 1000000) { nodes { matchId } } }', 'QUERY.BAD_PAGE'],
    ['{ matches(after: "?") { nodes { matchId } } }', 'QUERY.BAD_CURSOR'],
    ['{ matches(after: "aGVsbG8") { nodes { matchId } } }', 'QUERY.BAD_CURSOR'],
    ['{ leaderboard(game: "go") { rank } }', 'SANDBOX.UNKNOWN_GAME'],
    ['{ leaderboard(game: "tic-tac-toe", first: -1) { rank } }', 'QUERY.BAD_PAGE'],
    ['{ leaderboard(game: "tic-tac-toe", by: "luck") { rank } }', 'QUERY.BAD_ORDER'],
    ['{ leaderboard(game: "tic-tac-toe", season: "last summer") { rank } }', 'QUERY.BAD_SEASON'],
    ['{ standing(game: "tic-tac-toe", agentId: "ada.bot", season: "2026-Q5") { rank } }', 'QUERY.BAD_SEASON'],
    ['{ neighbours(game: "tic-tac-toe", agentId: "a", each: 51) { rank } }', 'QUERY.BAD_PAGE'],
    ['{ ratingAt(game: "tic-tac-toe", agentId: "a") { after } }', 'QUERY.BAD_TIME'],
    ['{ ratingAt(game: "tic-tac-toe", agentId: "a", at: "soon") { after } }', 'QUERY.BAD_TIME'],
    ['{ ratingHistory(game: "tic-tac-toe", agentId: "a", before: "x") { after } }', 'QUERY.BAD_CURSOR'],
    ['{ deadLetters(view: "none") { code } }', 'PROJECTION.UNKNOWN'],
  ])('refuses %s with %s', async (query, code) => {
    expect((await ask(query, operator)).errors?.[0]?.extensions?.code).toBe(code);
  });

  it.each([
    ['{ nonsense }', /Cannot query field "nonsense"/],
    ['{', /Syntax Error/],
    ['query ($id: String!) { match(matchId: $id) { matchId } }', /\$id/],
    [`{ match(matchId: "none") ${'{ turns '.repeat(9)} { turn } ${'}'.repeat(9)} }`, /./],
  ])('says what is wrong with the query %s', async (query, message) => {
    const { data, errors } = await ask(query);
    expect(data).toBeNull();
    expect(errors?.[0]?.message).toMatch(message);
    expect(errors?.[0]?.extensions).toEqual({ code: 'QUERY.INVALID', status: 400 });
  });

  it('rebuilds a view for an operator, and for nobody else', async () => {
    const rebuild = 'rebuildProjection(view: "leaderboards") { view version servingVersion deadLetters }';
    expect((await command(rebuild, {})).errors?.[0]?.extensions?.code).toBe('AUTH.UNAUTHENTICATED');
    const runner = { authorization: `Bearer ${readFileSync(join(folder, 'runner.token'), 'utf8')}` };
    expect((await command(rebuild, runner)).errors?.[0]?.extensions?.code).toBe('AUTH.FORBIDDEN');
    const board = '{ leaderboard(game: "tic-tac-toe") { agentId rank rating games } }';
    const before = await ask(board);
    expect((await command(rebuild)).data.rebuildProjection).toMatchObject({ view: 'leaderboards', deadLetters: 0 });
    const list = async () =>
      (await ask('{ projections { view lagEvents lagSeconds build { phase } } }')).data.projections;
    await expect
      .poll(async () => (await list()).every((view: { build: unknown }) => view.build === null), { timeout: 30_000 })
      .toBe(true);
    expect(await ask(board)).toEqual(before);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    for (const name of ['lag_events', 'lag_seconds', 'batch_events_count', 'dead_letters', 'build_position']) {
      expect(metrics).toMatch(new RegExp(`agon_projection_${name}\\{view="leaderboards"\\} \\d+`));
    }
  });

  it('answers with null for what is not there', async () => {
    expect((await ask('{ match(matchId: "none") { matchId } agent(agentId: "none") { name } }')).data).toEqual({
      match: null,
      agent: null,
    });
  });

  it.each<[string, string, string]>([
    ['depth', `{ agent(agentId: "a") { versions { ${'a { '.repeat(50)}b${' }'.repeat(50)} } } }`, 'QUERY.TOO_DEEP'],
    ['aliases', `{ ${Array.from({ length: 900 }, (_, i) => `a${i}: games`).join(' ')} }`, 'QUERY.TOO_MANY_ALIASES'],
    ['tokens', `{ ${'games '.repeat(10_000)} }`, 'QUERY.INVALID'],
    ['a cycle of fragments', '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }', 'QUERY.INVALID'],
    ['a huge page', '{ matches(first: 1000000000) { nodes { matchId } } }', 'QUERY.BAD_PAGE'],
    ['a page of no rows', '{ matches(first: 0) { nodes { matchId } } }', 'QUERY.BAD_PAGE'],
  ])('refuses a query with too much of it: %s', async (_name, query, code) => {
    const { errors = [] } = await ask(query);
    expect(errors.map(({ extensions }) => extensions?.code)).toContain(code);
    expect(errors.length).toBeLessThanOrEqual(21);
  });

  it('takes one query at a time', async () => {
    const body = JSON.stringify(Array.from({ length: 500 }, () => ({ query: '{ games }' })));
    const flood = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    expect(await flood.json()).toMatchObject({ data: null, errors: [{ extensions: { code: 'QUERY.INVALID' } }] });
  });

  it('has REST routes for health, and problem details for the rest', async () => {
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/agon_consumer_lag_events\{consumer="runner"\} \d+/);
    const missing = await fetch(`${url}/missing`);
    expect(missing.headers.get('content-type')).toMatch(/problem\+json/);
    expect(await missing.json()).toMatchObject({ code: 'HTTP.NOT_FOUND', status: 404 });
  });
});

describe('problem details', () => {
  it.each([
    ['AUTH.FORBIDDEN', 403],
    ['COMMAND.INVALID', 400],
    ['ARENA.UNKNOWN_MATCH', 404],
    ['ARENA.LEASE_LOST', 409],
    ['STORE.FULL', 507],
    ['STORE.CORRUPT', 500],
    ['WHAT.EVER', 500],
  ])('%s is %i', (code, status) => expect(statusOf(code)).toBe(status));

  it('shows what the caller can act on, and hides what is ours', () => {
    expect(problemOf(new AgonError('WALLET.HOLD_EXISTS', 'Taken.', { holdId: 'h' }))).toMatchObject({
      status: 409,
      code: 'WALLET.HOLD_EXISTS',
      detail: 'Taken.',
      holdId: 'h',
    });
    const hidden = problemOf(new TypeError('secret of the house'));
    expect(hidden).toMatchObject({ status: 500, code: 'INTERNAL' });
    expect(JSON.stringify(hidden)).not.toMatch(/secret/);
  });
});
