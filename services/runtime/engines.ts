import type { DataSource } from 'typeorm';
import type { HotBoards } from '../../projections/leaderboards/hot.js';
import type { Vault } from '../accounts/index.js';
import type {
  Artifacts,
  Bus,
  Checkpoints,
  Command,
  Consumer,
  DeadLetter,
  EventStore,
  Handled,
  Lease,
  Policy,
  Quotas,
  RateLimits,
} from '../kernel/index.js';
import type { PaymentProvider } from '../payments/index.js';
import type { DataFolder } from './data-folder.js';

/**
 * What an arena stands on. Each engine is opened by the first who asks for it, and shared by what runs in this process.
 * There are two sets of them, embedded and cluster, and nothing else differs between the two.
 */
export interface Engines {
  /** Keys, tokens and files: a folder of this process alone, or one that several processes share. */
  folder(): Promise<DataFolder>;
  log(): Promise<EventStore>;
  /** The read models. */
  database(): Promise<DataSource>;
  /** The same, on connections for those who answer callers. */
  reads(): Promise<DataSource>;
  /** How far groups of consumers have come. */
  checkpoints(): Promise<Checkpoints>;
  /** What carries the log's events to groups that keep their place in these checkpoints. */
  bus(): Promise<MakeBus>;
  /** The same by reading the log itself, for groups whose members are all in this process. */
  tail(): Promise<MakeBus>;
  artifacts(): Promise<Artifacts>;
  boards(): Promise<HotBoards>;
  limits(): Promise<RateLimits & Quotas>;
  channel(): Promise<Channel>;
  /** A right that one process at a time has. Whoever is alone always has it. */
  lease(name: string): Promise<Lease>;
  /** What is known here of the rows that views keep. */
  rows(): Promise<Rows>;
  deadLetters(wants: DeadLetterWants): Promise<DeadLetters>;
  /** Who takes real money; undefined where there are play credits only. */
  payments(): Promise<PaymentProvider | undefined>;
  /** Where analytics are kept; undefined where nobody named a place. */
  clickhouse(): Promise<ClickHouseServer | undefined>;
  /** People, beside the log. */
  vault(): Promise<Vault>;
  /** What publishes the log to a bus that other processes read. */
  relay(): Promise<Relay>;
}

export type MakeBus = (checkpoints: Checkpoints) => Bus;

/** A ClickHouse, or what answers as one. */
export interface ClickHouseServer {
  /** Starts it where it is our own, and prepares it; until then there is nothing to ask. Gives whoever writes what it needs. */
  open<T>(prepare: (writerUrl: string) => Promise<T>): Promise<T>;
  running(): boolean;
  /** For whoever reads; refuses with ANALYTICS.* while there is nothing to ask. */
  url(): string;
  close(): Promise<void>;
}

/** Says things to everybody who listens now. What is said may get lost, and none of it is kept for long. */
export interface Channel {
  publish(topic: string, message: unknown): void;
  subscribe(topic: string, hear: (message: unknown) => void): Promise<void>;
  /** What anybody may look up, as long as whoever offers it is there. Returns how to stop. */
  offer(name: string, value: () => unknown): () => void;
  lookUp(name: string): Promise<unknown>;
}

export interface Rows {
  /** How often the rows of a view have changed; undefined where other processes change them. */
  changesOf(view: string): number | undefined;
  /** Told by whoever keeps them. */
  changed(view: string): void;
  /** Up to where every view has come. */
  position(): Promise<number>;
}

export interface DeadLetterFilter {
  readonly group?: string;
  readonly eventId?: string;
}

/** What policies gave up on, and a way to hand it to them again. */
export interface DeadLetters {
  list(filter?: DeadLetterFilter): Promise<readonly DeadLetter[]>;
  /** `done` had its effect, or is on its way to those who gave up on it; `left` failed again. */
  replay(
    filter?: DeadLetterFilter,
  ): Promise<{ readonly done: readonly DeadLetter[]; readonly left: readonly DeadLetter[] }>;
}

export interface DeadLetterWants {
  readonly policies: readonly Policy[];
  execute(command: Command): Promise<Handled>;
}

export interface Relay extends Consumer {
  state(): string;
  /** Whether any process publishes now. */
  taken(): Promise<boolean>;
}
