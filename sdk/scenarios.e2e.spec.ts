import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ownCertificate } from '../gateway/eventstore/certificate.js';
import { run, type Served, serve, temporaryFolder } from '../ops/e2e/agon.contract.js';
import { packageRoot } from '../services/runtime/package.js';
import { pythonPath, pythonWithSdk, sdkFolder, whyNoPython } from './python/python.contract.js';

interface Line {
  readonly event: string;
  readonly matchId: string;
  readonly turn: number;
  readonly resumed: boolean;
  readonly score: number;
  readonly reason: string;
  readonly code: string;
}

interface Actor {
  readonly child: ChildProcess;
  readonly lines: Line[];
  /** Resolves with the n-th line of this kind. */
  heard(event: string, count?: number): Promise<Line>;
  readonly ended: Promise<number | null>;
}

/** A way between an agent and the arena that can be cut, as networks are. */
class Wire {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  constructor(private readonly target: () => string) {
    this.server = createServer((near) => {
      const [host, port] = this.target().split(':');
      const far = dial(Number(port), host);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.sockets.add(one);
        one.pipe(other);
        one
          .on('error', () => other.destroy())
          .on('close', () => {
            this.sockets.delete(one);
            other.destroy();
          });
      }
    });
  }

  async open(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `127.0.0.1:${(this.server.address() as { port: number }).port}`;
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.server.close();
  }
}

const FLAGS = ['--no-ladder', '--cells', '1', '--play-turn-ms', '200', '--play-bank-ms', '4000'];

interface Sdk {
  readonly name: string;
  /** Starts its actor; see sdk/typescript/actor.ts. */
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  /** Why it cannot be tried here; undefined when it can. */
  readonly why: string | undefined;
}

const SDKS: readonly Sdk[] = [
  {
    name: 'TypeScript',
    command: [execPath, join(packageRoot, 'dist', 'sdk', 'typescript', 'actor.js')],
    env: {},
    why: undefined,
  },
  {
    name: 'Python',
    command: [pythonWithSdk, join(sdkFolder, 'tests', 'actor.py')],
    env: pythonPath,
    why: whyNoPython,
  },
];

/** What every SDK has to stand, against a real arena. */
describe.each(SDKS)('agents that play by the SDK for $name', { timeout: 120_000 }, ({ command, env, why }) => {
  if (why !== undefined) {
    it.skipIf(true)(`pass every scenario: ${why}`, () => {});
    return;
  }
  const folder = temporaryFolder();
  const data = join(folder.path, 'arena');
  const actors: Actor[] = [];
  let arena: Served;
  let wire: Wire;
  let address: string;
  const keys: Record<string, string> = {};

  const ask = async <T>(query: string): Promise<T> => {
    const operator = { authorization: `Bearer ${readFileSync(join(data, 'operator.token'), 'utf8')}` };
    const { data: answer, errors } = await arena.graphql<T>(query, {}, operator);
    expect(errors ?? []).toEqual([]);
    return answer;
  };
  const matchOf = async (matchId: string) => {
    const fields = 'status reason attempts turns seats { agentId score }';
    const found = await ask<{ match: Record<string, unknown> }>(`{ match(matchId: "${matchId}") { ${fields} } }`);
    return found.match;
  };

  function actor(agent: string, ...args: string[]): Actor {
    const [file, ...first] = command;
    const all = [
      ...first,
      '--arena',
      address,
      '--key',
      keys.ada ?? '',
      '--agent',
      agent,
      '--against',
      'bronze.first',
      ...args,
    ];
    const child = spawn(file, all, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
    const lines: Line[] = [];
    const wanted: (() => void)[] = [];
    // Not by its exit code, which is known before its last lines are read.
    let over = false;
    const closed = new Promise<number | null>((resolve) => child.once('close', resolve)).finally(() => {
      over = true;
    });
    const ended = closed.finally(() => {
      for (const look of wanted) look();
    });
    createInterface(child.stdout).on('line', (text) => {
      lines.push(JSON.parse(text) as Line);
      for (const look of wanted) look();
    });
    const heard = (event: string, count = 1) =>
      new Promise<Line>((resolve, reject) => {
        const look = () => {
          const found = lines.filter((line) => line.event === event)[count - 1];
          if (found) resolve(found);
          else if (over) reject(new Error(`${event} never came: ${JSON.stringify(lines)}`));
        };
        wanted.push(look);
        look();
      });
    const started = { child, lines, heard, ended };
    actors.push(started);
    return started;
  }

  beforeAll(async () => {
    arena = await serve(data, '--play-port', '0', ...FLAGS);
    wire = new Wire(() => arena.play ?? '');
    address = await wire.open();
    for (const owner of ['ada', 'bob', 'bronze']) {
      await ask(`mutation { registerOwner(accountId: "${owner}", displayName: "${owner}") { id } }`);
      const { stdout } = await run('apikey', 'create', owner, '--data', data, '--json');
      keys[owner] = (JSON.parse(stdout) as { key: string }).key;
    }
    const source = 'const act = ({ legal }) => legal[0]';
    const agent = `ownerId: "bronze", name: "first", games: ["tic-tac-toe"], source: "${source}"`;
    await ask(`mutation { submitAgent(${agent}) { id } }`);
  });

  afterEach(() => {
    for (const { child } of actors.splice(0)) child.kill('SIGKILL');
  });

  afterAll(async () => {
    wire?.close();
    await arena?.stop('SIGKILL');
    folder.remove();
  });

  it('play a match to its end, and it is recorded like every other', async () => {
    const { ended, heard } = actor('ada.player');
    const { matchId, score, reason } = await heard('result');
    expect(await ended).toBe(0);
    await expect.poll(() => matchOf(matchId)).toMatchObject({ status: 'settled', reason, attempts: 1 });
    const seats = (await matchOf(matchId)).seats as { agentId: string; score: number }[];
    expect(seats.find(({ agentId }) => agentId === 'ada.player')?.score).toBe(score);
    const { stdout } = await run('log', 'tail', '--data', data, '--stream', `match-${matchId}`, '-n', '99', '--json');
    expect(stdout).toContain('"meter":"clock"');
    expect(stdout).toContain('"runtime":"external"');
    expect(stdout).toContain('"claimedComputeMs"');
  });

  it('come back in the middle of a match, and play on', async () => {
    const { ended, heard, lines } = actor('ada.again', '--think-ms', '150');
    await heard('turn', 2);
    wire.cut();
    const { matchId } = await heard('result');
    expect(await ended).toBe(0);
    expect(lines.some(({ event, resumed }) => event === 'started' && resumed)).toBe(true);
    await expect.poll(() => matchOf(matchId)).toMatchObject({ status: 'settled', attempts: 1 });
    expect(['line', 'full_board']).toContain((await matchOf(matchId)).reason);
  });

  it('lose on time when they are slow', async () => {
    const { matchId, score, reason } = await actor('ada.slow', '--behaviour', 'slow').heard('result');
    expect({ score, reason }).toEqual({ score: 0, reason: 'timeout' });
    await expect.poll(() => matchOf(matchId)).toMatchObject({ status: 'settled', reason: 'timeout' });
  });

  it('lose by an illegal move', async () => {
    const { score, reason } = await actor('ada.cheat', '--behaviour', 'illegal').heard('result');
    expect({ score, reason }).toEqual({ score: 0, reason: 'illegal_move' });
  });

  it('play two matches at once on one stream', async () => {
    const both = ['--against', '', '--matches', '2', '--concurrency', '2', '--together', '2'];
    const other = actor('bob.both', ...both, '--key', keys.bob ?? '');
    const { ended, lines } = actor('ada.both', ...both);
    expect(await Promise.all([ended, other.ended])).toEqual([0, 0]);
    const events = lines.map(({ event }) => event).filter((event) => event === 'started' || event === 'result');
    expect(events).toEqual(['started', 'started', 'result', 'result']);
    expect(new Set(lines.filter(({ event }) => event === 'result').map(({ matchId }) => matchId)).size).toBe(2);
  });

  it('outlive a restart of the arena, which plays the match again from the start', async () => {
    const { ended, heard, lines } = actor('ada.patient', '--think-ms', '150');
    const { matchId } = await heard('turn', 2);
    const port = arena.play?.split(':')[1] ?? '';
    expect(await arena.stop('SIGTERM')).toBe(0);
    arena = await serve(data, '--play-port', port, ...FLAGS);
    expect((await heard('result')).matchId).toBe(matchId);
    expect(await ended).toBe(0);
    expect(lines.filter(({ event, turn }) => event === 'turn' && turn <= 2).length).toBeGreaterThan(1);
    await expect.poll(() => matchOf(matchId)).toMatchObject({ status: 'settled', attempts: 1 });
  });

  it('play over TLS, with a certificate of their own where the arena asks for one', async () => {
    await arena.stop('SIGTERM');
    const [cert, key, mine, myKey] = ['server.pem', 'server.key', 'agent.pem', 'agent.key'].map((name) =>
      join(folder.path, name),
    ) as [string, string, string, string];
    for (const [certFile, keyFile] of [[cert, key] as const, [mine, myKey] as const]) {
      ownCertificate(certFile, keyFile, '127.0.0.1', Date.now());
    }
    const tls = ['--play-cert', cert, '--play-key', key, '--play-client-ca', mine];
    arena = await serve(data, '--play-port', '0', ...FLAGS, ...tls);
    const known = ['--ca', cert, '--cert', mine, '--cert-key', myKey];
    const player = actor('ada.sealed', ...known);
    const strangers = [
      actor('ada.clear', '--behaviour', 'ask'),
      actor('ada.nobody', '--behaviour', 'ask', '--ca', cert),
      // A server that somebody else vouches for is not the one that was asked for.
      actor('ada.misled', '--behaviour', 'ask', ...known, '--ca', mine),
    ];
    const { matchId } = await player.heard('result');
    expect(await player.ended).toBe(0);
    await expect.poll(() => matchOf(matchId)).toMatchObject({ status: 'settled', attempts: 1 });
    for (const { heard, ended } of strangers) {
      expect((await heard('error')).code).toBe('NET.UNAVAILABLE');
      expect(await ended).toBe(1);
    }
  });
});
