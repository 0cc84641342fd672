import { type ClientDuplexStream, type ClientUnaryCall, credentials, Metadata } from '@grpc/grpc-js';
import {
  ArenaServiceClient,
  type JoinQueueResponse,
  type Match,
  type PlayRequest,
  type PlayResponse,
  type WhoAmIResponse,
} from '../../proto/gen/agon/arena/v1/arena.js';
import { arenaError } from './errors.js';
import { namingNoAddress } from './tls.js';

export interface ArenaOptions {
  /** host:port of the arena's server for agents. */
  readonly arena: string;
  /** An API key: `agon apikey create` shows one. */
  readonly key: string;
  /** PEM. Left out, the connection is in clear; with cert and key, the arena knows this client by them. */
  readonly tls?: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer } | undefined;
}

export interface QueueRequest {
  readonly agent: string;
  readonly game: string;
  readonly stakeCents?: string;
  readonly currency?: string;
  /** "house" for any agent of the house at once, or a house agent by its id. */
  readonly against?: string;
  readonly houseAfterMs?: number;
  readonly waitMs?: number;
}

type Unary<Request, Response> = (
  request: Request,
  metadata: Metadata,
  options: { deadline: Date },
  callback: (error: Error | null, response: Response) => void,
) => ClientUnaryCall;

const CALL_MS = 15_000;
const WAIT_MS = 60_000;

/**
 * The arena, as an agent's owner sees it.
 *
 * @example await new Arena({ arena: '127.0.0.1:4602', key }).registerAgent('ada', 'bot', ['tic-tac-toe']);
 */
export class Arena {
  private readonly client: ArenaServiceClient;
  private readonly key: string;

  constructor({ arena, key, tls }: ArenaOptions) {
    const secured = tls && namingNoAddress(credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.cert ?? null));
    this.client = new ArenaServiceClient(arena, secured ?? credentials.createInsecure(), {
      'grpc.keepalive_time_ms': 20_000,
      // A connection of its own: an arena lets only so many streams share one.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 2_000,
    });
    this.key = key;
  }

  whoAmI(): Promise<WhoAmIResponse> {
    return this.ask(this.client.whoAmI, {});
  }

  /** Makes an agent known that plays from outside; the same again changes nothing. Answers with its id. */
  async registerAgent(owner: string, name: string, games: readonly string[]): Promise<string> {
    return (await this.ask(this.client.registerAgent, { owner, name, games: [...games] })).agent;
  }

  /** Submits code that the arena runs itself. Answers with the agent's id. */
  async submitAgent(agent: {
    readonly owner: string;
    readonly name: string;
    readonly games: readonly string[];
    readonly source: string;
    readonly runtime?: 'javascript' | 'node' | 'python';
  }): Promise<string> {
    const { games, runtime = 'javascript', ...rest } = agent;
    return (await this.ask(this.client.submitAgent, { ...rest, runtime, games: [...games] }, WAIT_MS)).agent;
  }

  /** Waits for an opponent; undefined when none came in time. */
  async joinQueue(request: QueueRequest, signal?: AbortSignal): Promise<JoinQueueResponse | undefined> {
    const { waitMs = WAIT_MS, stakeCents = '0', currency = 'PLAY', against = '', houseAfterMs = 0 } = request;
    const { agent, game } = request;
    const asked = { agent, game, stakeCents, currency, against, houseAfterMs, waitMs };
    const joined = await this.ask(this.client.joinQueue, asked, waitMs + CALL_MS, signal);
    return joined.matchId === '' ? undefined : joined;
  }

  /** Ends the agent's waiting, wherever it was begun. */
  async leaveQueue(agent: string): Promise<number> {
    return (await this.ask(this.client.leaveQueue, { agent })).left;
  }

  /** The agent's newest matches. */
  async matches(
    agent: string,
    filter: { readonly game?: string; readonly status?: string; readonly limit?: number } = {},
  ): Promise<Match[]> {
    const { game = '', status = '', limit = 0 } = filter;
    return (await this.ask(this.client.listMatches, { agent, game, status, limit })).matches;
  }

  /** The stream itself; `play` is what you want. */
  stream(): ClientDuplexStream<PlayRequest, PlayResponse> {
    return this.client.play(this.metadata());
  }

  close(): void {
    this.client.close();
  }

  private metadata(): Metadata {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${this.key}`);
    return metadata;
  }

  private ask<Request, Response>(
    call: Unary<Request, Response>,
    request: Request,
    withinMs = CALL_MS,
    signal?: AbortSignal,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      const options = { deadline: new Date(Date.now() + withinMs) };
      const under = call.call(this.client, request, this.metadata(), options, (error, response) => {
        signal?.removeEventListener('abort', leave);
        if (error) reject(arenaError(error));
        else resolve(response);
      });
      const leave = () => under.cancel();
      signal?.addEventListener('abort', leave, { once: true });
    });
  }
}
