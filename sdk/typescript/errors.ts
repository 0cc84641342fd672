import { type ServiceError, status } from '@grpc/grpc-js';
import { ErrorDetail } from '../../proto/gen/agon/arena/v1/arena.js';
import { ErrorInfo, RetryInfo } from '../../proto/gen/google/rpc/error_details.js';
import { Status } from '../../proto/gen/google/rpc/status.js';

/** A refusal of the arena, by its stable code; NET.UNAVAILABLE when nobody answers. */
export class ArenaError extends Error {
  override readonly name = 'ArenaError';

  constructor(
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
    /** How long the arena asks to wait, if it said so. */
    readonly retryAfterMs: number | undefined = undefined,
  ) {
    super(message);
  }

  /** Whether trying again later may help. */
  get retryable(): boolean {
    return RETRYABLE.test(this.code);
  }
}

const RETRYABLE =
  /^(NET\.|INTERNAL|GRPC\.|PLAY\.(SHUTDOWN|SILENT|SLOW_READER|NO_HELLO)|DATABASE\.UNAVAILABLE|STORE\.CLOSED|LIMITS\.)/;

/** Puts what gRPC throws into the arena's own words. */
export function arenaError(error: unknown): ArenaError {
  if (error instanceof ArenaError) return error;
  const { code, details = '', metadata } = error as Partial<ServiceError>;
  const [[sent], [rich]] = [metadata?.get('agon-error-bin') ?? [], metadata?.get('grpc-status-details-bin') ?? []];
  const { ours: told, retryAfterMs } = rich instanceof Buffer ? richOf(rich) : {};
  if (sent instanceof Buffer) {
    const { code: ours, detailsJson } = ErrorDetail.decode(sent);
    const more = JSON.parse(detailsJson || '{}') as Record<string, unknown>;
    return new ArenaError(ours, details || ours, more, retryAfterMs);
  }
  if (told !== undefined) return new ArenaError(told, details || told, {}, retryAfterMs);
  if (code === undefined) return new ArenaError('INTERNAL', String(error));
  const away = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED, status.UNKNOWN].includes(code);
  return new ArenaError(away ? 'NET.UNAVAILABLE' : `GRPC.${status[code]}`, details || `gRPC status ${status[code]}`);
}

/** What Google's error model has to say: the arena's code, and when to come back. */
function richOf(sent: Buffer): { ours?: string; retryAfterMs?: number } {
  const said: { ours?: string; retryAfterMs?: number } = {};
  for (const { typeUrl, value } of Status.decode(sent).details) {
    if (typeUrl.endsWith('/google.rpc.ErrorInfo')) {
      const { code } = ErrorInfo.decode(value).metadata;
      if (code !== undefined) said.ours = code;
    } else if (typeUrl.endsWith('/google.rpc.RetryInfo')) {
      const { seconds = 0n, nanos = 0 } = RetryInfo.decode(value).retryDelay ?? {};
      said.retryAfterMs = Number(seconds) * 1000 + nanos / 1_000_000;
    }
  }
  return said;
}
