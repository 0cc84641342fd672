import { createHash } from 'node:crypto';
import {
  AgonError,
  chainFault,
  EMPTY_HEAD,
  type EventStore,
  type RecordedEvent,
  type StreamHead,
  storeLimits,
} from '../../services/kernel/index.js';
import { logPages } from './offline.js';

export interface Migration {
  readonly events: number;
  /** Those that were there from an earlier try. */
  readonly resumedAt: number;
  /** A digest of every hash in the order of the log; the same on both sides. */
  readonly logHash: string;
  /** Where the last event stands in the new log. */
  readonly lastPosition: number;
}

export type MigrationStep = 'comparing' | 'copying' | 'verifying';

export interface MigrateOptions {
  readonly onProgress?: (step: MigrationStep, done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

const PAGE_EVENTS = 1_024;
/** Appends on their way. They are taken in the order in which they were sent, so the order of the log is kept. */
const IN_FLIGHT = 64;

/**
 * Copies a log into an empty one, or goes on with a copy that was interrupted. Every event is compared with what is there
 * already, and afterwards both logs are read again, side by side: the same events in the same order, every hash computed
 * anew. Nothing on either side is ever changed or removed.
 */
export async function migrate(
  source: EventStore,
  target: EventStore,
  options: MigrateOptions = {},
): Promise<Migration> {
  const { onProgress = () => {}, signal } = options;
  const total = await source.lastPosition();
  const copied = await compareBeginnings(source, target, (done) => onProgress('comparing', done, total));
  let done = copied;
  const appended = (events: number) => {
    done += events;
    onProgress('copying', done, total);
  };
  await copyFrom(source, target, copied, appended, signal);
  signal?.throwIfAborted();
  const { logHash, events, lastPosition } = await verifyBoth(source, target, (at) =>
    onProgress('verifying', at, total),
  );
  return { events, resumedAt: copied, logHash, lastPosition };
}

/** How many events of the source the target has already. Refuses a target that holds anything else. */
async function compareBeginnings(source: EventStore, target: EventStore, onEvent: (done: number) => void) {
  let count = 0;
  for await (const { theirs } of sideBySide(source, target)) {
    if (!theirs) break;
    count += 1;
    if (count % PAGE_EVENTS === 0) onEvent(count);
  }
  return count;
}

/** Each event of ours beside what has its place in theirs: the same and whole, or nothing at all. */
async function* sideBySide(source: EventStore, target: EventStore) {
  const [sources, targets] = [eventsOf(source), eventsOf(target)];
  const heads = new Map<string, StreamHead>();
  for (;;) {
    const { value: ours } = await sources.next();
    const { value: theirs } = await targets.next();
    if (!ours && !theirs) return;
    if (!ours) throw tooMany(theirs as RecordedEvent);
    if (theirs) {
      assertSame(ours, theirs);
      assertWhole(theirs, heads);
    }
    yield { ours, theirs };
  }
}

/** Neighbours of one stream go in one append; everything goes in the order of the log. */
async function copyFrom(
  source: EventStore,
  target: EventStore,
  skipped: number,
  onAppended: (events: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  const heads = new Map<string, StreamHead>();
  let failed: { readonly error: unknown } | undefined;
  let group: RecordedEvent[] = [];
  let bytes = 0;
  const begun = new Set<string>();
  const send = async () => {
    const [first] = group;
    if (!first) return;
    while (inFlight.size >= IN_FLIGHT) await Promise.race(inFlight);
    // What could be overtaken goes alone: the very first append opens the call for all others, and before the first one
    // to a stream that an earlier try began, the store may have to ask for the stream's head.
    const alone = begun.size === 0 || (first.revision > 0 && !begun.has(first.stream));
    if (alone) await Promise.all(inFlight);
    begun.add(first.stream);
    if (failed) return;
    const events = group.map(({ position: _position, ...event }) => event);
    group = [];
    bytes = 0;
    const append: Promise<void> = target
      .append(first.stream, first.revision - 1, events)
      .then(
        () => onAppended(events.length),
        (error: unknown) => {
          failed ??= { error };
        },
      )
      .finally(() => inFlight.delete(append));
    inFlight.add(append);
    if (alone) await append;
  };
  let index = 0;
  for await (const event of eventsOf(source)) {
    if (failed || signal?.aborted) break;
    assertWhole(event, heads);
    index += 1;
    if (index <= skipped) continue;
    const size = JSON.stringify(event.data).length;
    const full = group.length >= storeLimits.appendEventsMax / 4 || bytes + size > storeLimits.appendBytesMax / 4;
    if (full || group[0]?.stream !== event.stream) await send();
    group.push(event);
    bytes += size;
  }
  if (!signal?.aborted) await send();
  await Promise.all(inFlight);
  if (failed) throw failed.error;
}

async function verifyBoth(source: EventStore, target: EventStore, onEvent: (done: number) => void) {
  const digest = createHash('sha256');
  let events = 0;
  let lastPosition = 0;
  for await (const { ours, theirs } of sideBySide(source, target)) {
    if (!theirs) {
      const message = `${events} events have arrived; the one at position ${ours.position} has not.`;
      throw new AgonError('MIGRATE.INCOMPLETE', message);
    }
    if (theirs.position <= lastPosition) {
      throw new AgonError('MIGRATE.DIFFERS', `Position ${theirs.position} follows ${lastPosition} in the new log.`);
    }
    lastPosition = theirs.position;
    digest.update(theirs.hash);
    events += 1;
    if (events % PAGE_EVENTS === 0) onEvent(events);
  }
  return { events, lastPosition, logHash: digest.digest('hex') };
}

async function* eventsOf(store: EventStore): AsyncGenerator<RecordedEvent, undefined> {
  for await (const page of logPages(store)) yield* page;
}

/** The same envelope; what it covers is checked by its hash, computed anew. */
function assertSame(ours: RecordedEvent, theirs: RecordedEvent): void {
  if (ours.hash === theirs.hash && ours.stream === theirs.stream && ours.revision === theirs.revision) return;
  throw new AgonError(
    'MIGRATE.DIFFERS',
    `The event at position ${ours.position} is ${nameOf(ours)}; in the new log, ${nameOf(theirs)} stands in its place, at position ${theirs.position}. ` +
      'Nothing was changed there. Move to an empty EventStoreDB, or to another streamPrefix.',
    { position: ours.position, targetPosition: theirs.position },
  );
}

function assertWhole(event: RecordedEvent, heads: Map<string, StreamHead>): void {
  const why = chainFault(event, heads.get(event.stream) ?? EMPTY_HEAD);
  if (why) {
    const message = `${nameOf(event)} at position ${event.position}: ${why}. Nothing that does not hold is moved.`;
    throw new AgonError('LOG.BROKEN_CHAIN', message, { position: event.position, eventId: event.id });
  }
  heads.set(event.stream, { revision: event.revision, hash: event.hash });
}

const nameOf = ({ type, id, revision, stream, hash }: RecordedEvent) =>
  `${type} ${id} (revision ${revision} of ${stream}, hash ${hash.slice(0, 12)})`;

const tooMany = (event: RecordedEvent) =>
  new AgonError(
    'MIGRATE.DIFFERS',
    `The new log holds more than the old one: ${nameOf(event)} at position ${event.position}.`,
    {
      targetPosition: event.position,
    },
  );
