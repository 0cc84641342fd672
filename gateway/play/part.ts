import { readFileSync } from 'node:fs';
import type { DataSource } from 'typeorm';
import { agentsOfOwners } from '../../projections/agents/query.js';
import { listMatches } from '../../projections/matches/query.js';
import type { MatchRow } from '../../projections/matches/table.js';
import type { Serving, Tls } from '../../proto/serve.js';
import {
  type Cells,
  ExternalMatchHost,
  houseAccounts,
  keyIn,
  type Runner,
  startRunner,
} from '../../sandbox-runner/index.js';
import { cells, heard } from '../../sandbox-runner/part.js';
import type { AccountEvent } from '../../services/accounts/index.js';
import { matchQueue } from '../../services/arena/part.js';
import { AgonError, type Subscription } from '../../services/kernel/index.js';
import type { Host } from '../../services/runtime/host.js';
import { definePart } from '../../services/runtime/part.js';
import { serveWhileLeader } from '../../services/runtime/serve.js';
import type { Config } from '../../services/runtime/settings.js';
import { writeSide } from '../../services/runtime/write-side.js';
import type { Identities } from '../auth/identity.js';
import { tokensOf } from '../auth/machine-tokens.js';
import { identities } from '../auth/part.js';
import { localRunnerPort, type RunnerNeeds, runnerPorts } from '../grpc/part.js';
import { type PlayPorts, servePlay } from '../grpc/play.js';
import { PlaySessions } from '../grpc/play-sessions.js';
import { live } from '../live/part.js';
import { watchGrpc } from '../observe.js';
import { rulesOf } from '../rules.js';

/** Matches with agents from outside take time and little else, so many are in hand at once. */
const TABLE_MATCHES_MAX = 4_096;

/** The server for agents from outside, which meet each other there and those that the arena runs. */
export const playService = definePart({
  name: 'play service',
  needs: { writeSide, matchQueue, live, cells, identities },
  start: async (needs, host) => {
    const { config, engines, metrics } = host;
    let current: PlaySessions | undefined;
    metrics.gauge('agon_agents_connected', 'Agents that are connected from outside.', () => current?.connected ?? 0);
    const channel = await engines.channel();
    const open = async (): Promise<Serving> => {
      const sessions = new PlaySessions({ clock: host.clock });
      const runner = await startTable(host, needs, sessions);
      const revocations = await followRevocations(host, sessions);
      const stop = async () => {
        // Without its server nobody can make another move: what is under way is handed back.
        await runner.drain(0);
        await revocations.stop();
        current = undefined;
      };
      try {
        const { onSeen: observe } = await host.telemetry();
        const serving = await servePlay(await playPorts(host, needs, sessions), {
          host: config.host,
          port: config.playPort ?? 0,
          tls: tlsOf(config),
          reflection: config.playReflection,
          interceptors: [watchGrpc({ ids: host.ids, observe })],
          proxies: config.proxies,
        });
        current = sessions;
        const withdraw = channel.offer(WAITING, serving.waiting);
        const close = async () => {
          withdraw();
          await serving.close();
          await stop();
        };
        return { address: serving.address, close };
      } catch (error) {
        await stop();
        throw error;
      }
    };
    const running = await serveWhileLeader(host, 'play service', needs.matchQueue, open);
    host.addresses.play = running.value.address;
    return running;
  },
});

/** Under this name the channel knows who waits for an opponent. */
export const WAITING = 'waiting';

interface Needs extends RunnerNeeds {
  readonly cells: Cells;
  readonly identities: Identities;
}

/** The arena's own runner, which plays the matches of agents from outside. */
async function startTable(host: Host, needs: Needs, sessions: PlaySessions): Promise<Runner> {
  const { config, engines, metrics } = host;
  const { playTurnMs: clockTurnMs, playBankMs: clockBankMs, playJoinMs: clockInitMs } = config;
  const pool = metrics.pool(new ExternalMatchHost(sessions, needs.cells, { clockTurnMs, clockBankMs, clockInitMs }));
  const key = keyIn((await engines.folder()).paths.tableKey);
  const arena = await localRunnerPort(await runnerPorts(host, needs), key, { table: true });
  const runner = startRunner({ arena, key, pool, concurrency: TABLE_MATCHES_MAX, live: true, ...heard(host) });
  runner.done.catch((error: unknown) => host.giveUp(error, 'table'));
  return runner;
}

/** Hears of keys that are revoked from now on; what was revoked before does not come in. */
async function followRevocations(host: Host, sessions: PlaySessions): Promise<Subscription> {
  const store = await host.engines.log();
  const following = store.subscribe({ after: await store.lastPosition() }, async (events) => {
    for (const event of events as unknown as readonly AccountEvent[]) {
      if (event.type === 'ApiKeyRevoked') sessions.revoke(event.data.keyId);
    }
  });
  following.done.catch((error: unknown) => host.giveUp(error, 'play.revocations'));
  return following;
}

async function playPorts(
  host: Host,
  { writeSide: { execute, load }, cells, identities }: Needs,
  sessions: PlaySessions,
): Promise<PlayPorts> {
  const { config, engines, clock, ids, metrics, onInternalError } = host;
  const [database, limits, artifacts, folder, payments] = await Promise.all([
    engines.database(),
    engines.limits(),
    engines.artifacts(),
    engines.folder(),
    engines.payments(),
  ]);
  return {
    ...rulesOf(config, cells),
    sessions,
    load,
    clock,
    ids,
    execute,
    database,
    artifacts,
    payments,
    quotas: limits,
    limits: metrics.limits(limits),
    onInternalError,
    actorOf: tokensOf(config, folder).actorOf,
    bearerOf: (token) => identities.bearerOf(token),
    houseAgents: (game) => houseAgents(database, game),
    matches: async ({ agentId, game, status, limit }) => {
      const only = { ...(game ? { game } : {}), ...(status ? { status } : {}) };
      const { rows } = await listMatches(database, { agentId, first: limit, ...only });
      return rows.map(matchOf);
    },
  };
}

async function houseAgents(database: DataSource, game: string): Promise<readonly string[]> {
  const agents = await agentsOfOwners(database, houseAccounts);
  return agents
    .filter(({ games, runtime }) => runtime !== 'external' && games.includes(game))
    .map((each) => each.agentId);
}

const matchOf = ({ matchId, game, status, reason, seats, winner, turns, proposedAt }: MatchRow) => ({
  matchId,
  game,
  status,
  reason,
  turns,
  agents: seats.map((seat) => seat.agentId),
  winner: winner ?? undefined,
  proposedAt: new Date(proposedAt).toISOString(),
});

function tlsOf({ playCert, playKey, playClientCa }: Config): Tls | undefined {
  if (playCert === undefined || playKey === undefined) return undefined;
  const [cert, key, clientCa] = [playCert, playKey, playClientCa].map((path) => (path ? readPem(path) : undefined));
  return cert && key ? { cert, key, clientCa } : undefined;
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new AgonError('CONFIG.INVALID', `${path} cannot be read: ${(error as Error).message}.`);
  }
}
