import db, {
  type AllStreamSubscription,
  type EventStoreDBClient,
  type Filter,
  type ResolvedEvent,
} from '@eventstore/db-client';
import type { RecordedEvent } from '../../kernel/index.js';
import { backoffMs } from '../relay.js';
import { badPosition } from './append-rules.js';
import type { Connection } from './eventstoredb-client.js';
import { asEsdbError, isLasting, isPassing, isRefusedPlace } from './eventstoredb-errors.js';
import { type Followable, Growth } from './follow.js';

const BUFFERED_MAX = 2_048;
const CHECKPOINT_WINDOWS = 8;

/**
 * A catch-up subscription, as something to be followed: what it has brought is read from here in batches. While there is
 * plenty, the server waits. When it drops, it is taken up again where it was, by the last event or checkpoint.
 */
export class Tail implements Followable {
  private readonly arrived: RecordedEvent[] = [];
  private readonly growth = new Growth();
  private live: AllStreamSubscription | undefined;
  private fault: { readonly error: unknown; readonly client: EventStoreDBClient } | undefined;
  private failures = 0;
  /** How far the server has looked, wanted or not; nothing at or below it is still on its way to us. */
  private checkpoint = 0;

  constructor(
    private readonly connection: Pick<Connection, 'client' | 'renew'>,
    private readonly filter: Filter,
    /** Nothing for what is no event of ours, like the server's own note that a stream is gone. */
    private readonly recorded: (resolved: ResolvedEvent) => RecordedEvent | undefined,
    /** The last event that has arrived here. Only what is at or below it may be taken for a repetition. */
    private delivered: number,
  ) {}

  async readAll({ limit }: { limit: number }): Promise<readonly RecordedEvent[]> {
    if (!this.live && !this.fault) this.connect();
    const batch = this.arrived.splice(0, limit);
    if (this.live?.isPaused() && this.arrived.length < BUFFERED_MAX / 2) this.live.resume();
    return batch;
  }

  async changed(_after: number, signal: AbortSignal): Promise<void> {
    if (this.arrived.length > 0) return;
    if (!this.fault) return this.growth.next(signal);
    const { error, client } = this.fault;
    const from = Math.max(this.delivered, this.checkpoint);
    if (from > 0 && isRefusedPlace(error)) {
      // A checkpoint is the server's own word for a place; what it does not stand by is no reason to give up.
      if (this.checkpoint <= this.delivered) throw badPosition(from);
      this.checkpoint = 0;
    } else if (!isPassing(error)) throw asEsdbError(error, 'EventStoreDB');
    if (isLasting(error)) this.connection.renew(client);
    await pause(backoffMs(++this.failures), signal);
    this.fault = undefined;
  }

  close(): void {
    this.drop();
  }

  private connect(): void {
    const at = BigInt(Math.max(this.delivered, this.checkpoint));
    const fromPosition = at === 0n ? ('start' as const) : { commit: at, prepare: at };
    const checkpointReached = async (live: AllStreamSubscription, { commit }: { commit: bigint }) => {
      // A checkpoint overtakes the events that wait in the client while we are paused: it says nothing about those.
      if (this.live === live && live.readableLength === 0) this.checkpoint = Number(commit);
    };
    const filter = { ...this.filter, checkpointInterval: CHECKPOINT_WINDOWS, checkpointReached };
    const { client } = this.connection;
    const live = client.subscribeToAll({ fromPosition, filter: filter as Filter });
    this.live = live;
    const fail = (error: unknown) => this.fail(error, client);
    live.on('data', (resolved: ResolvedEvent) => {
      if (this.live !== live) return;
      try {
        const event = this.recorded(resolved);
        // A server that begins with the event it was given, and not after it, must not make it come twice.
        if (!event || event.position <= this.delivered) return;
        this.delivered = event.position;
        this.failures = 0;
        this.arrived.push(event);
      } catch (error) {
        fail(error);
        return;
      }
      if (this.arrived.length >= BUFFERED_MAX) live.pause();
      this.growth.announce();
    });
    live.on('error', (error) => this.live === live && fail(error));
    live.on('end', () => this.live === live && fail(new db.UnavailableError({ message: 'It ended.' } as never)));
  }

  private fail(error: unknown, client: EventStoreDBClient): void {
    this.drop();
    this.fault = { error, client };
    this.growth.announce();
  }

  private drop(): void {
    const { live } = this;
    this.live = undefined;
    live?.unsubscribe().catch(() => {});
    live?.on('error', () => {});
  }
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => [clearTimeout(timer), resolve()], { once: true });
    if (signal.aborted) resolve();
  });
