import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { zipOf } from '../attack/archives.js';
import { run, type Served, serve, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const data = join(folder.path, 'arena');
let arena: Served;
let operator: Record<string, string>;

beforeAll(async () => {
  arena = await serve(data);
  operator = { authorization: `Bearer ${readFileSync(join(data, 'operator.token'), 'utf8')}` };
});

afterAll(async () => {
  await arena?.stop('SIGKILL');
  folder.remove();
});

const matchesLeft = '{ matches(first: 200) { nodes { status } } }';

describe('an arena on its first start', () => {
  it('is populated: settled matches, ranked agents, balances that sum to zero', async () => {
    const { data: found, errors } = await arena.graphql<{
      games: string[];
      agents: { nodes: { agentId: string; versions: { version: number }[] }[] };
      matches: { nodes: { status: string; transcript: unknown[]; potCents: string; rakeCents: string }[] };
      leaderboard: { rank: number; rating: number; games: number }[];
      balances: { nodes: { balanceCents: string }[] };
    }>(
      `{
      games
      agents { nodes { agentId versions { version } } }
      matches(first: 200) { nodes { status potCents rakeCents transcript { turn seat action } } }
      leaderboard(game: "connect-four") { rank agentId rating games }
      balances { nodes { account currency balanceCents } }
    }`,
      {},
      operator,
    );
    expect(errors ?? []).toEqual([]);
    expect(found.games).toEqual(['tic-tac-toe', 'connect-four', 'leduc-holdem', 'chess', 'prisoners']);
    expect(found.agents.nodes).toHaveLength(10);
    expect(found.matches.nodes).toHaveLength(120);
    expect(found.matches.nodes.every(({ status }) => status === 'settled')).toBe(true);
    expect(found.matches.nodes.every(({ transcript }) => transcript.length > 4)).toBe(true);
    expect(found.leaderboard.map(({ rank }) => rank)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(found.leaderboard[0]?.rating).toBeGreaterThan(1500);
    expect(found.balances.nodes.reduce((sum, row) => sum + BigInt(row.balanceCents), 0n)).toBe(0n);
  });

  it('tells its health, readiness and metrics', async () => {
    expect(await (await fetch(`${arena.url}/healthz`)).json()).toMatchObject({ status: 'ok' });
    const ready = (await (await fetch(`${arena.url}/readyz`)).json()) as { status: string; parts: { part: string }[] };
    expect(ready.status).toBe('ready');
    expect(ready.parts.map(({ part }) => part)).toContain('projection.leaderboards');
    const metrics = await (await fetch(`${arena.url}/metrics`)).text();
    expect(metrics).toMatch(/agon_commands_total\{type="ReportMatch",outcome="appended"\} 120/);
    expect(metrics).toMatch(/agon_log_position \d+/);
    expect((await run('status', '--data', data, '--json')).code).toBe(0);
  });

  it('answers what it does not know with problem details', async () => {
    const response = await fetch(`${arena.url}/nowhere`);
    expect(response.status).toBe(404);
    expect(response.headers.get('content-type')).toMatch(/application\/problem\+json/);
    expect(await response.json()).toMatchObject({ code: 'HTTP.NOT_FOUND', status: 404 });
  });

  it('lets nobody else onto its data folder or its port', async () => {
    const second = await run('start', '--data', data, '--port', '0');
    expect(second).toMatchObject({ code: 1, stderr: expect.stringMatching(/DATA\.IN_USE/) });
    const other = join(folder.path, 'other');
    const port = new URL(arena.url).port;
    const samePort = await run('start', '--data', other, '--port', port, '--no-ladder');
    expect(samePort).toMatchObject({ code: 1, stderr: expect.stringMatching(/NET\.PORT_IN_USE/) });
    expect(samePort.stderr).not.toMatch(/\n\s+at /);
  });
});

describe('watching', () => {
  it('shows every turn of a match, live or over, in order, and then its end', async () => {
    const propose = `mutation { proposeMatch(game: "connect-four", agents: ["gold.minimax", "bronze.random"]) { id } }`;
    const { data: made } = await arena.graphql<{ proposeMatch: { id: string } }>(propose, {}, operator);
    const { id } = made.proposeMatch;
    const live = await run('match', 'watch', id, '--data', data, '--json');
    expect(live.code).toBe(0);
    const heard = live.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const turns = heard.slice(0, -1);
    expect(turns.length).toBeGreaterThan(4);
    expect(turns.map(({ id }) => id)).toEqual(turns.map((_turn, i) => `1.${i + 1}`));
    expect(heard.at(-1)).toMatchObject({ event: 'end', status: 'settled', turns: turns.length });

    const feed = (headers: Record<string, string>) => fetch(`${arena.url}/v1/matches/${id}/live`, { headers });
    const rest = await (await feed({ 'last-event-id': `1.${turns.length - 2}` })).text();
    expect(rest.match(/^id: .*$/gm)).toEqual([`id: 1.${turns.length - 1}`, `id: 1.${turns.length}`]);
    expect(await (await feed({ 'last-event-id': 'x' })).json()).toMatchObject({
      code: 'QUERY.BAD_CURSOR',
      status: 400,
    });
    const told = await run('match', 'watch', id, '--data', data);
    const lines = told.stdout.trim().split('\n');
    expect(lines[0]).toMatch(/connect-four .* gold\.minimax against bronze\.random/);
    expect(lines.slice(1, -1)).toEqual(
      turns.map(({ turn, seat, action }) => {
        return `turn ${turn}  ${['gold.minimax', 'bronze.random'][seat]} plays ${action}`;
      }),
    );
    expect(lines.at(-1)).toMatch(/^settled: (gold\.minimax won|bronze\.random won|a draw) \(/);
    const missing = await run('match', 'watch', 'nope', '--data', data, '--json');
    expect([missing.code, JSON.parse(missing.stderr).error.code]).toEqual([1, 'ARENA.UNKNOWN_MATCH']);
    const seeds = await arena.graphql<{ match: { seed: string } }>(`{ match(matchId: "${id}") { seed } }`);
    expect(seeds.data.match.seed).not.toBeNull();
  });
});

describe('agents from outside', () => {
  const submit = async (name: string, source: string, ...more: string[]) => {
    const file = join(folder.path, `${name}.js`);
    writeFileSync(file, source);
    return run('agent', 'submit', file, '--owner', 'newcomer', '--data', data, '--json', ...more);
  };

  it('are listed, all of them or those of one owner', async () => {
    const all = JSON.parse((await run('agent', 'list', '--data', data, '--json')).stdout) as { agentId: string }[];
    expect(all).toHaveLength(10);
    const { code, stdout } = await run('agent', 'list', '--owner', 'gold', '--data', data);
    expect(code).toBe(0);
    const mine = all.map(({ agentId }) => agentId).filter((agentId) => agentId.startsWith('gold.'));
    expect(stdout.split('\n')[0]).toMatch(/^agent +runtime +version +games +updated/);
    expect(stdout.match(/^\S+\.\S+/gm)).toEqual(mine);
  });

  it('are refused while their owner is unknown, and taken once it is registered', async () => {
    const source = 'export function act(observation) { return observation.legal[0]; }';
    const early = await submit('good', source);
    expect(early).toMatchObject({ code: 1, stderr: expect.stringMatching(/ACCOUNTS\.UNKNOWN/) });
    expect(await run('owner', 'register', 'newcomer', '--data', data)).toMatchObject({ code: 0 });
    expect(JSON.parse((await submit('good', source)).stdout)).toMatchObject({
      id: 'newcomer.good',
      outcome: 'submitted',
    });
    expect(JSON.parse((await submit('good', source)).stdout)).toMatchObject({ outcome: 'unchanged' });
    const changed = await submit('good', `${source}\n// again`);
    expect(changed.stderr).toBe('');
    expect(JSON.parse(changed.stdout)).toMatchObject({ outcome: 'new version' });
  });

  it.each([
    { name: 'broken', source: 'function act( {', says: /AGENTS\.BROKEN_CODE.*syntax_error/ },
    { name: 'actless', source: 'function init() {}', says: /AGENTS\.BROKEN_CODE.*no_act/ },
    {
      name: 'slipped',
      source: 'agon bundle 1\n{"entry":"../x.js","files":{"../x.js":""}}',
      says: /BROKEN_CODE.*leads out/,
    },
    { name: 'huge', source: `function act() {}${' '.repeat(1_100_000)}`, says: /AGENTS\.BROKEN_CODE.*bytes/ },
  ])('that cannot play are refused: $name', async ({ name, source, says }) => {
    const refused = await submit(name, source);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(says);
    expect(refused.stderr).not.toMatch(/\n\s+at /);
  });

  it.each([
    { name: 'throws', source: 'function act() { throw new Error("no"); }', by: 'crash' },
    { name: 'loops', source: 'function act() { for (;;) {} }', by: 'out_of_fuel' },
    { name: 'cheats', source: 'function act() { return 0; }', by: 'illegal_move' },
    {
      name: 'floods',
      source: 'function act() { const a = []; for (;;) a.push(new Array(1e6).fill(1)); }',
      by: 'out_of_memory',
    },
    { name: 'dreams', source: 'function act() { return 99; }', by: 'bad_reply' },
    { name: 'babbles', source: 'function act() { return "x".repeat(1e6); }', by: 'reply_too_large' },
  ])('that misbehave lose: $name', async ({ name, source, by }) => {
    expect((await submit(name, source)).code).toBe(0);
    const proposal = `mutation { proposeMatch(game: "tic-tac-toe", agents: ["newcomer.${name}", "gold.minimax"]) { id } }`;
    const proposed = await arena.graphql<{ proposeMatch: { id: string } }>(proposal, {}, operator);
    const { id } = proposed.data.proposeMatch;
    type Found = { match: { status: string; reason: string; winner: number | null } };
    const look = async () =>
      (await arena.graphql<Found>(`{ match(matchId: "${id}") { status reason winner } }`)).data.match;
    await expect.poll(look, { timeout: 60_000, interval: 100 }).toEqual({ status: 'settled', reason: by, winner: 1 });
  });

  it('may be several files, known by their contents alone, and play', async () => {
    const path = join(folder.path, 'several');
    const files = [
      { name: 'main.js', content: "import { last } from './lib/last.js';\nexport const act = (o) => last(o.legal);" },
      { name: 'lib/last.js', content: 'export const last = (list) => list[list.length - 1];' },
    ];
    mkdirSync(join(path, 'lib'), { recursive: true });
    for (const { name, content } of files) writeFileSync(join(path, name), content);
    writeFileSync(`${path}.zip`, zipOf(files));
    const bring = async (file: string) => {
      const brought = await run('agent', 'submit', file, '--owner', 'newcomer', '--data', data, '--json');
      return JSON.parse(brought.stdout || brought.stderr);
    };
    expect(await bring(path)).toMatchObject({ id: 'newcomer.several', outcome: 'submitted' });
    expect(await bring(`${path}.zip`)).toMatchObject({ id: 'newcomer.several', outcome: 'unchanged' });
    const proposal =
      'mutation { proposeMatch(game: "tic-tac-toe", agents: ["newcomer.several", "gold.minimax"]) { id } }';
    const { id } = (await arena.graphql<{ proposeMatch: { id: string } }>(proposal, {}, operator)).data.proposeMatch;
    type Found = { match: { status: string; reason: string } };
    const look = async () => (await arena.graphql<Found>(`{ match(matchId: "${id}") { status reason } }`)).data.match;
    await expect.poll(look, { timeout: 60_000, interval: 100 }).toEqual({ status: 'settled', reason: 'line' });
  });

  it('that cannot pay are voided with the reason, and nothing is kept', async () => {
    const proposal =
      'mutation { proposeMatch(game: "tic-tac-toe", agents: ["newcomer.good", "gold.minimax"], stakeCents: "500") { id } }';
    const { id } = (await arena.graphql<{ proposeMatch: { id: string } }>(proposal, {}, operator)).data.proposeMatch;
    type Found = { match: { status: string; reason: string } };
    const look = async () => (await arena.graphql<Found>(`{ match(matchId: "${id}") { status reason } }`)).data.match;
    await expect.poll(look, { timeout: 30_000 }).toEqual({ status: 'voided', reason: 'stake_refused' });
    const escrow = async () => {
      const { data: found } = await arena.graphql<{ balances: { nodes: { account: string; balanceCents: string }[] } }>(
        '{ balances { nodes { account balanceCents } } }',
        {},
        operator,
      );
      return found.balances.nodes.find(({ account }) => account === 'escrow')?.balanceCents;
    };
    await expect.poll(escrow, { timeout: 30_000 }).toBe('0');
  });
});

describe('stopping and starting again', () => {
  it('stops on Ctrl-C with exit code 0 and leaves nothing behind', async () => {
    expect(await arena.stop('SIGINT')).toBe(0);
    expect((await run('status', '--data', data)).code).toBe(1);
    expect((await run('log', 'verify', '--data', data, '--json')).code).toBe(0);
  });

  it('repeats nothing on the second start', async () => {
    const before = JSON.parse((await run('status', '--data', data, '--json')).stdout) as { events: number };
    arena = await serve(data);
    expect(arena.events).toBe(before.events);
    expect(
      (await arena.graphql<{ matches: { nodes: unknown[] } }>(matchesLeft)).data.matches.nodes.length,
    ).toBeGreaterThan(120);
    expect(await arena.stop('SIGTERM')).toBe(0);
  });

  it('goes on after SIGKILL in the middle of the ladder, and loses and doubles nothing', async () => {
    const killed = join(folder.path, 'killed');
    const first = serve(killed).catch(() => undefined);
    const playing = async () => {
      const { stdout } = await run('status', '--data', killed, '--json');
      return stdout === '' ? 0 : (JSON.parse(stdout) as { events: number; pid?: number }).events;
    };
    await expect.poll(playing, { timeout: 60_000, interval: 200 }).toBeGreaterThan(300);
    const { pid } = JSON.parse((await run('status', '--data', killed, '--json')).stdout) as { pid: number };
    process.kill(pid, 'SIGKILL');
    await first;
    arena = await serve(killed);
    const { data: found } = await arena.graphql<{
      matches: { nodes: { status: string }[] };
      balances: { nodes: { account: string; balanceCents: string }[] };
    }>(
      '{ matches(first: 200) { nodes { status } } balances(first: 200) { nodes { account balanceCents } } }',
      {},
      { authorization: `Bearer ${readFileSync(join(killed, 'operator.token'), 'utf8')}` },
    );
    expect(found.matches.nodes).toHaveLength(120);
    expect(found.matches.nodes.every(({ status }) => status === 'settled')).toBe(true);
    const balances = found.balances.nodes;
    expect(balances.reduce((sum, row) => sum + BigInt(row.balanceCents), 0n)).toBe(0n);
    expect(balances.find(({ account }) => account === 'escrow')?.balanceCents).toBe('0');
    expect(await arena.stop()).toBe(0);
    expect((await run('log', 'verify', '--data', killed)).code).toBe(0);
  });
});
