import { LRUCache } from 'lru-cache';
import { type Upcaster, upcasterOf } from './catalogue.js';
import type { Context, ContextOf } from './context.js';
import type { DomainEvent } from './decider.js';
import { invariant } from './errors.js';
import { EMPTY_HEAD, type RecordedEvent, type SealedEvent, type StreamHead } from './event.js';
import { type EventStore, storeLimits } from './ports.js';

/** What a command did to a stream, which is what makes a repeated one harmless. */
export interface CommandEffect {
  readonly inputHash: string;
  readonly firstRevision: number;
  readonly revision: number;
  readonly position: number;
}

interface Fold {
  state: unknown;
  head: StreamHead;
  readonly done: Map<string, CommandEffect>;
  /** Of the events in it, as text: what it weighs in the cache. */
  bytes: number;
}

/** What an append has put into a stream. */
interface NewEvents {
  readonly sealed: readonly SealedEvent[];
  readonly position: number;
  readonly textLength: number;
}

/**
 * How new a state has to be. `cached` is what this process knows of the stream, good enough where an append checks it;
 * `tail` has everything that was acknowledged before the call, for what nobody may be behind with: who somebody is, which
 * key was revoked.
 */
type Freshness = 'cached' | 'tail';

interface StreamState<State> {
  readonly state: State;
  /** Of the last event in it; -1 where there is none. */
  readonly revision: number;
}

/**
 * The state of a stream by its own events; `load()` stands beside `handle()`, and nothing else folds a stream.
 *
 * @example const { state } = await load(wallet, 'ada', 'tail');
 */
export type Load = <State>(context: ContextOf<State>, id: string, freshness: Freshness) => Promise<StreamState<State>>;

const CACHE_BYTES = 64 * 1024 * 1024;
/** A stream costs this much beside its events, and an event beside its data. */
const STREAM_BYTES = 1_024;
const EVENT_BYTES = 256;

interface FoldsOptions {
  readonly store: Pick<EventStore, 'readStream'>;
  /** Of events in the states that are kept; those that were used least recently go first. */
  readonly cacheBytesMax?: number;
}

/** The streams that a process has folded, so that each look reads only what is newer. */
export class Folds {
  private readonly cache: LRUCache<string, Fold>;
  private readonly upcasters = new Map<Context, Upcaster>();
  private readonly store: FoldsOptions['store'];

  constructor({ store, cacheBytesMax = CACHE_BYTES }: FoldsOptions) {
    this.store = store;
    this.cache = new LRUCache({ maxSize: cacheBytesMax, sizeCalculation: ({ bytes }) => bytes });
  }

  readonly load: Load = async <State>(context: ContextOf<State>, id: string, freshness: Freshness) => {
    const stream = id === '' ? context.streams : `${context.streams}-${id}`;
    const known = this.cache.get(stream);
    const { state, head } = known && freshness === 'cached' ? known : await this.refresh(context, stream, known);
    return { state: state as State, revision: head.revision };
  };

  cached(stream: string): Fold | undefined {
    return this.cache.get(stream);
  }

  /** Folds what the store holds beyond this state, and keeps the result. */
  async refresh(context: Context, stream: string, from = this.empty(context)): Promise<Fold> {
    const upcast = this.upcasterOf(context);
    for await (const page of pagesOf(this.store, stream, from.head.revision + 1)) {
      for (const event of page) {
        // Somebody else may have read the same meanwhile.
        if (event.revision <= from.head.revision) continue;
        this.absorb(context, from, upcast(event), event, event.position);
        from.bytes += EVENT_BYTES + JSON.stringify(event.data).length;
      }
    }
    this.keep(stream, from);
    return from;
  }

  /** Takes in what was just appended at this state's head; the length of the events' data as text comes with it. */
  appended(context: Context, stream: string, into: Fold, appended: NewEvents): void {
    const { sealed, position, textLength } = appended;
    invariant(sealed.length > 0, 'An append holds at least one event.');
    for (const event of sealed) {
      // Somebody who looks meanwhile may have taken it in already.
      if (event.revision > into.head.revision) this.absorb(context, into, event, event, position);
    }
    into.bytes += EVENT_BYTES * sealed.length + textLength;
    this.keep(stream, into);
  }

  upcasterOf(context: Context): Upcaster {
    const known = this.upcasters.get(context) ?? upcasterOf([context.events]);
    this.upcasters.set(context, known);
    return known;
  }

  private empty(context: Context): Fold {
    return { state: context.decider.initial, head: EMPTY_HEAD, done: new Map(), bytes: STREAM_BYTES };
  }

  private absorb(context: Context, into: Fold, event: DomainEvent, sealed: SealedEvent, position: number): void {
    into.state = context.decider.evolve(into.state, event);
    const { revision, hash, meta } = sealed;
    into.head = { revision, hash };
    const { commandId, inputHash } = meta;
    const firstRevision = into.done.get(commandId)?.firstRevision ?? revision;
    into.done.set(commandId, { inputHash, firstRevision, revision, position });
  }

  /** A stream that nobody ever wrote to is not worth a place. */
  private keep(stream: string, folded: Fold): void {
    if (folded.head.revision < 0) return;
    // The same object again would keep the weight that it had when it came.
    this.cache.delete(stream);
    this.cache.set(stream, folded);
  }
}

/** A stream from a revision to its end, page by page, as it is stored. */
export async function* pagesOf(
  store: Pick<EventStore, 'readStream'>,
  stream: string,
  fromRevision = 0,
): AsyncGenerator<readonly RecordedEvent[]> {
  for (let from = fromRevision; ; ) {
    const page = await store.readStream(stream, { fromRevision: from });
    if (page.length > 0) yield page;
    if (page.length < storeLimits.pageEventsMax) return;
    from += page.length;
  }
}
