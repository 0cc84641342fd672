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
  db.convertToCommandError(error as Error) as Error & {
    type?: string;
    code?: number;
    maxAppendSize?: number;
    streamName?: string;
  };

/** What the client says when it has found no node to talk to, or talks to one that was left: errors without a type. */
const NOBODY = /^Failed to discover|Channel has been shut down/;

const isNobody = (error: unknown) => error instanceof Error && NOBODY.test(error.message);

/** Whether the same call may work in a moment. */
export function isPassing(error: unknown): boolean {
  if (error instanceof AgonError) return false;
  return isNobody(error) || PASSING.has(commandError(error).type ?? '');
}

/**
 * Whether a client that has met this is of no more use: it keeps what it has asked the server first, also when the answer
 * was that there is none, and never asks again.
 */
export function isLasting(error: unknown): boolean {
  const { type } = commandError(error);
  return isNobody(error) || type === db.ErrorType.DEADLINE_EXCEEDED || type === db.ErrorType.TIMEOUT;
}

/** Somebody has removed a stream of ours, which only its events can tell us. */
export function deleted(stream: string, address: string, how: string): AgonError {
  const why = `${stream} was deleted on ${address}, which Agon never does: ${how}.`;
  return new AgonError('STORE.DELETED', `${why} Put that server back from a backup.`, { stream });
}

/** Somebody has removed the first events of a stream of ours, or has the server remove them. */
export function truncated(stream: string, address: string, how: string): AgonError {
  const why = `${stream} was cut on ${address}, which Agon never does: ${how}.`;
  return new AgonError('STORE.TRUNCATED', `${why} Take $tb, $maxCount and $maxAge out of its metadata.`, { stream });
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
      return deleted(error.streamName ?? 'A stream', address, 'nothing can be read from it or added to it');
  }
  if (code && message) return new AgonError(code, message, {}, cause);
  if (isPassing(thrown)) {
    return new AgonError('STORE.UNAVAILABLE', `${address} does not answer: ${error.message}`, {}, cause);
  }
  return new AgonError('STORE.FAILED', `${address} could not be used: ${error.message}`, {}, cause);
}
