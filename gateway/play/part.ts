import { readFileSync } from 'node:fs';
import type { DataSource } from 'typeorm';
import { HOUSE_ACCOUNTS } from '../../ops/run/ladder.js';
import { agentsOfOwners } from '../../projections/agents/query.js';
import { listMatches } from '../../projections/matches/query.js';
import type { MatchRow } from '../../projections/matches/table.js';
import type { Door, Tls } from '../../proto/serve.js';
import { type Cells, type Runner, type RunnerOptions, startRunner, Table } from '../../sandbox-runner/index.js';
import type { AccountEvent } from '../../services/accounts/index.js';
import { agentIdOf } from '../../services/agents/index.js';
import { localArena } from '../../services/arena/part.js';
import { AgonError, type Bus, type Consumer, newMeta, type SigningKey } from '../../services/kernel/index.js';
import type { Config } from '../../services/runtime/settings.js';
import type { DeskPorts } from '../grpc/desk.js';
import { type PlayPorts, servePlay } from '../grpc/play.js';
import { PlayHub } from '../grpc/play-hub.js';
import { plansOf } from '../plans.js';
import type { GatewayPorts } from '../ports.js';
import { submitCode } from '../submit.js';

/** Matches with agents from outside take time and little else, so many are in hand at once. */
const TABLE_MATCHES_MAX = 4_096;

/** What the door takes of what a gateway stands on. */
type DoorPorts = Pick<
  GatewayPorts,
  | ('database' | 'artifacts' | 'clock' | 'payments' | 'houseAccounts' | 'identities' | 'onInternalError')
  | ('rakeBps' | 'disputeWindowMs' | 'computeCents' | 'games' | 'assertSeats' | 'actorOf')
  | ('checkSource' | 'sourceBytesMax' | 'limits' | 'quotas')
>;

interface PlayParts {
  readonly config: Config;
  readonly desk: DeskPorts;
  readonly ports: DoorPorts;
  readonly bus: Pick<Bus, 'consume'>;
  readonly cells: Cells;
  readonly key: SigningKey;
  readonly onPlayed: NonNullable<RunnerOptions['onPlayed']>;
  readonly say: NonNullable<RunnerOptions['say']>;
  readonly interceptors: Door['interceptors'];
  /** Watches the matches that are played at the table. */
  watched<P extends RunnerOptions['pool']>(pool: P): P;
}

export interface Play {
  readonly runner: Runner;
  readonly revocations: Consumer;
  /** Agents that are connected. */
  connected(): number;
  open(): ReturnType<typeof servePlay>;
}

/** Brings agents from outside and the matches they play in together: the table, and the door to it. */
export async function startPlay(parts: PlayParts): Promise<Play> {
  const { config, desk, bus, cells, key, onPlayed, say } = parts;
  const hub = new PlayHub({ clock: desk.clock });
  const { playTurnMs: clockTurnMs, playBankMs: clockBankMs, playJoinMs: clockInitMs } = config;
  const table = parts.watched(new Table(hub, cells, { clockTurnMs, clockBankMs, clockInitMs }));
  const arena = await localArena(desk, key, true);
  const runner = startRunner({ arena, key, pool: table, concurrency: TABLE_MATCHES_MAX, live: true, onPlayed, say });
  const revocations = await bus.consume({ group: 'play.revocations', types: ['ApiKeyRevoked'] }, async (events) => {
    for (const event of events as unknown as readonly AccountEvent[]) {
      if (event.type === 'ApiKeyRevoked') hub.revoke(event.data.keyId);
    }
  });
  const open = () => {
    const { host, playPort: port = 0, playReflection: reflection, proxies } = config;
    const { interceptors } = parts;
    return servePlay(doorPorts(parts, hub), { host, port, tls: tlsOf(config), reflection, interceptors, proxies });
  };
  return { runner, revocations, connected: () => hub.connected, open };
}

function doorPorts({ desk, ports }: PlayParts, hub: PlayHub): PlayPorts {
  const { load, clock, ids, execute } = desk;
  const { rakeBps, disputeWindowMs, computeCents, games, assertSeats, actorOf, onInternalError, database } = ports;
  const plans = plansOf(ports);
  return {
    hub,
    plans,
    load,
    clock,
    ids,
    execute,
    rakeBps,
    disputeWindowMs,
    computeCents,
    games,
    actorOf,
    onInternalError,
    limits: ports.limits,
    bearerOf: (token) => ports.identities.bearerOf(token),
    assertSeats: (game, agents) => assertSeats(game, agents),
    houseAgents: (game) => houseAgents(database, game),
    submit: async (actor, agent, cause) => {
      const meta = newMeta(actor, { id: ids(), clock, cause });
      const agentId = agentIdOf(agent.ownerId, agent.name);
      await plans.newAgent(agent.ownerId, agentId, () =>
        submitCode(ports, agent, meta, (_agentId, command) => execute(command)),
      );
    },
    matches: async ({ agentId, game, status, limit }) => {
      const only = { ...(game ? { game } : {}), ...(status ? { status } : {}) };
      const { rows } = await listMatches(database, { agentId, first: limit, ...only });
      return rows.map(matchOf);
    },
  };
}

async function houseAgents(database: DataSource, game: string): Promise<readonly string[]> {
  const agents = await agentsOfOwners(database, HOUSE_ACCOUNTS);
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
