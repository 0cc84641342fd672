import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { AgonError, type EventStore, type LogPage, type RecordedEvent } from '../../services/kernel/index.js';
import { filterOf, type LogFilter } from './filter.js';
import {
  caughtUpMessage,
  checkpointMessage,
  confirmationMessage,
  eventMessage,
  fellBehindMessage,
  firstPlaceMessage,
  lastPlaceMessage,
  nameOf,
  notFoundMessage,
} from './messages.js';

const PAGE_EVENTS = 256;
/** A follower that has been sent so many since it was at the end, and is not there again, is told so. */
const BEHIND_EVENTS = 4_096;

/** What a client asks to read, in our own words. */
interface ReadOrder {
  /** A stream's name; undefined for the whole log. */
  readonly stream: string | undefined;
  /** A revision or a position. */
  readonly from: number | 'start' | 'end';
  readonly backwards: boolean;
  /** Undefined for a subscription, which has no end. */
  readonly limit: number | undefined;
  readonly filter: LogFilter | undefined;
  readonly structuredIds: boolean;
  /** Whether a read of a stream ends with where the stream ends. */
  readonly tellsPlaces: boolean;
}

/** Resolves when the client can take more; false once it is gone. */
type Send = (response: ReadResp) => Promise<boolean>;

export function orderOf(request: ReadReq): ReadOrder {
  const options = request.getOptions();
  const [stream, all] = [options?.getStream(), options?.getAll()];
  if (!options || (!stream && !all)) throw new AgonError('READ.INVALID', 'A read names a stream, or all.');
  const filter = options.getFilter();
  if (filter && stream) throw new AgonError('READ.INVALID', 'Only a read of all can have a filter.');
  const follows = options.hasSubscription();
  const backwards = options.getReadDirection() === 1;
  if (follows && backwards) throw new AgonError('READ.INVALID', 'A subscription goes forwards.');
  if (!follows && !options.hasCount()) throw new AgonError('READ.INVALID', 'A read says how many events it wants.');
  const place = stream ?? all;
  const position = all?.getPosition();
  if (position && BigInt(position.getPreparePosition()) > BigInt(position.getCommitPosition())) {
    throw new AgonError('STORE.BAD_POSITION', 'No event is prepared after it is committed.');
  }
  const at = stream?.hasRevision() ? stream.getRevision() : all?.getPosition()?.getCommitPosition();
  return {
    stream: stream && nameOf(stream.getStreamIdentifier()),
    from: place?.hasStart() ? 'start' : place?.hasEnd() || at === undefined ? 'end' : placeOf(at),
    backwards,
    limit: follows ? undefined : placeOf(options.getCount()),
    filter: filter && filterOf(filter),
    structuredIds: options.getUuidOption()?.hasStructured() ?? false,
    tellsPlaces: options.hasControlOption(),
  };
}

/** Their numbers have 64 bits; what is beyond ours is beyond every log. */
const placeOf = (text: string): number => {
  const value = BigInt.asUintN(64, BigInt(text));
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
};

/** Whoever asked. */
interface Caller {
  readonly send: Send;
  /** Refuses whoever may not read any more. */
  assertMay(): Promise<void>;
}

/** Answers a read that has an end. */
export async function read(store: EventStore, order: ReadOrder, { send, assertMay }: Caller): Promise<void> {
  const { stream, filter, structuredIds, limit = 0, from, backwards } = order;
  const head = stream === undefined ? undefined : await store.head(stream);
  if (stream !== undefined && !head) {
    await send(notFoundMessage(stream));
    return;
  }
  if (head && (limit === 0 || (from === 'end' && !backwards))) {
    throw new AgonError('READ.NOTHING', 'There is nothing to read in no events, or forwards from the end of a stream.');
  }
  if (limit === 0) return;
  let left = limit;
  const pages = stream === undefined ? logPages(store, order) : streamPages(store, stream, order);
  for await (const page of pages) {
    await assertMay();
    for (const event of page) {
      if (filter && !filter.wants(event)) continue;
      if (!(await send(eventMessage(event, structuredIds)))) return;
      left -= 1;
      if (left === 0) break;
    }
    if (left === 0) break;
  }
  if (!head || !order.tellsPlaces) return;
  if (left === limit) await send(firstPlaceMessage(head.revision + 1));
  await send(lastPlaceMessage(head.revision));
}

async function* streamPages(store: EventStore, stream: string, { from, backwards, limit = 0 }: ReadOrder) {
  if (!backwards && from === 'end') return;
  const size = Math.min(PAGE_EVENTS, limit);
  let at = from === 'start' ? 0 : from === 'end' ? undefined : from;
  for (;;) {
    const direction = backwards ? 'backwards' : 'forwards';
    const start = at === undefined ? {} : { fromRevision: at };
    const page: readonly RecordedEvent[] = await store.readStream(stream, { ...start, direction, limit: size });
    yield page;
    const last = page.at(-1)?.revision;
    if (last === undefined || (backwards && last === 0)) return;
    at = backwards ? last - 1 : last + 1;
  }
}

/** Forwards from a position with the event that stands there; backwards from what stands before it. */
async function* logPages(store: EventStore, { from, backwards }: ReadOrder) {
  if (from === (backwards ? 'start' : 'end')) return;
  let place: LogPage = backwards ? { before: from === 'start' ? 'end' : from } : {};
  if (!backwards && typeof from === 'number') place = { from };
  for (;;) {
    const page = await store.readAll({ ...place, limit: PAGE_EVENTS });
    yield page;
    const last = page.at(-1)?.position;
    if (last === undefined) return;
    place = backwards ? { before: last } : { after: last };
  }
}

/**
 * Answers a subscription until the signal fires: first what is there, then what comes. The store waits for the client,
 * so a slow one costs a page of memory and no more.
 */
export async function follow(
  store: EventStore,
  order: ReadOrder,
  { send, assertMay }: Caller,
  signal: AbortSignal,
  subscriptionId: string,
): Promise<void> {
  const { stream, filter, structuredIds } = order;
  // A place that is none is refused before anything is confirmed.
  if (stream === undefined && typeof order.from === 'number') await store.readAll({ after: order.from, limit: 1 });
  await send(confirmationMessage(subscriptionId));
  let seen = Number.NEGATIVE_INFINITY;
  let after = await store.lastPosition();
  if (stream !== undefined) {
    // Whatever the stream gets from here on stands beyond this position, or is among what is read now.
    seen =
      order.from === 'end' ? ((await store.head(stream))?.revision ?? -1) : order.from === 'start' ? -1 : order.from;
    const rest = { ...order, from: seen + 1, backwards: false, limit: Number.MAX_SAFE_INTEGER };
    for await (const page of streamPages(store, stream, rest)) {
      await assertMay();
      for (const event of page) {
        if (!(await send(eventMessage(event, structuredIds)))) return;
        seen = event.revision;
      }
    }
  } else if (order.from !== 'end') {
    after = order.from === 'start' ? 0 : order.from;
  }
  const wants = ({ stream: name, revision, type }: RecordedEvent) =>
    stream === undefined ? (filter?.wants({ stream: name, type }) ?? true) : name === stream && revision > seen;

  let live = false;
  let [unchecked, late] = [0, 0];
  /** Tells where the client is in relation to the end, and how far the filter has looked. */
  const report = async (position: number) => {
    const behind = position < (await store.lastPosition());
    if (!behind) late = 0;
    if (filter && unchecked > 0 && (!behind || unchecked >= filter.checkpointEvents)) {
      unchecked = 0;
      await send(checkpointMessage(position));
    }
    if (live ? late <= BEHIND_EVENTS : behind) return;
    live = !live;
    await send(live ? caughtUpMessage() : fellBehindMessage());
  };
  await report(after);
  if (signal.aborted) return;
  const subscription = store.subscribe({ after, batchSize: PAGE_EVENTS }, async (events) => {
    await assertMay();
    for (const event of events) {
      if (signal.aborted) return;
      unchecked += 1;
      late += 1;
      if (wants(event)) await send(eventMessage(event, structuredIds));
      if (filter && unchecked >= filter.checkpointEvents) {
        unchecked = 0;
        await send(checkpointMessage(event.position));
      }
    }
    await report(events.at(-1)?.position ?? after);
  });
  const stop = () => void subscription.stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    await subscription.done;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
