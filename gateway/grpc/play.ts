import {
  type ArenaServiceServer,
  ArenaServiceService,
  type Hello,
  type Match,
} from '../../proto/gen/agon/arena/v1/arena.js';
import { type Door, type Serving, serve, unary } from '../../proto/serve.js';
import { agentIdOf, RegisterExternalAgent } from '../../services/agents/index.js';
import { type Actor, AgonError, newMeta } from '../../services/kernel/index.js';
import { assertScope, assertSpeaksFor, type Speaker, speakerOf } from '../auth/api-key.js';
import type { PlayHub } from './play-hub.js';
import { PlayStream } from './play-stream.js';
import { agentIn, assertGame, assertPlays, MatchQueue, type QueuePorts } from './queue.js';
import { bearerOf } from './sessions.js';

export interface PlayPorts extends QueuePorts {
  readonly hub: PlayHub;
  actorOf(token: string): Actor | undefined;
  /** Submits code as the gateway does for everybody else. */
  submit(actor: Actor, agent: SubmittedAgent): Promise<void>;
  matches(filter: { agentId: string; game: string; status: string; limit: number }): Promise<Match[]>;
  onInternalError(error: unknown): void;
}

export interface SubmittedAgent {
  readonly ownerId: string;
  readonly name: string;
  readonly games: readonly string[];
  readonly source: string;
  readonly runtime: string;
}

export interface PlayOptions extends Door {
  readonly pingMs?: number;
  readonly capacityMax?: number;
  /** Whether tools may ask what is served here. */
  readonly reflection?: boolean;
}

const PING_MS = 10_000;
const CAPACITY_MAX = 1_024;
/** Nothing that an agent has to say is large; its code, which may be, is the one exception. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;
const WAIT_MS_MAX = 60_000;
const LISTED = { usual: 20, max: 100 };

/** The door for agents that play from outside. */
export async function servePlay(ports: PlayPorts, options: PlayOptions): Promise<Serving> {
  const closing = new AbortController();
  const queue = new MatchQueue(ports);
  const service = playService(ports, queue, options, closing.signal);
  const serving = await serve({
    ...options,
    services: [[ArenaServiceService, service]],
    names: ['agon.arena.v1.ArenaService'],
    messageBytesMax: MESSAGE_BYTES_MAX,
    serving: () => true,
    closing,
  });
  const close = () => {
    queue.close();
    ports.hub.close();
    return serving.close();
  };
  return { address: serving.address, close };
}

function playService(
  ports: PlayPorts,
  queue: MatchQueue,
  { pingMs = PING_MS, capacityMax = CAPACITY_MAX }: PlayOptions,
  closing: AbortSignal,
): ArenaServiceServer {
  const { hub, onInternalError } = ports;
  const speaker = (metadata: Parameters<typeof bearerOf>[0]) => speakerOf(ports, bearerOf(metadata));
  /** Who may do this, for this agent. */
  const allowed = async (
    metadata: Parameters<typeof bearerOf>[0],
    scope: Speaker['scopes'][number],
    agentId: string,
  ): Promise<Speaker> => {
    const who = await speaker(metadata);
    assertScope(who, scope);
    assertSpeaksFor(who, agentId);
    return who;
  };

  const admit = async (metadata: Parameters<typeof bearerOf>[0], { agent: agentId, games }: Hello) => {
    const { keyId } = await allowed(metadata, 'play', agentId);
    const agent = await agentIn(ports.store, agentId);
    if (agent.runtime !== 'external') {
      throw new AgonError('AGENTS.HOSTED', `${agentId} is run by the arena, and does not play from outside.`);
    }
    for (const game of games) assertPlays(agentId, agent, game);
    return { keyId, games };
  };

  return {
    play: (call) => {
      if (closing.aborted) return void call.end();
      new PlayStream(call, {
        ...{ hub, pingMs, capacityMax, onInternalError },
        admit: (hello) => admit(call.metadata, hello),
      });
    },

    registerAgent: unary(async ({ owner, name, games }, metadata) => {
      const agent = agentIdOf(owner, name);
      const { actor } = await allowed(metadata, 'submit', agent);
      for (const game of games) assertGame(ports, game);
      await assertAccount(ports, owner);
      const meta = newMeta(actor, { id: ports.ids(), clock: ports.clock });
      const register = new RegisterExternalAgent({ ownerId: owner, name, games }, meta);
      await ports.plans.newAgent(owner, agent, () => ports.execute(register));
      return { agent };
    }, onInternalError),

    submitAgent: unary(async ({ owner, name, games, source, runtime }, metadata) => {
      const agent = agentIdOf(owner, name);
      const { actor } = await allowed(metadata, 'submit', agent);
      for (const game of games) assertGame(ports, game);
      await assertAccount(ports, owner);
      await ports.submit(actor, { ownerId: owner, name, games, source, runtime: runtime || 'javascript' });
      return { agent };
    }, onInternalError),

    joinQueue: unary(async (request, metadata, cancelled) => {
      const { agent: agentId, game, against, houseAfterMs, stakeCents, currency, waitMs } = request;
      await allowed(metadata, 'play', agentId);
      const patience = AbortSignal.timeout(Math.min(waitMs || WAIT_MS_MAX, WAIT_MS_MAX));
      const accountId = agentId.split('.')[0] ?? '';
      const terms = { stakeCents: stakeCents || '0', currency: currency || 'PLAY' };
      const joined = await queue.join(
        { agentId, accountId, game, against, houseAfterMs, ...terms },
        AbortSignal.any([patience, cancelled, closing]),
      );
      return { matchId: joined?.matchId ?? '', agents: [...(joined?.agents ?? [])] };
    }, onInternalError),

    leaveQueue: unary(async ({ agent }, metadata) => {
      await allowed(metadata, 'play', agent);
      return { left: queue.leave(agent) };
    }, onInternalError),

    listMatches: unary(async ({ agent: agentId, game, status, limit }, metadata) => {
      await allowed(metadata, 'read', agentId);
      const count = Math.min(limit || LISTED.usual, LISTED.max);
      return { matches: await ports.matches({ agentId, game, status, limit: count }) };
    }, onInternalError),

    whoAmI: unary(async (_request, metadata) => {
      const { accountId = '', keyId, scopes, agents } = await speaker(metadata);
      return { account: accountId, keyId, scopes: [...scopes], agents: [...(agents ?? [])] };
    }, onInternalError),
  };
}

async function assertAccount({ store }: PlayPorts, accountId: string): Promise<void> {
  if (await store.head(`account-${accountId}`)) return;
  throw new AgonError('ACCOUNTS.UNKNOWN', `There is no account ${accountId}. Register it first.`);
}
