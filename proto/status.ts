import { Metadata, type ServiceError, type StatusObject, status } from '@grpc/grpc-js';
import { AgonError } from '../services/kernel/index.js';
import { ErrorDetail } from './gen/agon/runner/v1/runner.js';
import { ErrorInfo, RetryInfo } from './gen/google/rpc/error_details.js';
import { Status } from './gen/google/rpc/status.js';

/** The metadata in which a refusal carries Agon's own code, and those in which any client of gRPC looks for details. */
const DETAIL = 'agon-error-bin';
const RICH = 'grpc-status-details-bin';

/** The one place where codes become gRPC. The longest prefix that fits decides. */
const STATUS_BY_CODE: Readonly<Record<string, status>> = {
  'AUTH.UNAUTHENTICATED': status.UNAUTHENTICATED,
  'AUTH.': status.PERMISSION_DENIED,
  'ACCOUNTS.UNKNOWN': status.NOT_FOUND,
  'ACCOUNTS.': status.FAILED_PRECONDITION,
  'AGENTS.UNKNOWN_RUNTIME': status.INVALID_ARGUMENT,
  'AGENTS.UNKNOWN': status.NOT_FOUND,
  'AGENTS.EXISTS': status.ALREADY_EXISTS,
  'AGENTS.': status.FAILED_PRECONDITION,
  'PLAY.REPLACED': status.ABORTED,
  'PLAY.REVOKED': status.UNAUTHENTICATED,
  'PLAY.SHUTDOWN': status.UNAVAILABLE,
  'PLAY.SILENT': status.DEADLINE_EXCEEDED,
  'PLAY.NO_HELLO': status.DEADLINE_EXCEEDED,
  'PLAY.FLOOD': status.RESOURCE_EXHAUSTED,
  'PLAY.SLOW_READER': status.RESOURCE_EXHAUSTED,
  'PLAY.QUEUE_FULL': status.RESOURCE_EXHAUSTED,
  'PLAY.': status.FAILED_PRECONDITION,
  'DATABASE.UNAVAILABLE': status.UNAVAILABLE,
  'COMMAND.INVALID': status.INVALID_ARGUMENT,
  'COMMAND.KEY_REUSED': status.ALREADY_EXISTS,
  'COMMAND.CONTENDED': status.ABORTED,
  'CONTENT.UNCHECKED': status.UNAVAILABLE,
  'CONTENT.': status.INVALID_ARGUMENT,
  'EVENT.NOT_JSON': status.INVALID_ARGUMENT,
  'ARENA.UNKNOWN_MATCH': status.NOT_FOUND,
  'ARENA.BAD_OUTCOME': status.INVALID_ARGUMENT,
  'ARENA.BAD_REPORT': status.INVALID_ARGUMENT,
  'ARENA.BAD_SIGNATURE': status.PERMISSION_DENIED,
  'ARENA.': status.FAILED_PRECONDITION,
  'ARTIFACT.MISSING': status.NOT_FOUND,
  'ARTIFACT.BAD_DIGEST': status.INVALID_ARGUMENT,
  'ARTIFACT.': status.DATA_LOSS,
  'RUNNERS.': status.PERMISSION_DENIED,
  'SANDBOX.CLOSED': status.UNAVAILABLE,
  'SANDBOX.CELL_': status.UNAVAILABLE,
  'SANDBOX.QUEUE_FULL': status.RESOURCE_EXHAUSTED,
  'SANDBOX.': status.INVALID_ARGUMENT,
  'STORE.FULL': status.RESOURCE_EXHAUSTED,
  'STORE.CLOSED': status.UNAVAILABLE,
  'LIMITS.': status.RESOURCE_EXHAUSTED,
};

export function grpcStatusOf(code: string): status {
  const prefixes = Object.keys(STATUS_BY_CODE).filter((prefix) => code.startsWith(prefix));
  const longest = prefixes.sort((a, b) => b.length - a.length)[0];
  return longest === undefined ? status.INTERNAL : (STATUS_BY_CODE[longest] ?? status.INTERNAL);
}

/** What the caller gets to see. What went wrong inside is for the operator's log only. */
export function refusal(error: unknown, onInternal: (error: unknown) => void = () => {}): StatusObject {
  const isTold = error instanceof AgonError && grpcStatusOf(error.code) !== status.INTERNAL;
  if (!isTold) onInternal(error);
  const { code: ours, message, details } = isTold ? error : INTERNAL;
  const code = grpcStatusOf(ours);
  const metadata = new Metadata();
  metadata.set(DETAIL, Buffer.from(ErrorDetail.encode({ code: ours, detailsJson: JSON.stringify(details) }).finish()));
  metadata.set(RICH, rich(code, message, ours, details));
  return { code, details: message, metadata };
}

const INTERNAL = new AgonError('INTERNAL', 'Something went wrong inside Agon. The operator finds it in the log.');

/** The same in Google's words: why, as ErrorInfo, and when to come back, as RetryInfo. */
function rich(code: status, message: string, ours: string, { retryAfterMs }: AgonError['details']): Buffer {
  const packed = (name: string, value: Uint8Array) => ({
    typeUrl: `type.googleapis.com/google.rpc.${name}`,
    value: Buffer.from(value),
  });
  const info = { reason: ours.replaceAll('.', '_'), domain: 'agon', metadata: { code: ours } };
  const details = [packed('ErrorInfo', ErrorInfo.encode(info).finish())];
  if (typeof retryAfterMs === 'number') {
    const retryDelay = { seconds: BigInt(Math.floor(retryAfterMs / 1000)), nanos: (retryAfterMs % 1000) * 1_000_000 };
    details.push(packed('RetryInfo', RetryInfo.encode({ retryDelay }).finish()));
  }
  return Buffer.from(Status.encode({ code, message, details }).finish());
}

/** The refusal as it was on the other side; whatever else went wrong is NET.UNAVAILABLE or GRPC.<status>. */
export function errorOf(error: unknown): AgonError {
  if (error instanceof AgonError) return error;
  const { code, details, metadata } = error as Partial<ServiceError>;
  const [sent] = metadata?.get(DETAIL) ?? [];
  if (sent instanceof Buffer) {
    const { code: ours, detailsJson } = ErrorDetail.decode(sent);
    return new AgonError(ours, details ?? ours, JSON.parse(detailsJson) as Record<string, unknown>, { cause: error });
  }
  if (code === undefined) return new AgonError('INTERNAL', String(error), {}, { cause: error });
  const unreachable = code === status.UNAVAILABLE || code === status.DEADLINE_EXCEEDED;
  return new AgonError(unreachable ? 'NET.UNAVAILABLE' : `GRPC.${status[code]}`, details ?? '', {}, { cause: error });
}
