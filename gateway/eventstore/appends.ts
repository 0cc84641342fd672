import { hash as digest } from 'node:crypto';
import type { BatchAppendReq } from '@eventstore/db-client/generated/streams_pb.js';
import { contentId, enclose, fromWire, isSealed } from '../../proto/eventstore.js';
import {
  type Actor,
  AgonError,
  type AppendResult,
  type Clock,
  canonical,
  EMPTY_HEAD,
  type EventStore,
  isAgonError,
  NO_STREAM,
  type RecordedEvent,
  recomputeHash,
  type SealedEvent,
  STREAM_NAME,
  type StreamHead,
  seal,
  storeLimits,
} from '../../services/kernel/index.js';
import { APPEND_BYTES_MAX, type Expectation, uuidText } from './messages.js';

/** What the log's owner lets in, and under which conditions. */
export interface AppendPorts {
  readonly store: EventStore;
  readonly clock: Clock;
  /** Whether only the owner's own write side makes such events: then they have to come sealed. */
  isOwn(stream: string, type: string): boolean;
  /** Refuses a sealed event that the owner's write side would not have recorded. */
  check(event: SealedEvent): void;
}

/** An event as a client proposes it. */
interface Proposal {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: Record<string, unknown>;
}

const TYPE = /^[A-Za-z][A-Za-z0-9._:-]{0,199}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** How far back an append that expects nothing is searched for, to see whether it is a repetition. */
const REPEAT_EVENTS = 64;
const ATTEMPTS_MAX = 10;

/** Reads what a client proposes. The log holds JSON, and names that people can read. */
function proposedOf(message: BatchAppendReq.ProposedMessage): Proposal {
  const properties = message.getMetadataMap();
  const [id, type = ''] = [uuidText(message.getId()), properties.get('type')];
  if (!UUID.test(id)) throw new AgonError('EVENT.INVALID', `"${id}" is not a UUID.`);
  if (!TYPE.test(type)) throw new AgonError('EVENT.INVALID', `"${type}" is not an event type.`);
  if (properties.get('content-type') !== 'application/json') {
    throw new AgonError('EVENT.NOT_JSON', `${type} ${id} is not application/json, which is all that this log holds.`);
  }
  const data = parsed(message.getData_asU8(), `The data of ${type} ${id}`);
  const given = message.getCustomMetadata_asU8();
  const metadata = given.length === 0 ? {} : parsed(given, `The metadata of ${type} ${id}`);
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) {
    throw new AgonError('EVENT.NOT_JSON', `The metadata of ${type} ${id} is not an object.`);
  }
  return { id: id.toLowerCase(), type, data, metadata: metadata as Record<string, unknown> };
}

function parsed(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw new AgonError('EVENT.NOT_JSON', `${what} is not JSON.`);
  }
}

/** Proposals of one append, counted before they are kept. */
export class Proposals {
  readonly events: Proposal[] = [];
  private bytes = 0;

  add(message: BatchAppendReq.ProposedMessage): void {
    this.bytes += message.getData_asU8().length + message.getCustomMetadata_asU8().length;
    if (this.bytes > APPEND_BYTES_MAX || this.events.length === storeLimits.appendEventsMax) {
      throw new AgonError('STORE.TOO_LARGE', `One append has ${APPEND_BYTES_MAX} bytes at most.`);
    }
    this.events.push(proposedOf(message));
  }
}

export type Append = (
  stream: string,
  expected: Expectation,
  proposed: readonly Proposal[],
  actor: Actor,
) => Promise<AppendResult>;

/**
 * The endpoint's way into the log. Sealed events are taken as they are, if they hold; others are sealed here. Either way the
 * log stays one that anybody can verify.
 */
export function createAppend(ports: AppendPorts): Append {
  const { store, clock } = ports;
  /** The last append to each stream that is being sealed here: the next one continues it. */
  const sealing = new Map<string, Promise<unknown>>();

  return (stream, expected, proposed, actor) => {
    if (!STREAM_NAME.test(stream)) {
      const message = `"${stream}" is not a stream name. Streams look like note-1, and none starts with $.`;
      return Promise.reject(new AgonError('STORE.BAD_STREAM', message));
    }
    const sealed = proposed.filter(({ metadata }) => isSealed(metadata)).length;
    if (sealed === 0) return inTurn(stream, () => appendOpen(stream, expected, proposed, actor));
    try {
      if (sealed < proposed.length)
        throw new AgonError('EVENT.NOT_SEALED', 'All events of an append are sealed, or none.');
      return appendSealed(stream, expected, proposed);
    } catch (error) {
      return Promise.reject(error);
    }
  };

  /** Without waiting in between: appends on one connection come to the store in the order in which they came here. */
  function appendSealed(stream: string, expected: Expectation, proposed: readonly Proposal[]): Promise<AppendResult> {
    const before = expected === 'no_stream' ? NO_STREAM : expected;
    if (typeof before === 'string') {
      throw new AgonError('EVENT.NOT_SEALED', 'Sealed events need the exact revision that they continue.');
    }
    const events = proposed.map(({ id, type, data, metadata }, i) => {
      const event = fromWire({ stream, revision: before + 1 + i, type, data, metadata });
      if (recomputeHash(event) !== event.hash) {
        throw new AgonError('STORE.BROKEN_CHAIN', `${type} ${event.id} does not match its hash.`);
      }
      if (id !== event.id && id !== contentId(event)) {
        throw new AgonError('EVENT.NOT_SEALED', `${type} ${event.id} was sent under another id, ${id}.`);
      }
      ports.check(event);
      return event;
    });
    return store.append(stream, before, events);
  }

  async function appendOpen(
    stream: string,
    expected: Expectation,
    proposed: readonly Proposal[],
    actor: Actor,
  ): Promise<AppendResult> {
    const own = proposed.find(({ type }) => ports.isOwn(stream, type));
    if (own) {
      const message = `${own.type} in ${stream} is the arena's own business: it is recorded by commands, or sealed.`;
      throw new AgonError('EVENT.NOT_SEALED', message);
    }
    for (let attempt = 1; ; attempt++) {
      const head = (await store.head(stream)) ?? EMPTY_HEAD;
      if (proposed.length === 0 && isExpected(expected, head)) {
        return { revision: head.revision, position: await store.lastPosition() };
      }
      const repeated = await repetition(stream, expected, proposed, head);
      if (repeated) return repeated;
      if (!isExpected(expected, head)) throw conflict(stream, expected, head);
      try {
        return await store.append(stream, head.revision, sealAll(stream, head, proposed, actor));
      } catch (error) {
        if (!isAgonError(error, 'STORE.REVISION_CONFLICT') || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  function sealAll(stream: string, head: StreamHead, proposed: readonly Proposal[], actor: Actor): SealedEvent[] {
    let { revision, hash: prevHash } = head;
    const time = clock();
    return proposed.map(({ id, type, data: given, metadata }) => {
      revision += 1;
      const data = enclose(given, metadata);
      const inputText = canonical(data);
      const meta = {
        commandId: id,
        inputHash: digest('sha256', inputText),
        correlationId: idIn(metadata.$correlationId) ?? id,
        causationId: idIn(metadata.$causationId) ?? id,
        actor,
      };
      const event = seal({ id, type, version: 1, stream, revision, time, data, meta, prevHash }, inputText);
      prevHash = event.hash;
      return event;
    });
  }

  /** The same ids with the same content, where this append would have put them: then it has been carried out before. */
  async function repetition(
    stream: string,
    expected: Expectation,
    proposed: readonly Proposal[],
    head: StreamHead,
  ): Promise<AppendResult | undefined> {
    if (head.revision === NO_STREAM || expected === head.revision) return undefined;
    const first = expected === 'no_stream' ? 0 : typeof expected === 'number' ? expected + 1 : undefined;
    const there =
      first === undefined
        ? [...(await store.readStream(stream, { direction: 'backwards', limit: REPEAT_EVENTS }))].reverse()
        : await store.readStream(stream, { fromRevision: first, limit: proposed.length });
    const start = first === undefined ? there.findIndex(({ id }) => id === proposed[0]?.id) : 0;
    const run = start < 0 ? [] : there.slice(start, start + proposed.length);
    const last = run.at(-1);
    if (!last || run.length < proposed.length || !run.every((event, i) => isSame(event, proposed[i]))) return undefined;
    return { revision: last.revision, position: last.position };
  }

  async function inTurn<T>(stream: string, work: () => Promise<T>): Promise<T> {
    const turn = (sealing.get(stream) ?? Promise.resolve()).then(work, work);
    sealing.set(stream, turn);
    try {
      return await turn;
    } finally {
      if (sealing.get(stream) === turn) sealing.delete(stream);
    }
  }
}

const idIn = (value: unknown) =>
  typeof value === 'string' && value.length > 0 && value.length <= 200 ? value : undefined;

const isSame = (event: RecordedEvent, proposed: Proposal | undefined): boolean =>
  proposed !== undefined &&
  event.id === proposed.id &&
  event.type === proposed.type &&
  canonical(event.data) === canonical(enclose(proposed.data, proposed.metadata));

function isExpected(expected: Expectation, { revision }: StreamHead): boolean {
  if (expected === 'any') return true;
  if (expected === 'stream_exists') return revision !== NO_STREAM;
  return revision === (expected === 'no_stream' ? NO_STREAM : expected);
}

const conflict = (stream: string, expected: Expectation, { revision: actualRevision }: StreamHead) =>
  new AgonError(
    'STORE.REVISION_CONFLICT',
    `${stream} is at revision ${actualRevision}, and ${expected} was expected.`,
    { stream, actualRevision },
  );
