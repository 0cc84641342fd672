import { type ServiceError, status } from '@grpc/grpc-js';
import { ErrorDetail } from '../../proto/gen/agon/arena/v1/arena.js';

/** A refusal of the arena, by its stable code; NET.UNAVAILABLE when nobody answers. */
export class ArenaError extends Error {
  override readonly name = 'ArenaError';

  constructor(
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }

  /** Whether trying again later may help. */
  get retryable(): boolean {
    return RETRYABLE.test(this.code);
  }
}

const RETRYABLE =
  /^(NET\.|INTERNAL|GRPC\.|PLAY\.(SHUTDOWN|SILENT|SLOW_READER|NO_HELLO)|DATABASE\.UNAVAILABLE|STORE\.CLOSED)/;

/** Puts what gRPC throws into the arena's own words. */
export function arenaError(error: unknown): ArenaError {
  if (error instanceof ArenaError) return error;
  const { code, details = '', metadata } = error as Partial<ServiceError>;
  const [sent] = metadata?.get('agon-error-bin') ?? [];
  if (sent instanceof Buffer) {
    const { code: ours, detailsJson } = ErrorDetail.decode(sent);
    return new ArenaError(ours, details || ours, JSON.parse(detailsJson || '{}') as Record<string, unknown>);
  }
  if (code === undefined) return new ArenaError('INTERNAL', String(error));
  const away = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED, status.UNKNOWN].includes(code);
  return new ArenaError(away ? 'NET.UNAVAILABLE' : `GRPC.${status[code]}`, details || `gRPC status ${status[code]}`);
}
