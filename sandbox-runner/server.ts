import type { ServerWritableStream } from '@grpc/grpc-js';
import {
  type RunnerServiceServer,
  RunnerServiceService,
  type StreamLogsResponse,
} from '../proto/gen/agon/runner/v1/runner.js';
import { feed, type Serving, serve, unary } from '../proto/serve.js';
import { AgonError, type Clock, canonical, runtimeNamed } from '../services/kernel/index.js';
import { jsonOf } from './json.js';
import type { Limits } from './limits.js';
import type { CellPool } from './pool.js';
import { codeDigest } from './protocol.js';

/** What a runner does and what its agents print, for whoever listens at the moment. */
export class RunnerLogs {
  private readonly listeners = new Set<(line: StreamLogsResponse) => void>();

  constructor(private readonly clock: Clock) {}

  readonly say = (text: string, matchId: string): void => {
    if (this.listeners.size === 0) return;
    const line = { time: this.clock(), matchId, text };
    for (const listener of this.listeners) listener(line);
  };

  listen(listener: (line: StreamLogsResponse) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

interface RunnerServerOptions {
  readonly host: string;
  readonly port: number;
  readonly pool: Pick<CellPool, 'play'>;
  readonly logs: RunnerLogs;
  /** Dry runs at a time; matches of the arena should not have to wait for them. */
  readonly executionsMax: number;
  readonly serving: () => boolean;
}

/** What a runner serves itself: dry runs, its log, and its health. */
export function serveRunner(options: RunnerServerOptions): Promise<Serving> {
  const closing = new AbortController();
  const { host, port, serving } = options;
  return serve({
    host,
    port,
    services: [[RunnerServiceService, runnerService(options, closing.signal)]],
    names: ['agon.runner.v1.RunnerService'],
    serving,
    closing,
  });
}

function runnerService(options: RunnerServerOptions, closing: AbortSignal): RunnerServiceServer {
  const { pool, logs, executionsMax } = options;
  let executions = 0;
  return {
    execute: unary(async ({ game, seed, sources, runtimes, limitsJson }) => {
      if (executions >= executionsMax) {
        throw new AgonError('SANDBOX.QUEUE_FULL', `${executions} dry runs are under way already. Try again later.`);
      }
      executions += 1;
      try {
        const agents = sources.map((source, seat) => ({
          source,
          codeDigest: codeDigest(source),
          runtime: runtimeNamed(runtimes[seat]),
        }));
        const job = { matchId: 'dry-run', game, seed, agents, limits: limitsOf(limitsJson) };
        return { record: canonical(await pool.play(job)) };
      } finally {
        executions -= 1;
      }
    }),

    streamLogs: (call) => {
      const { matchId } = call.request;
      const subscribe = (send: (line: StreamLogsResponse) => void) =>
        logs.listen((line) => {
          if (matchId === '' || matchId === line.matchId) send(line);
        });
      feed(call as ServerWritableStream<never, StreamLogsResponse>, subscribe, closing);
    },
  };
}

function limitsOf(json: string): Partial<Limits> {
  const limits = json === '' ? {} : jsonOf(json);
  if (limits === undefined) throw new AgonError('SANDBOX.BAD_LIMITS', 'The limits are not JSON.');
  return limits as Partial<Limits>;
}
