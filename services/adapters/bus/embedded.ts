import { setTimeout as sleep } from 'node:timers/promises';
import {
  asAgonError,
  type BatchHandler,
  type Bus,
  type Checkpoints,
  type Consumer,
  type ConsumerOptions,
  type EventStore,
  isAgonError,
  type RecordedEvent,
} from '../../kernel/index.js';
import { backoffMs, relay } from '../relay.js';

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
      onRetry: (error) => this.onRetry(group, error),
      publish: async (events) => {
        const batch = wanted ? events.filter((event) => wanted.has(event.type)) : events;
        if (batch.length > 0) await this.deliver(options, batch, handler, signal);
      },
    });
    const stop = async () => {
      stopping.abort();
      await consumer.stop();
      this.consumers.delete(stoppable);
    };
    const stoppable = { ...consumer, stop };
    this.consumers.add(stoppable);
    return stoppable;
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
      signal.throwIfAborted();
      if (hasMoved(error)) throw error;
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
        if (hasMoved(error)) throw error;
        this.onRetry(group, error);
        const { code, message } = asAgonError(error);
        // A log that cannot be written to is not the event's fault, and burying would lose what it stands for.
        if (attempts >= attemptsMax && !code.startsWith('STORE.')) {
          await this.checkpoints.bury({ group, position: event.position, eventId: event.id, code, message, attempts });
          return;
        }
        await sleep(backoffMs(attempts), undefined, { signal });
      }
    }
  }
}

/** The checkpoint is not where the consumer left it: these events are the wrong ones, and the relay starts over. */
const hasMoved = (error: unknown) => isAgonError(error, 'CHECKPOINT.MOVED');
