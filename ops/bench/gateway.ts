import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { AgonError } from '../../services/kernel/index.js';
import { nodeFlags, packageRoot } from '../../services/runtime/package.js';
import { load, type Shot } from './load.js';
import { play } from './play.js';
import { type BenchOptions, figures, type Report, race, ratio } from './rounds.js';

const REQUESTS = 20_000;
const CONNECTIONS = 32;
const GAME = 'connect-four';
const BOARD = `{ leaderboard(game: "${GAME}", first: 20) { rank agentId rating games wins draws losses provisional } }`;

/** The gateway's doors: GraphQL and REST against bare Fastify, and the Play stream against bare gRPC. */
export async function gateway(options: BenchOptions): Promise<Report> {
  const http = await overHttp(options);
  const streams = await play(options);
  return {
    results: { ...http.results, ...streams.results },
    ratios: { ...http.ratios, ...streams.ratios },
    targets: { ...http.targets, ...streams.targets },
    notes: [...http.notes, ...streams.notes],
  };
}

/** A whole arena with the house's ladder played, in a process of its own, as `agon start` makes it. */
async function overHttp(options: BenchOptions): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), 'agon-bench-gateway-'));
  const arena = start(
    [join(packageRoot, 'ops', 'cli', 'agon.js'), 'start', '--data', join(folder, 'data'), '--port', '0', '--json'],
    { AGON_ANALYTICS: 'false' },
  );
  const hello = start([join(packageRoot, 'dist', 'ops', 'bench', 'hello.js')]);
  try {
    options.progress('the house plays its ladder');
    const [{ url }, { url: bare }] = await Promise.all([arena.ready, hello.ready]);
    const found = (await (await fetch(`${url}/v1/matches?game=${GAME}&status=settled&first=1`)).json()) as {
      items: { matchId: string }[];
    };
    const shots: Readonly<Record<string, Shot>> = {
      hello: { url: `${bare}/` },
      rest: { url: `${url}/v1/matches/${found.items[0]?.matchId}` },
      graphql: { url: `${url}/graphql`, body: JSON.stringify({ query: BOARD }) },
    };
    const requests = options.quick ? REQUESTS / 10 : REQUESTS;
    const contenders = Object.entries(shots).map(([name, shot]) => ({
      name,
      run: () => load(shot, requests, CONNECTIONS),
    }));
    const measured = await race(contenders, options);
    return {
      results: Object.fromEntries([...measured].map(([name, rounds]) => [name, figures(rounds)])),
      ratios: { rest: ratio(measured, 'rest', 'hello'), graphql: ratio(measured, 'graphql', 'hello') },
      targets: { rest: 0.6, graphql: 0.35 },
      notes: [
        `Requests answered a second over ${CONNECTIONS} connections, each with one request at a time: a settled match by REST, ` +
          'and the first 20 of a leaderboard by GraphQL, of an arena that "agon start" made, against a constant by bare Fastify. ' +
          'Nothing happens in the arena meanwhile, so answers hold until the next match ends.',
      ],
    };
  } finally {
    await Promise.all([arena.stop(), hello.stop()]);
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Started {
  /** What it says first, as JSON. */
  readonly ready: Promise<{ url: string }>;
  stop(): Promise<void>;
}

function start(args: readonly string[], settings: Record<string, string> = {}): Started {
  const { PATH, HOME } = env;
  const child: ChildProcess = spawn(execPath, [...nodeFlags, ...args], {
    env: { PATH, HOME, ...settings },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> });
  const ready = Promise.race([
    once(lines, 'line').then(([line]) => JSON.parse(line as string) as { url: string }),
    ended.then(() => Promise.reject(new AgonError('BENCH.CHILD_ENDED', `${args.join(' ')} has ended.`))),
  ]);
  const stop = async () => {
    child.stdin?.end();
    child.kill('SIGINT');
    await ended;
  };
  return { ready, stop };
}
