import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ClientUnaryCall,
  type ClientWritableStream,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { ArenaServiceClient, type StreamProgressRequest } from '../proto/gen/agon/runner/v1/runner.js';
import { errorOf } from '../proto/status.js';
import { AgonError, type Clock, canonical, type Ids, runtimeNamed, type SigningKey } from '../services/kernel/index.js';
import type { ArenaPort, Attempt, SignedReport } from './arena-port.js';
import type { Progress } from './protocol.js';

interface ConnectOptions {
  /** host:port of the arena's gRPC endpoint. */
  readonly address: string;
  /** The arena's runner token: it lets a key register. */
  readonly token: string;
  readonly key: SigningKey;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Names a claim, so that one that is sent twice counts once; a new name each time when left out. */
  readonly claimIds?: (matchId: string) => string;
  /** What this process has in hand, for registering again after the arena went away. */
  readonly holding?: () => readonly Attempt[];
  readonly waitMs?: number;
  /** How long a call is tried again while the arena cannot be reached. */
  readonly patienceMs?: number;
}

const CALL_MS = 10_000;
const RETRY_MS = 250;

type Unary<Request, Response> = (
  request: Request,
  metadata: Metadata,
  options: { deadline: number },
  callback: (error: ServiceError | null, response: Response) => void,
) => ClientUnaryCall;

/** The write side over gRPC. Registers when it has to, and tries again what did not get through. */
export class GrpcArena implements ArenaPort {
  private readonly client: ArenaServiceClient;
  private session: Promise<string> | undefined;
  private feed: ClientWritableStream<StreamProgressRequest> | undefined;

  constructor(private readonly options: ConnectOptions) {
    this.client = new ArenaServiceClient(options.address, credentials.createInsecure(), {
      'grpc.keepalive_time_ms': 20_000,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 2_000,
      'grpc.enable_retries': 0,
    });
  }

  /** Opens the session now, so that a wrong token or address is told at once. */
  async connect(): Promise<void> {
    await this.token();
  }

  async next(capacity: number, signal: AbortSignal): Promise<readonly string[]> {
    const { waitMs = 20_000 } = this.options;
    const { matchIds } = await this.once(this.client.nextWork, { capacity, waitMs }, waitMs + CALL_MS, signal);
    return matchIds;
  }

  async claim(matchId: string) {
    const { ids, claimIds = () => ids() } = this.options;
    const { order } = await this.call(this.client.claim, { matchId, claimId: claimIds(matchId) });
    return order && { ...order, runtimes: order.runtimes.map(runtimeNamed) };
  }

  async heartbeat({ matchId, attempt }: Attempt): Promise<void> {
    await this.once(this.client.heartbeat, { matchId, attempt });
  }

  async report({ text, signature }: SignedReport): Promise<void> {
    await this.call(this.client.report, { report: text, signature: Buffer.from(signature, 'hex') });
  }

  async fail({ matchId, attempt }: Attempt, reason: string): Promise<void> {
    await this.call(this.client.fail, { matchId, attempt, reason });
  }

  async release({ matchId, attempt }: Attempt, reason: string): Promise<void> {
    await this.call(this.client.release, { matchId, attempt, reason });
  }

  artifact(digest: string): Promise<Uint8Array> {
    return this.patiently(() =>
      this.inSession(async (metadata) => {
        const pieces: Buffer[] = [];
        const call = this.client.getArtifact({ digest }, metadata, { deadline: deadline(CALL_MS) });
        for await (const { content } of call) pieces.push(content as Buffer);
        const content = Buffer.concat(pieces);
        if (hash('sha256', content) === digest) return content;
        throw new AgonError('ARTIFACT.CORRUPT', `What the arena sent for ${digest} has another digest.`);
      }),
    );
  }

  progress({ matchId, attempt }: Attempt, progress: Progress): void {
    const what =
      progress.kind === 'turn'
        ? ({ $case: 'turnJson', turnJson: canonical(progress.turn) } as const)
        : ({ $case: 'log', log: { seat: progress.seat, text: progress.text } } as const);
    void this.send({ progress: { matchId, attempt, what } });
  }

  close(): void {
    this.feed?.end();
    this.client.close();
  }

  private async send(request: StreamProgressRequest): Promise<void> {
    try {
      const metadata = bearer(await this.token());
      this.feed ??= this.openFeed(metadata);
      // Those who watch would rather miss a turn than hold up the match.
      if (!this.feed.writableNeedDrain) this.feed.write(request);
    } catch {
      this.feed = undefined;
    }
  }

  private openFeed(metadata: Metadata): ClientWritableStream<StreamProgressRequest> {
    const feed = this.client.streamProgress(metadata, () => {
      if (this.feed === feed) this.feed = undefined;
    });
    feed.on('error', () => {});
    return feed;
  }

  private call<Request, Response>(method: Unary<Request, Response>, request: Request): Promise<Response> {
    return this.patiently(() => this.once(method, request));
  }

  private once<Request, Response>(
    method: Unary<Request, Response>,
    request: Request,
    timeoutMs = CALL_MS,
    signal?: AbortSignal,
  ): Promise<Response> {
    return this.inSession((metadata) => this.sendOnce(method, request, metadata, timeoutMs, signal));
  }

  /** Tried again until it got through or patience ends; the ids of what is asked make repeating harmless. */
  private async patiently<T>(work: () => Promise<T>): Promise<T> {
    const { patienceMs = 30_000 } = this.options;
    const untilMs = performance.now() + patienceMs;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const { code } = errorOf(error);
        const passing = code === 'NET.UNAVAILABLE' || code === 'COMMAND.CONTENDED';
        if (!passing || performance.now() > untilMs) throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  private async inSession<T>(work: (metadata: Metadata) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const session = this.token();
      try {
        return await work(bearer(await session));
      } catch (thrown) {
        const error = errorOf(thrown);
        // The arena was started anew and knows nobody yet.
        if (error.code !== 'AUTH.UNAUTHENTICATED' || attempt > 1) throw error;
        if (this.session === session) this.session = undefined;
      }
    }
  }

  private sendOnce<Request, Response>(
    method: Unary<Request, Response>,
    request: Request,
    metadata: Metadata,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      const call = method.call(this.client, request, metadata, { deadline: deadline(timeoutMs) }, (error, response) => {
        signal?.removeEventListener('abort', cancel);
        if (error) reject(errorOf(error));
        else resolve(response);
      });
      const cancel = () => call.cancel();
      signal?.addEventListener('abort', cancel, { once: true });
      if (signal?.aborted) cancel();
    });
  }

  private token(): Promise<string> {
    this.session ??= this.register().catch((error: unknown) => {
      this.session = undefined;
      throw error;
    });
    return this.session;
  }

  private async register(): Promise<string> {
    const { key, clock, token, holding = () => [] } = this.options;
    const time = clock();
    const text = canonical({ kind: 'agon.runner-registration.v1', publicKey: key.publicKey, time });
    const request = {
      publicKey: Buffer.from(key.publicKey, 'hex'),
      time,
      signature: Buffer.from(key.sign(text), 'hex'),
      holding: holding().map(({ matchId, attempt }) => ({ matchId, attempt })),
    };
    const { session } = await this.sendOnce(this.client.register, request, bearer(token), CALL_MS);
    return session;
  }
}

function bearer(token: string): Metadata {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  return metadata;
}

const deadline = (ms: number) => Date.now() + ms;
