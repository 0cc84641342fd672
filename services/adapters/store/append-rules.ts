import {
  AgonError,
  type AppendResult,
  EMPTY_HEAD,
  type RecordedEvent,
  type SealedEvent,
  STREAM_NAME,
  type StreamHead,
  storeLimits,
} from '../../kernel/index.js';

/** What every store refuses before it writes anything, whatever it is built on. Returns roughly how many bytes it is. */
export function checkShape(stream: string, expectedRevision: number, events: readonly SealedEvent[]): number {
  if (!STREAM_NAME.test(stream)) {
    throw new AgonError('STORE.BAD_STREAM', `"${stream}" is not a stream name. Streams look like wallet-ada.`);
  }
  if (events.length === 0) throw new AgonError('STORE.EMPTY_APPEND', `Nothing to append to ${stream}.`);
  if (events.length > storeLimits.appendEventsMax) {
    throw tooLarge(`${events.length} events in one append; the limit is ${storeLimits.appendEventsMax}`, stream);
  }
  let prevHash: string | undefined;
  let bytes = 0;
  for (let i = 0; i < events.length; i++) {
    const event = events[i] as SealedEvent;
    const linked = prevHash === undefined || event.prevHash === prevHash;
    if (event.stream !== stream || event.revision !== expectedRevision + 1 + i || !linked) {
      throw new AgonError(
        'STORE.BROKEN_CHAIN',
        `Event ${event.id} does not continue ${stream} at revision ${expectedRevision + 1 + i}.`,
      );
    }
    prevHash = event.hash;
    const eventBytes = dataBytes(event.data);
    if (eventBytes > storeLimits.eventBytesMax) throw tooLarge(`${event.type} has ${eventBytes} bytes`, stream);
    bytes += eventBytes;
  }
  if (bytes > storeLimits.appendBytesMax) throw tooLarge(`one append has ${bytes} bytes`, stream);
  return bytes;
}

/** Roughly the bytes of plain data as JSON; the same number in every store, which is what a limit needs. */
function dataBytes(value: unknown): number {
  if (typeof value === 'string') return 2 + (value.length < 64 ? value.length : Buffer.byteLength(value));
  if (typeof value !== 'object' || value === null) return 8;
  let bytes = 2;
  if (Array.isArray(value)) for (const item of value) bytes += 1 + dataBytes(item);
  else for (const key in value) bytes += 4 + key.length + dataBytes((value as Record<string, unknown>)[key]);
  return bytes;
}

const tooLarge = (what: string, stream: string) =>
  new AgonError('STORE.TOO_LARGE', `${stream}: ${what}. Keep large content as an artifact and record its digest.`);

/** Whether the events fit on the stream's head; false means that the stream has moved. */
export function fits(head: StreamHead | undefined, expectedRevision: number, events: readonly SealedEvent[]): boolean {
  const { revision, hash } = head ?? EMPTY_HEAD;
  if (revision !== expectedRevision) return false;
  if (events[0]?.prevHash !== hash) {
    throw new AgonError('STORE.BROKEN_CHAIN', `Event ${events[0]?.id} does not name the hash of the event before it.`);
  }
  return true;
}

/**
 * The answer to an append whose place is taken: if the very same events hold it, the caller is repeating itself and is
 * told so again; otherwise somebody else was faster. The same means the same hash: two processes that carry out one
 * command make events of one id, and the slower one must not believe that its content was the one recorded.
 */
export function repeatedOrConflict(
  stream: string,
  expectedRevision: number,
  events: readonly SealedEvent[],
  there: readonly RecordedEvent[],
  head: StreamHead | undefined,
): AppendResult {
  const last = there.at(-1);
  if (last && there.length === events.length && there.every((event, i) => event.hash === events[i]?.hash)) {
    return { revision: last.revision, position: last.position };
  }
  const actualRevision = head?.revision ?? EMPTY_HEAD.revision;
  throw new AgonError(
    'STORE.REVISION_CONFLICT',
    `${stream} is at revision ${actualRevision}, not at ${expectedRevision}.`,
    { stream, expectedRevision, actualRevision },
  );
}

/** A place in the log where no event stands. Nothing can be read from there: a server of others would not know how. */
export const badPosition = (position: number): AgonError =>
  new AgonError('STORE.BAD_POSITION', `No event stands at position ${position} of this log.`, { position });
