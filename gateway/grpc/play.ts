import type { Metadata } from '@grpc/grpc-js';
import {
  type ArenaServiceServer,
  ArenaServiceService,
  type Hello,
  type Match,
} from '../../proto/gen/agon/arena/v1/arena.js';
import { type ListenAddress, type Serving, serve, unary } from '../../proto/serve.js';
import { agentIdOf, agents } from '../../services/agents/index.js';
import { type Actor, AgonError, actsFor, isStaff, ownerOf, type RateLimits } from '../../services/kernel/index.js';
import type { RequestContext } from '../auth/actor.js';
import { assertScope, assertSpeaksFor, type Speaker, speakerOf } from '../auth/api-key.js';
import type { Bearer } from '../auth/identity.js';
import { assertWithin, bucketOf, RATES, rateOf } from '../caller.js';
import { causeOf, sawActor } from '../observe.js';
import { type AgentPorts, agentIn, assertPlays, registerExternalAgent, submitAgent } from '../use-cases/agents.js';
import { type grpcLimits, limitGrpc } from './limits.js';
import type { PlaySessions } from './play-sessions.js';
import { PlayStream } from './play-stream.js';
import { MatchQueue, type QueuePorts } from './queue.js';
import { bearerOf } from './sessions.js';

export interface PlayPorts extends QueuePorts, AgentPorts {
  readonly sessions: PlaySessions;
  actorOf(token: string): Actor | undefined;
  /** Who signed in, or whose API key it is. */
  bearerOf(token: string): Promise<Bearer | undefined>;
  matches(filter: { agentId: string; game: string; status: string; limit: number }): Promise<Match[]>;
  readonly limits: RateLimits;
  onInternalError(error: unknown): void;
}

export interface PlayOptions extends ListenAddress {
  readonly pingMs?: number;
  readonly capacityMax?: number;
  /** Whether tools may ask what is served here. */
  readonly reflection?: boolean;
  /** How many proxies stand before the endpoint. With none, callers on this machine are not limited by address. */
  readonly proxies?: number;
  readonly most?: typeof grpcLimits;
}

const PING_MS = 10_000;
const CAPACITY_MAX = 1_024;
/** Nothing that an agent has to say is large; its code, which may be, is the one exception. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;
const STREAMS_PER_CONNECTION_MAX = 256;
const WAIT_MS_MAX = 60_000;
const LISTED = { usual: 20, max: 100 };

/** The endpoint for agents that play from outside. */
export async function servePlay(
  ports: PlayPorts,
  options: PlayOptions,
): Promise<Serving & Pick<MatchQueue, 'waiting'>> {
  const closing = new AbortController();
  const queue = new MatchQueue(ports);
  const service = playService(ports, queue, options, closing.signal);
  const { limits } = ports;
  const { interceptor, admits } = limitGrpc({ limits, proxies: options.proxies ?? 0, most: options.most });
  const serving = await serve({
    ...options,
    interceptors: [...(options.interceptors ?? []), interceptor],
    admits,
    streamsPerConnectionMax: STREAMS_PER_CONNECTION_MAX,
    services: [[ArenaServiceService, service]],
    names: ['agon.arena.v1.ArenaService'],
    messageBytesMax: MESSAGE_BYTES_MAX,
    serving: () => true,
    closing,
  });
  const close = () => {
    queue.close();
    ports.sessions.close();
    return serving.close();
  };
  return { address: serving.address, close, waiting: () => queue.waiting() };
}

function playService(
  ports: PlayPorts,
  queue: MatchQueue,
  { pingMs = PING_MS, capacityMax = CAPACITY_MAX }: PlayOptions,
  closing: AbortSignal,
): ArenaServiceServer {
  const { sessions, onInternalError } = ports;
  const speaker = async (metadata: Metadata): Promise<Speaker> => {
    const who = await speakerOf(ports, bearerOf(metadata));
    sawActor(metadata, who.actor);
    return who;
  };
  /** Who may do this, for this agent, at this moment. */
  const entitled = (who: Speaker, scope: Speaker['scopes'][number], agentId: string): Speaker => {
    assertScope(who, scope);
    assertSpeaksFor(who, agentId);
    return who;
  };
  /** The same, if it is not asked for too often. */
  const allowed = async (metadata: Metadata, scope: Speaker['scopes'][number], agentId: string): Promise<Speaker> => {
    const who = await speaker(metadata);
    await assertRate(ports, who.actor, agentId);
    return entitled(who, scope, agentId);
  };

  const admit = async (metadata: Metadata, { agent: agentId, games }: Hello) => {
    const { keyId } = await allowed(metadata, 'play', agentId);
    const agent = await agentIn(ports.load, agentId);
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
        sessions,
        pingMs,
        capacityMax,
        onInternalError,
        admit: (hello) => admit(call.metadata, hello),
        recheck: async ({ agent }) => void entitled(await speaker(call.metadata), 'play', agent),
      });
    },

    registerAgent: unary(async ({ owner: ownerId, name, games }, metadata) => {
      const agent = agentIdOf(ownerId, name);
      const who = await allowed(metadata, 'submit', agent);
      await registerExternalAgent(ports, contextOf(who, metadata), { ownerId, name, games });
      return { agent };
    }, onInternalError),

    submitAgent: unary(async ({ owner: ownerId, name, games, source, runtime }, metadata) => {
      const agent = agentIdOf(ownerId, name);
      const who = await allowed(metadata, 'submit', agent);
      const code = async () => ({ source, runtime: runtime || 'javascript' });
      await submitAgent(ports, contextOf(who, metadata), { ownerId, name, games }, code);
      return { agent };
    }, onInternalError),

    joinQueue: unary(async (request, metadata, cancelled) => {
      const { agent: agentId, game, against, houseAfterMs, stakeCents, currency, waitMs } = request;
      await allowed(metadata, 'play', agentId);
      const patience = AbortSignal.timeout(Math.min(waitMs || WAIT_MS_MAX, WAIT_MS_MAX));
      const accountId = ownerOf(agentId);
      if (against !== '' || houseAfterMs > 0) {
        await assertWithin(ports.limits, `house:${accountId}`, RATES.house, `${accountId} against the house`);
      }
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
      const { actor, keyId, scopes, agents } = await speaker(metadata);
      await assertRate(ports, actor);
      return { account: isStaff(actor) ? '' : actor.id, keyId, scopes: [...scopes], agents: [...(agents ?? [])] };
    }, onInternalError),
  };
}

/** Whoever speaks here, as one who asks for something anywhere. */
const contextOf = ({ actor, ...key }: Speaker, metadata: Metadata): RequestContext => ({
  actor,
  key: key.keyId === '' ? undefined : key,
  rejected: false,
  idempotencyKey: undefined,
  cause: causeOf(metadata),
});

/** An agent has a bucket of its own only once it is there: names that anybody can make up are the account's. */
async function assertRate(ports: PlayPorts, actor: Actor, agentId?: string): Promise<void> {
  const own = agentId !== undefined && actsFor(actor, ownerOf(agentId));
  const known = own && (await ports.load(agents, agentId, 'tail')).revision >= 0;
  const bucket = bucketOf(actor, known ? agentId : undefined);
  await assertWithin(ports.limits, bucket, await rateOf(ports, actor));
}
