import db from '@eventstore/db-client';
import { AgonError } from '../../kernel/index.js';

const PASSING = new Set<string>([
  db.ErrorType.UNAVAILABLE,
  db.ErrorType.CANCELLED,
  db.ErrorType.NOT_LEADER,
  db.ErrorType.TIMEOUT,
  db.ErrorType.DEADLINE_EXCEEDED,
]);

const commandError = (error: unknown) =>
  db.convertToCommandError(error as Error) as Error & { type?: string; code?: number; maxAppendSize?: number };

/** Whether the same call may work in a moment. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof AgonError) && PASSING.has(commandError(error).type ?? '');
}

/**
 * Whether a server would not read from this place. One of EventStoreDB says no more of it than that it failed; our own
 * endpoint says why as well.
 */
export function isRefusedPlace(error: unknown): boolean {
  const { type, message } = commandError(error instanceof AgonError ? (error.cause ?? error) : error);
  if (/\bSTORE\.BAD_POSITION: /.test(message)) return true;
  return type === db.ErrorType.UNKNOWN && /Unexpected \w*Read\w*Result: Error/.test(message);
}

/** What EventStoreDB's client throws, in the codes of the port. Our own endpoint names them in its text. */
export function asEsdbError(thrown: unknown, address: string): AgonError {
  if (thrown instanceof AgonError) return thrown;
  const error = commandError(thrown);
  const [, code, message] = /\b((?:STORE|EVENT|AUTH)\.[A-Z_]+): (.*)/s.exec(error.message) ?? [];
  const cause = { cause: thrown };
  switch (error.type) {
    case db.ErrorType.STREAM_NOT_FOUND:
      return new AgonError('STORE.NO_STREAM', error.message, {}, cause);
    case db.ErrorType.WRONG_EXPECTED_VERSION:
      return new AgonError('STORE.REVISION_CONFLICT', error.message, {}, cause);
    case db.ErrorType.ACCESS_DENIED: {
      const why = `${address} refused: ${message ?? 'the name or the key is wrong, or does not allow this'}`;
      return new AgonError('STORE.ACCESS_DENIED', why, {}, cause);
    }
    case db.ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED: {
      const why = `${address} takes appends of ${error.maxAppendSize} bytes at most; see MaxAppendSize in docs/eventstore.md.`;
      return new AgonError('STORE.TOO_LARGE', why, {}, cause);
    }
    case db.ErrorType.STREAM_DELETED:
      return new AgonError('STORE.CORRUPT', `A stream was deleted on ${address}, which Agon never does.`, {}, cause);
  }
  if (code && message) return new AgonError(code, message, {}, cause);
  if (PASSING.has(error.type ?? '')) {
    return new AgonError('STORE.UNAVAILABLE', `${address} does not answer: ${error.message}`, {}, cause);
  }
  return new AgonError('STORE.FAILED', `${address} could not be used: ${error.message}`, {}, cause);
}
