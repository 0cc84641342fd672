import { setTimeout as sleep } from 'node:timers/promises';
import {
  asAgonError,
  type BatchHandler,
  type Bus,
  type Checkpoints,
  type Consumer,
  type ConsumerOptions,
  type EventStore,
  type RecordedEvent,
} from '../../kernel/index.js';
import { relay } from '../relay.js';

const BACKOFF_MS = { first: 25, max: 2_000 };

/** The bus of the embedded deployment: every consumer group tails the log itself. */
export class EmbeddedBus implements Bus {
  private readonly consumers = new Set<Consumer>();
  private readonly closing = new AbortController();

  constructor(
    private readonly store: EventStore,
    private readonly checkpoints: Checkpoints,
    private readonly onRetry: (group: string, error: unknown) => void = () => {},
  ) {}

  async consume(options: ConsumerOptions, handler: BatchHandler): Promise<Consumer> {
    const { group, types, batchSize } = options;
    const wanted = types && new Set(types);
    const stopping = new AbortController();
    const signal = AbortSignal.any([stopping.signal, this.closing.signal]);
    const consumer = await relay({
      store: this.store,
      checkpoints: this.checkpoints,
      group,
      ...(batchSize === undefined ? {} : { batchSize }),
      publish: async (events) => {
        const batch = wanted ? events.filter((event) => wanted.has(event.type)) : events;
        if (batch.length > 0) await this.deliver(options, batch, handler, signal);
      },
    });
    this.consumers.add(consumer);
    const stop = async () => {
      stopping.abort();
      await consumer.stop();
      this.consumers.delete(consumer);
    };
    // A stop that cuts a backoff short ends the subscription by an abort, and that is no failure.
    const done = consumer.done.catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    done.catch(() => {});
    return { ...consumer, done, stop };
  }

  async close(): Promise<void> {
    this.closing.abort();
    await Promise.all([...this.consumers].map((consumer) => consumer.stop()));
  }

  /** The whole batch first; if that fails, one event after the other, so that only the failing one waits or is buried. */
  private async deliver(
    options: ConsumerOptions,
    batch: readonly RecordedEvent[],
    handler: BatchHandler,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      return await handler(batch);
    } catch (error) {
      this.onRetry(options.group, error);
    }
    for (const event of batch) await this.deliverOne(options, event, handler, signal);
  }

  private async deliverOne(
    { group, attemptsMax = Number.POSITIVE_INFINITY }: ConsumerOptions,
    event: RecordedEvent,
    handler: BatchHandler,
    signal: AbortSignal,
  ): Promise<void> {
    for (let attempts = 1; ; attempts++) {
      try {
        return await handler([event]);
      } catch (error) {
        // Stopping leaves the checkpoint where it is: the event is delivered again after the next start.
        signal.throwIfAborted();
        this.onRetry(group, error);
        const { code, message } = asAgonError(error);
        // A log that cannot be written to is not the event's fault, and burying would lose what it stands for.
        if (attempts >= attemptsMax && !code.startsWith('STORE.')) {
          await this.checkpoints.bury({ group, position: event.position, eventId: event.id, code, message, attempts });
          return;
        }
        const waitMs = Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** Math.min(attempts - 1, 10));
        await sleep(waitMs, undefined, { signal });
      }
    }
  }
}
