import { setTimeout as sleep } from 'node:timers/promises';
import db, { type EventStoreDBClient, type Filter, type JSONType, type ResolvedEvent } from '@eventstore/db-client';
import { contentId, fromWire, toWire } from '../../../proto/eventstore.js';
import {
  AgonError,
  type AppendResult,
  type BatchHandler,
  EMPTY_HEAD,
  type EventStore,
  isAgonError,
  type LogPage,
  NO_STREAM,
  type RecordedEvent,
  type SealedEvent,
  type StreamHead,
  type StreamPage,
  type Subscription,
  storeLimits,
} from '../../kernel/index.js';
import { badPosition, checkShape, fits, repeatedOrConflict } from './append-rules.js';
import { type Address, addressOf, shownAddress } from './eventstoredb-address.js';
import { Connection, readAllFiltered } from './eventstoredb-client.js';
import { asEsdbError, deleted, isLasting, isPassing, isRefusedPlace, truncated } from './eventstoredb-errors.js';
import { removedFrom } from './eventstoredb-removed.js';
import { Tail } from './eventstoredb-tail.js';
import { follow } from './follow.js';

const ATTEMPTS_MAX = 8;
const HEADS_MAX = 200_000;
const PAUSE_MS = { first: 50, max: 1_000 };

interface EventStoreDbOptions {
  /** How often a call that found nobody is repeated before it is refused with STORE.UNAVAILABLE. */
  readonly attemptsMax?: number;
  /** Streams whose last hash is kept in memory. The first append to another one costs a read. */
  readonly headsMax?: number;
}

/**
 * The log on EventStoreDB. What its server cannot know, the chain of hashes, is checked here before an append is sent;
 * what only it can know, the actual revision, is decided there. Positions are the server's commit positions: they grow,
 * and on a real server they have gaps.
 */
export class EventStoreDbStore implements EventStore {
  private readonly heads = new Map<string, StreamHead>();
  /** Appends under way, by stream. */
  private readonly inFlight = new Map<string, Set<Promise<unknown>>>();
  private readonly subscriptions = new Set<Subscription>();
  private readonly filter: Filter;
  private closed = false;

  private constructor(
    private readonly connection: Connection,
    private readonly address: Address,
    private readonly attemptsMax: number,
    private readonly headsMax: number,
  ) {
    const { prefix } = address;
    this.filter = prefix ? db.streamNameFilter({ prefixes: [prefix] }) : db.excludeSystemEvents();
  }

  /**
   * Connects, and refuses with a code if nobody answers or the key is wrong.
   *
   * @example await EventStoreDbStore.open('esdb://admin:changeit@localhost:2113?tlsCAFile=ca.crt&streamPrefix=agon.')
   */
  static async open(url: string, options: EventStoreDbOptions = {}): Promise<EventStoreDbStore> {
    const address = addressOf(url);
    const { attemptsMax = ATTEMPTS_MAX, headsMax = HEADS_MAX } = options;
    const store = new EventStoreDbStore(new Connection(address), address, attemptsMax, headsMax);
    try {
      await store.lastPosition();
    } catch (error) {
      await store.close();
      throw error;
    }
    return store;
  }

  append(stream: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    try {
      this.assertOpen();
      checkShape(stream, expectedRevision, events);
      const known = expectedRevision === NO_STREAM ? (this.heads.get(stream) ?? EMPTY_HEAD) : this.heads.get(stream);
      // Without waiting in between where nothing has to be asked: what was asked for first is sent first.
      if (known?.revision === expectedRevision && fits(known, expectedRevision, events)) {
        return this.sent(stream, expectedRevision, events);
      }
      return this.appendUnknown(stream, expectedRevision, events);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async readStream(stream: string, page: StreamPage = {}): Promise<readonly RecordedEvent[]> {
    this.assertOpen();
    const maxCount = Math.min(page.limit ?? storeLimits.pageEventsMax, storeLimits.pageEventsMax);
    if (maxCount === 0) return [];
    const direction = page.direction ?? 'forwards';
    const from = page.fromRevision;
    const fromRevision = from === undefined ? (direction === 'forwards' ? 'start' : 'end') : BigInt(Math.max(0, from));
    const known = this.inFlight.has(stream) ? undefined : this.heads.get(stream);
    const { events } = await this.reading((client) =>
      client.readStream(this.address.prefix + stream, { direction, fromRevision, maxCount }),
    );
    this.assertWhole(stream, { ...page, limit: maxCount }, events, known);
    const newest = direction === 'forwards' ? events.at(-1) : events[0];
    if (newest) this.learn(stream, newest);
    return events;
  }

  async readAll(page: LogPage = {}): Promise<readonly RecordedEvent[]> {
    this.assertOpen();
    const { after = 0, from = after, before } = page;
    const limit = Math.min(page.limit ?? storeLimits.pageEventsMax, storeLimits.pageEventsMax);
    if (limit === 0) return [];
    const passed = page.from === undefined ? after : 0;
    const backwards = before !== undefined;
    // The server begins with the event at the position, which the caller may have already.
    let place = before ?? (from === 0 ? ('start' as const) : from);
    for (let count = passed === 0 ? limit : limit + 1; ; count = limit + 1) {
      const asked = { place, limit: count, backwards };
      const { events, last } = await this.reading((client) => readAllFiltered(client, asked, this.filter), place);
      for (const event of events) this.learn(event.stream, event);
      const wanted = events.filter(({ position }) => position > passed).slice(0, limit);
      // A page of nothing but the server's own notes is not the end.
      if (wanted.length > 0 || last === undefined || last === place) return wanted;
      place = last;
    }
  }

  async head(stream: string): Promise<StreamHead | undefined> {
    const [last] = await this.readStream(stream, { direction: 'backwards', limit: 1 });
    return last && { revision: last.revision, hash: last.hash };
  }

  async lastPosition(): Promise<number> {
    this.assertOpen();
    const [last] = await this.readAll({ before: 'end', limit: 1 });
    return last?.position ?? 0;
  }

  subscribe(options: { after: number; batchSize?: number }, handler: BatchHandler): Subscription {
    this.assertOpen();
    const tail = new Tail(this.connection, this.filter, (resolved) => this.recorded(resolved), options.after);
    const subscription = follow(tail, options, handler);
    this.subscriptions.add(subscription);
    const over = () => {
      this.subscriptions.delete(subscription);
      tail.close();
    };
    subscription.done.then(over, over);
    return subscription;
  }

  removed(): Promise<readonly AgonError[]> {
    return this.persistently((client) => removedFrom(client, this.address));
  }

  async close(): Promise<void> {
    if (this.closed) return;
    await Promise.all([...this.subscriptions].map((subscription) => subscription.stop()));
    this.closed = true;
    await Promise.allSettled([...this.inFlight.values()].flatMap((appends) => [...appends]));
    await this.connection.close();
  }

  /** The stream's head is not known, or not where the caller thinks: the server says what is true. */
  private async appendUnknown(
    stream: string,
    expectedRevision: number,
    events: readonly SealedEvent[],
  ): Promise<AppendResult> {
    await Promise.allSettled(this.inFlight.get(stream) ?? []);
    if ((this.heads.get(stream)?.revision ?? NO_STREAM) < expectedRevision) {
      const [before] = await this.readStream(stream, { fromRevision: expectedRevision, limit: 1 });
      if (before && fits(before, expectedRevision, events)) return this.sent(stream, expectedRevision, events);
    }
    return this.settle(stream, expectedRevision, events);
  }

  /** Somebody has been faster, or this append has been carried out before. */
  private async settle(stream: string, expectedRevision: number, events: readonly SealedEvent[]) {
    const there = await this.readStream(stream, { fromRevision: expectedRevision + 1, limit: events.length });
    return repeatedOrConflict(stream, expectedRevision, events, there, await this.head(stream));
  }

  private sent(stream: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    const { revision, hash } = events[events.length - 1] as SealedEvent;
    if (this.heads.size > this.headsMax) this.heads.clear();
    this.heads.set(stream, { revision, hash });
    const appends = this.inFlight.get(stream) ?? new Set();
    this.inFlight.set(stream, appends);
    const append = this.send(stream, expectedRevision, events).catch((error: unknown) => {
      // Whatever was thought to stand on it does not.
      this.heads.delete(stream);
      throw error;
    });
    const over = () => {
      appends.delete(append);
      if (appends.size === 0 && this.inFlight.get(stream) === appends) this.inFlight.delete(stream);
    };
    appends.add(append);
    append.then(over, over);
    return append.catch((error: unknown) => {
      if (!isAgonError(error, 'STORE.REVISION_CONFLICT')) throw error;
      return this.settle(stream, expectedRevision, events);
    });
  }

  /** Appends are repeated as they are when the connection breaks: the ids make that harmless. */
  private async send(stream: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    const proposed = events.map((event) => {
      const { data, metadata } = toWire(event);
      return db.jsonEvent({ id: contentId(event), type: event.type, data: data as JSONType, metadata });
    });
    const expected = expectedRevision === NO_STREAM ? 'no_stream' : BigInt(expectedRevision);
    const { nextExpectedRevision, position } = await this.persistently((client) =>
      client.appendToStream(this.address.prefix + stream, proposed, { expectedRevision: expected }),
    );
    const revision = Number(nextExpectedRevision);
    // A stream that was deleted is taken for a new one, and goes on at its old revision.
    if (revision !== expectedRevision + events.length) {
      const how = `what was to be revision ${expectedRevision + events.length} became revision ${revision}`;
      throw deleted(stream, shownAddress(this.address.url), how);
    }
    if (position) return { revision, position: Number(position.commit) };
    const [last] = await this.readStream(stream, { fromRevision: revision, limit: 1 });
    return { revision, position: last?.position ?? 0 };
  }

  /** A stream has every revision from 0 on. What a server leaves out, somebody has had removed there. */
  private assertWhole(
    stream: string,
    { fromRevision: from, direction, limit = 0 }: StreamPage,
    events: readonly RecordedEvent[],
    known: StreamHead | undefined,
  ): void {
    const backwards = direction === 'backwards';
    const inOrder = backwards ? events.toReversed() : events;
    const [first, last] = [inOrder[0], inOrder.at(-1)];
    const address = shownAddress(this.address.url);
    if (!first || !last) {
      // One that it has never heard of may be new; one that it knows cannot have become shorter.
      if (known && known.revision >= (backwards ? 0 : (from ?? 0))) {
        throw deleted(stream, address, `it had ${known.revision + 1} events and has none`);
      }
      return;
    }
    const due = backwards ? Math.max(0, last.revision + 1 - limit) : Math.max(0, from ?? 0);
    if (first.revision > due) throw truncated(stream, address, `revision ${due} is gone, ${first.revision} is there`);
    if (last.revision - first.revision + 1 !== events.length) {
      throw truncated(stream, address, `revisions between ${first.revision} and ${last.revision} are gone`);
    }
  }

  private reading(start: (client: EventStoreDBClient) => AsyncIterable<ResolvedEvent>, place?: number | string) {
    return this.persistently(async (client) => {
      const events: RecordedEvent[] = [];
      let last: number | undefined;
      for await (const resolved of start(client)) {
        const event = this.recorded(resolved);
        if (event) events.push(event);
        last = positionOf(resolved);
      }
      return { events, last };
    }).catch((error: unknown) => {
      if (isAgonError(error, 'STORE.NO_STREAM')) return { events: [], last: undefined };
      if (typeof place === 'number' && isRefusedPlace(error)) throw badPosition(place);
      throw error;
    });
  }

  private async persistently<T>(call: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const { client } = this.connection;
      try {
        return await call(client);
      } catch (error) {
        if (this.closed) throw closed();
        if (isLasting(error)) this.connection.renew(client);
        if (!isPassing(error) || attempt >= this.attemptsMax) throw asEsdbError(error, shownAddress(this.address.url));
        await sleep(Math.min(PAUSE_MS.max, PAUSE_MS.first * 2 ** (attempt - 1)));
      }
    }
  }

  private recorded(resolved: ResolvedEvent): RecordedEvent | undefined {
    const { event } = resolved;
    const position = positionOf(resolved);
    const { prefix } = this.address;
    if (!event?.streamId.startsWith(prefix) || !Number.isSafeInteger(position) || position < 1) {
      const message = `The server gave an event of ${event?.streamId ?? 'no stream'} without a position of its own. `;
      throw new AgonError('STORE.FAILED', `${message}EventStoreDB 22.10 or newer is needed.`);
    }
    // The server's own note in a stream, which stands where the stream was deleted for good.
    if (event.type.startsWith('$')) return undefined;
    const { streamId, revision, type, data, metadata } = event;
    const stream = streamId.slice(prefix.length);
    try {
      return { ...fromWire({ stream, revision: Number(revision), type, data, metadata }), position };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const message = `The event at position ${position} is not Agon's: ${why}. Give Agon a streamPrefix of its own.`;
      throw new AgonError('STORE.CORRUPT', message, { position });
    }
  }

  private learn(stream: string, { revision, hash }: StreamHead): void {
    if ((this.heads.get(stream)?.revision ?? NO_STREAM) >= revision) return;
    if (this.heads.size > this.headsMax) this.heads.clear();
    this.heads.set(stream, { revision, hash });
  }

  private assertOpen(): void {
    if (this.closed) throw closed();
  }
}

const positionOf = ({ event, commitPosition }: ResolvedEvent) =>
  Number(event?.position?.commit ?? commitPosition ?? -1n);

const closed = () => new AgonError('STORE.CLOSED', 'The event store is closed.');
