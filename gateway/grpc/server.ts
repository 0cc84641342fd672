import type { ServerWritableStream } from '@grpc/grpc-js';
import {
  type ArenaServiceServer,
  ArenaServiceService,
  type GetArtifactRequest,
  type GetArtifactResponse,
  type WatchMatchResponse,
} from '../../proto/gen/agon/runner/v1/runner.js';
import { feed, type ListenAddress, type Serving, serve, unary } from '../../proto/serve.js';
import { refusal } from '../../proto/status.js';
import { type Actor, AgonError } from '../../services/kernel/index.js';
import { type RunnerServicePorts, registerRunner, runnerServiceOf } from './runner-service.js';
import { bearerOf, Sessions } from './sessions.js';

export interface GrpcPorts extends RunnerServicePorts {
  actorOf(token: string): Actor | undefined;
  onInternalError(error: unknown): void;
}

const WAIT_MS_MAX = 30_000;
/** Offers to one runner at a time; others wait for what it does not claim. */
const CAPACITY_MAX = 256;
const PIECE_BYTES = 256 * 1024;

/** The endpoint for runners. */
export function serveRunners(ports: GrpcPorts, address: ListenAddress): Promise<Serving> {
  const closing = new AbortController();
  return serve({
    ...address,
    services: [[ArenaServiceService, arenaService(ports, closing.signal)]],
    names: ['agon.runner.v1.ArenaService'],
    serving: () => true,
    closing,
  });
}

function arenaService(ports: GrpcPorts, closing: AbortSignal): ArenaServiceServer {
  const sessions = new Sessions(ports.ids);
  const service = (metadata: Parameters<Sessions['runnerOf']>[0]) =>
    runnerServiceOf(ports, sessions.runnerOf(metadata));
  const { onInternalError } = ports;

  return {
    register: unary(async ({ publicKey, time, signature, holding }, metadata) => {
      const actor = ports.actorOf(bearerOf(metadata));
      if (actor?.role !== 'runner') {
        throw new AgonError('AUTH.UNAUTHENTICATED', "Registering needs the arena's runner token.");
      }
      const [key, signed] = [publicKey.toString('hex'), signature.toString('hex')];
      const runnerId = await registerRunner(ports, { publicKey: key, time, signature: signed, holding });
      return { runnerId, session: sessions.open(runnerId) };
    }, onInternalError),

    nextWork: unary(async ({ capacity, waitMs }, metadata, cancelled) => {
      const patience = AbortSignal.timeout(Math.min(waitMs, WAIT_MS_MAX));
      const signal = AbortSignal.any([patience, cancelled, closing]);
      return { matchIds: [...(await service(metadata).next(Math.min(capacity, CAPACITY_MAX), signal))] };
    }, onInternalError),

    claim: unary(async ({ matchId, claimId }, metadata) => {
      return { order: await service(metadata).claim(matchId, claimId) };
    }, onInternalError),

    heartbeat: unary(async (attempt, metadata) => {
      await service(metadata).heartbeat(attempt);
      return {};
    }, onInternalError),

    report: unary(async ({ report, signature }, metadata) => {
      await service(metadata).report({ text: report, signature: signature.toString('hex') });
      return {};
    }, onInternalError),

    fail: unary(async ({ reason, ...attempt }, metadata) => {
      await service(metadata).fail(attempt, reason);
      return {};
    }, onInternalError),

    release: unary(async ({ reason, ...attempt }, metadata) => {
      await service(metadata).release(attempt, reason);
      return {};
    }, onInternalError),

    streamProgress: (call, callback) => {
      const leave = () => call.destroy();
      closing.addEventListener('abort', leave, { once: true });
      try {
        const mine = service(call.metadata);
        call.on('data', ({ progress }) => {
          if (progress?.what) mine.progress(progress, progress.what);
        });
        call.on('end', () => callback(null, {})).on('error', () => {});
        call.on('close', () => closing.removeEventListener('abort', leave));
      } catch (error) {
        callback(refusal(error, onInternalError));
      }
    },

    getArtifact: (call) => {
      const { digest } = call.request;
      Promise.resolve()
        .then(() => service(call.metadata).artifact(digest))
        .then((content) => sendPieces(call, content))
        .catch((error: unknown) => call.emit('error', refusal(error, onInternalError)));
    },

    watchMatch: (call) => {
      try {
        sessions.runnerOf(call.metadata);
      } catch (error) {
        if (!ports.actorOf(bearerOf(call.metadata))) {
          call.emit('error', refusal(error, onInternalError));
          return;
        }
      }
      const subscribe = (send: (response: WatchMatchResponse) => void) =>
        ports.live.watch(call.request.matchId, { progress: (progress) => send({ progress }) });
      feed(call as ServerWritableStream<never, WatchMatchResponse>, subscribe, closing);
    },
  };
}

async function sendPieces(
  call: ServerWritableStream<GetArtifactRequest, GetArtifactResponse>,
  content: Uint8Array,
): Promise<void> {
  let goOn = () => {};
  call.on('drain', () => goOn()).on('cancelled', () => goOn());
  for (let at = 0; at < content.length; at += PIECE_BYTES) {
    if (call.cancelled) return;
    const full = !call.write({ content: Buffer.from(content.subarray(at, at + PIECE_BYTES)) });
    if (!full) continue;
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
  }
  call.end();
}
