import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNoProcessSandboxes } from '../../sandbox-runner/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { run, type Served, serve, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const children: ChildProcess[] = [];
let upstream: Server;
let arena: Served | undefined;
let port: number;
let policy: string;

/** Asks an oracle which of its moves to make, on every turn; localhost is the only name that every machine knows. */
const asking = () => `import http.client, json, urllib.parse
def act(observation):
    proxy = http.client.HTTPConnection("127.0.0.1", 3128, timeout=5)
    proxy.request("GET", "http://localhost:${port}/move?of=" + urllib.parse.quote(json.dumps(observation["legal"])))
    return json.loads(proxy.getresponse().read())
`;

const file = (name: string, text: string) => {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
};

beforeAll(async () => {
  upstream = createServer((request, response) => {
    const legal = JSON.parse(new URL(request.url ?? '', 'http://localhost').searchParams.get('of') ?? '[]');
    response.end(JSON.stringify(legal.at(-1)));
  });
  await new Promise<void>((resolve) => upstream.listen(0, 'localhost', resolve));
  port = (upstream.address() as AddressInfo).port;
  const grant = { allow: [{ host: 'localhost', port, methods: ['GET'], paths: ['/move'], allowPrivate: true }] };
  policy = file(
    'policy.json',
    JSON.stringify({ agents: { 'oracle.py': grant, 'ada.oracle': grant }, limits: { stallMs: 10_000 } }),
  );
});

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await arena?.stop('SIGKILL');
  upstream.close();
  folder.remove();
});

const why = whyNoProcessSandboxes();

describe.skipIf(why !== undefined)(`egress${why ? ` (${why})` : ''}`, { timeout: 240_000 }, () => {
  it('is granted to an agent of an author by its file name, and shown', async () => {
    const args = ['match', 'play', file('oracle.py', asking()), 'first', '--game', 'tic-tac-toe'];
    const played = await run(...args, '--egress', policy, '--json');
    expect(played.code, played.stderr).toBe(0);
    const { outcome, usage, deterministic, limits } = JSON.parse(played.stdout);
    expect(outcome.seatAtFault, outcome.detail).toBeNull();
    expect([deterministic, limits.stallMs]).toEqual([false, 10_000]);
    expect(usage[0].egress).toMatchObject([{ host: 'localhost', port, refused: 0 }]);
    expect(usage[0].egress[0].requests).toBeGreaterThanOrEqual(3);
    const shown = await run(...args, '--egress', policy);
    expect(shown.stdout).toMatch(
      new RegExp(`egress  seat 0  localhost:${port}  \\d+ requests, 0 refused, \\d+ B out, \\d+ B in`),
    );
    const without = JSON.parse((await run(...args, '--json')).stdout);
    expect(without.outcome).toMatchObject({ seatAtFault: 0, reason: 'crash' });
    const tested = await run(
      'agent',
      'test',
      join(folder.path, 'oracle.py'),
      '--game',
      'tic-tac-toe',
      '--against',
      'first',
      '--matches',
      '2',
      '--egress',
      policy,
    );
    expect(tested.code, tested.stderr).toBe(0);
  });

  it.each([
    ['a JavaScript agent', ['first', 'first', '--egress', 'api.example.com'], 'EGRESS.NOT_WITH_DRIVER'],
    ['a policy that is not there', ['first', 'first', '--egress', 'none.json'], 'EGRESS.BAD_POLICY'],
    ['a host that is none', ['first', 'first', '--egress', 'http://example.com'], 'EGRESS.BAD_POLICY'],
  ])('is refused to %s, with the reason', async (_what, args, code) => {
    const ran = await run('match', 'play', '--game', 'tic-tac-toe', ...args, '--json');
    expect(ran.code).toBe(1);
    expect(JSON.parse(ran.stderr).error.code).toBe(code);
  });

  it('is granted to agents of an arena by a runner, signed for, and kept in the log', async () => {
    const data = join(folder.path, 'arena');
    arena = await serve(data, '--grpc-port', '0', '--no-runner', '--no-ladder', '--cells', '1');
    const operator = { authorization: `Bearer ${readFileSync(join(data, 'operator.token'), 'utf8')}` };
    const served = arena;
    const command = async (mutation: string) => {
      const { data: answer, errors } = await served.graphql<Record<string, { id: string }>>(
        `mutation { ${mutation} }`,
        {},
        operator,
      );
      expect(errors ?? []).toEqual([]);
      return answer;
    };
    await command('registerOwner(accountId: "ada", displayName: "Ada") { id }');
    const submit = (name: string, runtime: string, source: string) =>
      command(
        `submitAgent(ownerId: "ada", name: "${name}", games: ["tic-tac-toe"], runtime: "${runtime}", source: ${JSON.stringify(source)}) { id }`,
      );
    await submit('oracle', 'python', asking());
    await submit('plain', 'javascript', 'const act = ({ legal }) => legal[0];');
    const agon = join(packageRoot, 'ops', 'cli', 'agon.js');
    const flags = ['--arena', arena.grpc ?? '', '--key-dir', join(folder.path, 'key'), '--egress', policy, '--json'];
    const runner = spawn(execPath, [agon, 'runner', '--data', data, ...flags], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(runner);
    await new Promise((resolve) => createInterface(runner.stdout).once('line', resolve));
    const proposed = await command('proposeMatch(game: "tic-tac-toe", agents: ["ada.oracle", "ada.plain"]) { id }');
    const id = proposed.proposeMatch?.id ?? '';
    const show = async () => JSON.parse((await run('match', 'show', id, '--data', data, '--json')).stdout);
    await expect.poll(show, { timeout: 60_000, interval: 1_000 }).toMatchObject({ status: 'settled' });
    const { execution, reason, detail } = await show();
    expect(['line', 'full_board'], detail).toContain(reason);
    expect(execution).toMatchObject({ deterministic: false, signed: { signature: expect.any(String) } });
    expect(execution.usage[0].egress).toMatchObject([{ host: 'localhost', port, refused: 0 }]);
    expect(execution.usage[1]).not.toHaveProperty('egress');
    expect((await run('match', 'show', id, '--data', data)).stdout).toContain(`egress  seat 0  localhost:${port}`);
    expect((await run('log', 'verify', '--data', data)).code).toBe(0);
  });
});
