import type { AgonError } from './errors.js';
import type { RecordedEvent, SealedEvent, StreamHead } from './event.js';

export interface AppendResult {
  /** The stream's revision after the append. */
  readonly revision: number;
  /** The log position of the last event appended. */
  readonly position: number;
}

export interface StreamPage {
  readonly fromRevision?: number;
  readonly direction?: 'forwards' | 'backwards';
  readonly limit?: number;
}

/**
 * A page of the log begins after an event, with one, or goes back from one: only one of the three is given. Each is the
 * position of an event, which is all that a server of others takes; there is nothing to be gained by counting on one, or
 * one less. What is not the position of an event is refused with STORE.BAD_POSITION; beyond the end there is nothing.
 */
export interface LogPage {
  /** Exclusive: 0 reads from the beginning. */
  readonly after?: number;
  /** Inclusive. */
  readonly from?: number;
  /** Backwards, newest first, from what stands before this position, or from the end. */
  readonly before?: number | 'end';
  readonly limit?: number;
}

export interface Subscription {
  /** Stops after the batch in hand. Resolves when the handler will not be called again. */
  stop(): Promise<void>;
  /** Rejects if the subscription ended by an error, for instance a corrupt log. */
  readonly done: Promise<void>;
}

export type BatchHandler = (events: readonly RecordedEvent[]) => Promise<void>;

/**
 * The only truth. An append is atomic and acknowledged only once it is durable; a reader never sees an event that a
 * crash could still take back. Refusals: STORE.REVISION_CONFLICT, STORE.TOO_LARGE, STORE.BROKEN_CHAIN, STORE.CORRUPT,
 * STORE.FULL, STORE.CLOSED, STORE.BAD_POSITION; where others can get at the log, STORE.DELETED and STORE.TRUNCATED as well.
 */
export interface EventStore {
  /** Repeating an append with the same events at the same place acknowledges it again and writes nothing. */
  append(stream: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult>;
  readStream(stream: string, page?: StreamPage): Promise<readonly RecordedEvent[]>;
  /** May give fewer than asked for; only an empty page is the end. */
  readAll(page?: LogPage): Promise<readonly RecordedEvent[]>;
  head(stream: string): Promise<StreamHead | undefined>;
  lastPosition(): Promise<number>;
  /**
   * Catches up, then follows: every event once, in order, with no gap where the two meet. Begins after the position of an
   * event, or at 0; ends with STORE.BAD_POSITION after any other.
   */
  subscribe(options: { after: number; batchSize?: number }, handler: BatchHandler): Subscription;
  /** What others have removed from the log, as far as it is known; left out where nobody else can. */
  removed?(): Promise<readonly AgonError[]>;
  close(): Promise<void>;
}

/** Limits that every store enforces, so that what one deployment accepts, the other can take over. */
export const storeLimits = {
  eventBytesMax: 512 * 1024,
  appendEventsMax: 512,
  appendBytesMax: 1024 * 1024,
  pageEventsMax: 16_384,
} as const;

export interface DeadLetter {
  readonly group: string;
  readonly position: number;
  readonly eventId: string;
  readonly code: string;
  readonly message: string;
  readonly attempts: number;
}

/** How far each consumer group has come, and what it had to put aside; durable. */
export interface Checkpoints {
  load(group: string): Promise<number>;
  save(group: string, position: number): Promise<void>;
  /** How far it was saved, for those to whom loading means to begin anew; left out where it does not. */
  saved?(group: string): Promise<number>;
  /** Forgets how far the group has come, and what followed from it. */
  reset(group: string): Promise<void>;
  bury(deadLetter: DeadLetter): Promise<void>;
  /** The dead letter had its effect after all; one that there is not is no error. */
  unbury(group: string, eventId: string): Promise<void>;
  deadLetters(group?: string): Promise<readonly DeadLetter[]>;
}

export interface ConsumerOptions {
  /** A group has one checkpoint; each of its events is delivered at least once, in order. */
  readonly group: string;
  /** Event types wanted; all when left out. */
  readonly types?: readonly string[];
  readonly batchSize?: number;
  /** Deliveries of a failing event on its own before it is buried; without end by default. */
  readonly attemptsMax?: number;
}

export interface Consumer {
  stop(): Promise<void>;
  readonly done: Promise<void>;
  /** The last position whose effects are complete. */
  position(): number;
  /** False while another member of its group has the work, where groups have several. */
  active?(): boolean;
}

/** At-least-once delivery of the log's events to consumer groups. */
export interface Bus {
  consume(options: ConsumerOptions, handler: BatchHandler): Promise<Consumer>;
  close(): Promise<void>;
}

/** Immutable files by content: agents' code now, replays and bundles later. */
export interface Artifacts {
  /** Returns the SHA-256 of the content, in hex. Storing the same content twice is harmless. */
  put(content: Uint8Array): Promise<string>;
  /** Refuses with ARTIFACT.MISSING, or with ARTIFACT.CORRUPT if the content does not match its digest. */
  get(digest: string): Promise<Uint8Array>;
}

/** How fast somebody may go on the whole, and how much at once. */
export interface Rate {
  readonly perMinute: number;
  readonly burst: number;
}

export type TakeResult =
  | { readonly ok: true; readonly left: number }
  | { readonly ok: false; readonly retryAfterMs: number };

/** Token buckets by name. A bucket begins full, and what is refused takes nothing. */
export interface RateLimits {
  take(name: string, rate: Rate, tokens?: number): Promise<TakeResult>;
}

/** One more of something of which there may be so many. */
export interface Claim {
  readonly name: string;
  readonly max: number;
  /** How many the caller can see. What was claimed a moment ago may not be among them yet. */
  readonly known: number;
  /** How long the last claim of this name is remembered. By then, what came of it can be seen. */
  readonly keepMs: number;
}

export type ClaimResult =
  /** What came to nothing is given back. */
  | { readonly ok: true; release(): Promise<void> }
  /** The first of which there are as many as there may be. */
  | { readonly ok: false; readonly name: string; readonly used: number };

/** Counts by name, of things that cannot all be seen yet. */
export interface Quotas {
  /** One of each, or nothing at all: of two who claim the last one at once, one gets it. */
  claim(claims: readonly Claim[]): Promise<ClaimResult>;
}

/** A right that one process at a time has, for as long as it keeps it alive. */
export interface Lease {
  /** Waits for it. Rejects only when the signal fires. */
  acquire(signal: AbortSignal): Promise<HeldLease>;
}

export interface HeldLease {
  /** Grows with every holder: whoever guards a resource can refuse an older one. */
  readonly token: number;
  /** Fires when the lease may have passed to somebody else. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}
