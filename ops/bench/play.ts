import { setMaxListeners } from 'node:events';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, credentials, Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { bearerOfKey, newApiKey } from '../../gateway/auth/api-key.js';
import { Directory } from '../../gateway/auth/directory.js';
import { type PlayPorts, servePlay } from '../../gateway/grpc/play.js';
import { PlaySessions } from '../../gateway/grpc/play-sessions.js';
import { ExternalMatchHost, type Outside } from '../../sandbox-runner/index.js';
import { play as playAs } from '../../sdk/typescript/index.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import {
  type Command,
  createHandle,
  derivedId,
  Folds,
  NO_CODE,
  newMeta,
  randomIds,
  SYSTEM,
  systemClock,
} from '../../services/kernel/index.js';
import { commandNamed, contextOf } from '../harness/write-side.js';
import { type Child, startContender } from './child.js';
import { type BenchOptions, compare, quantile, type Report, scaled, thousands } from './rounds.js';

const IN_FLIGHT = 64;
const MOVES = 12_000;
const AGENTS = 1_000;
const THINK_MS = 500;
const LIMITS = { clockInitMs: 120_000, clockTurnMs: 120_000, clockBankMs: 120_000 };
/** About what an observation of connect four takes. */
const ECHO_BYTES = 400;

/**
 * Moves a second over the Play stream: the whole way from the referee through the sessions, the wire and the SDK to an agent
 * that moves at once, and back. Beside it, a bare stream of grpc-js that sends back what it gets.
 */
export async function play(options: BenchOptions): Promise<Report> {
  const moves = scaled(options, MOVES);
  const [ours, echo] = [await openArena(2), await openEcho()];
  const stopping = new AbortController();
  const agents = ['ada.bot-0', 'ada.bot-1'] as const;
  const at = { arena: ours.address, key: ours.key, register: false, signal: stopping.signal };
  const playing = agents.map((agent) =>
    playAs({ ...at, agent, games: ['connect-four'], act: ({ legal }) => legal[legal.length >> 1] ?? 0 }),
  );
  try {
    await ours.connected(2);
    const contenders = {
      echo: () => echo.run(moves, IN_FLIGHT),
      play: () => ours.run(moves, IN_FLIGHT, 'connect-four', agents),
      'echo, one at a time': () => echo.run(moves / 10, 1),
      'play, one at a time': () => ours.run(moves / 10, 1, 'connect-four', agents),
    };
    const compared = await compare(contenders, options, {
      ratios: { play: ['play', 'echo'], playOne: ['play, one at a time', 'echo, one at a time'] },
      targets: { play: 0.5 },
    });
    const note =
      `Moves a second, ${IN_FLIGHT} matches at a time over two streams, against messages of ${ECHO_BYTES} bytes there and ` +
      'back, as many at a time over one. Notes that are ready at the same moment share a message.';
    return { ...compared, notes: [note, await crowded(options)] };
  } finally {
    stopping.abort();
    await Promise.allSettled(playing);
    await Promise.all([ours.close(), echo.close()]);
  }
}

/** A thousand agents in another process, each on a connection of its own, all playing at once. */
async function crowded(options: BenchOptions): Promise<string> {
  const count = scaled(options, AGENTS);
  const arena = await openArena(count);
  const crowd = startContender('players', arena.address, arena.key, `${count}`);
  try {
    await arena.connected(count);
    options.progress(`${count} agents are connected`);
    const pairs = Array.from({ length: count / 2 }, (_, i) => [`ada.bot-${2 * i}`, `ada.bot-${2 * i + 1}`] as const);
    const round = () => Promise.all(pairs.map((pair) => arena.playOne('tic-tac-toe', pair)));
    // As everywhere, one unmeasured round goes first.
    await round();
    arena.overheadMs.length = 0;
    const startedMs = performance.now();
    const turns = await round();
    const total = turns.reduce((sum, each) => sum + each, 0);
    const speed = (total / (performance.now() - startedMs)) * 1000;
    const overhead = (share: number) => quantile(arena.overheadMs, share);
    return (
      `${thousands(count)} agents connected and playing ${count / 2} matches at once, thinking for ${THINK_MS} ms on average: ` +
      `${thousands(speed)} moves a second; turn overhead p50 ${overhead(0.5)} ms, p99 ${overhead(0.99)} ms ` +
      `(${availableParallelism()} cores, both sides on them).`
    );
  } finally {
    await crowd.stop();
    await arena.close();
  }
}

/** In a process of its own: many agents, each on a connection of its own, until its input ends. */
export async function players([arena = '', key = '', agents = '']: string[]): Promise<Child> {
  const stopping = new AbortController();
  // One for every agent.
  setMaxListeners(0, stopping.signal);
  const at = { arena, key, register: false, signal: stopping.signal };
  const act = async ({ legal }: { legal: readonly number[] }) => {
    // Somewhere between nothing and twice as long, as people and models do.
    await sleep(Math.random() * 2 * THINK_MS);
    return legal[Math.floor(Math.random() * legal.length)] ?? 0;
  };
  const playing = Array.from({ length: Number(agents) }, (_, i) =>
    playAs({ ...at, agent: `ada.bot-${i}`, games: ['tic-tac-toe'], act }),
  );
  return {
    round: async () => playing.length,
    stop: async () => {
      stopping.abort();
      await Promise.allSettled(playing);
    },
  };
}

/** The server, the sessions and the table, without a log of matches: what is measured is the way to the agents. */
async function openArena(agents: number) {
  const store = new MemoryEventStore();
  const folds = new Folds({ store });
  const handle = createHandle({ store, folds });
  const execute = (command: Command) => handle(contextOf(command), command);
  const send = (type: string, data: object) => execute(commandNamed(type, data, newMeta(SYSTEM)));
  const { keyId, text: key, secretHash } = newApiKey('ada');
  await send('RegisterOwner', { accountId: 'ada', displayName: 'Ada' });
  await send('IssueApiKey', { accountId: 'ada', keyId, name: '', scopes: ['play'], secretHash });
  const games = ['tic-tac-toe', 'connect-four'];
  for (let i = 0; i < agents; i++) await send('RegisterExternalAgent', { ownerId: 'ada', name: `bot-${i}`, games });
  const sessions = new PlaySessions({ clock: systemClock });
  const overheadMs: number[] = [];
  const noCells = { seat: () => Promise.reject(new Error('no cells here')) };
  const table = new ExternalMatchHost(timed(sessions, overheadMs), noCells, LIMITS);
  const nobody = async () => [];
  const directory = new Directory(folds.load);
  const ports: PlayPorts = {
    sessions,
    load: folds.load,
    execute,
    clock: systemClock,
    ids: randomIds,
    rakeBps: 1000,
    disputeWindowMs: 0,
    computeCents: '0',
    games: [],
    payments: undefined,
    houseAccounts: [],
    // Nobody submits anything here, and where nobody buys plans nobody counts.
    database: undefined as never,
    quotas: undefined as never,
    artifacts: undefined as never,
    checkSource: async () => ({ ok: true }),
    sourceBytesMax: 0,
    houseAgents: nobody,
    matches: nobody,
    assertSeats: () => {},
    actorOf: () => undefined,
    onInternalError: () => {},
    limits: new MemoryLimits(Date.now),
    bearerOf: (token) => bearerOfKey(directory, token),
  };
  const server = await servePlay(ports, { host: '127.0.0.1', port: 0 });
  let matches = 0;
  const playOne = async (game: string, pair: readonly string[]) => {
    const seats = pair.map((agentId) => ({ agentId, source: '', codeDigest: NO_CODE, runtime: 'external' as const }));
    const matchId = derivedId('bench', matches++);
    return (await table.play({ matchId, game, seed: matchId, agents: seats })).turns.length;
  };
  const run = async (moves: number, inFlight: number, game: string, pair: readonly string[]) => {
    let played = 0;
    const startedMs = performance.now();
    const lane = async () => {
      while (played < moves) {
        const turns = await playOne(game, pair);
        played += turns;
      }
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    return (played / (performance.now() - startedMs)) * 1000;
  };
  const connected = async (count: number) => {
    while (sessions.connected < count) await sleep(20);
  };
  const close = async () => {
    await table.close();
    await server.close();
    await store.close();
  };
  return { address: server.address, key, overheadMs, playOne, run, connected, close };
}

/** Listens to how long each turn took beyond what the agent says it thought. */
function timed(sessions: PlaySessions, overheadMs: number[]): Outside {
  return {
    sit: (at) => {
      const connection = sessions.sit(at);
      const ask = connection.ask.bind(connection);
      connection.ask = async (observation, left) => {
        const answer = await ask(observation, left);
        overheadMs.push(answer.wallMs - (answer.action?.computeMs ?? 0));
        return answer;
      };
      return connection;
    },
  };
}

async function openEcho() {
  const same = (bytes: Buffer) => bytes;
  const path = '/bench.Echo/Echo';
  const server = new Server();
  const Echo = {
    path,
    requestStream: true,
    responseStream: true,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  server.addService(
    { Echo },
    {
      Echo: (call: ServerDuplexStream<Buffer, Buffer>) => {
        call.on('data', (bytes: Buffer) => call.write(bytes)).on('end', () => call.end());
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    const insecure = ServerCredentials.createInsecure();
    server.bindAsync('127.0.0.1:0', insecure, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const message = Buffer.alloc(ECHO_BYTES, 'x');
  const run = (moves: number, inFlight: number) =>
    new Promise<number>((resolve) => {
      const stream = client.makeBidiStreamRequest(path, same, same);
      let [sent, received] = [0, 0];
      const startedMs = performance.now();
      const send = () => {
        if (sent >= moves) return;
        sent += 1;
        stream.write(message);
      };
      stream.on('data', () => {
        received += 1;
        if (received < moves) return send();
        stream.end();
        resolve((moves / (performance.now() - startedMs)) * 1000);
      });
      for (let i = 0; i < inFlight; i++) send();
    });
  const close = async () => {
    client.close();
    server.forceShutdown();
  };
  return { run, close };
}
