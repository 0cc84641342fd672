import type { BatchHandler, Bus, Checkpoints, Consumer, ConsumerOptions, EventStore } from '../../kernel/index.js';
import { relay } from '../relay.js';
import { deliver } from './delivery.js';

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
    const { checkpoints, onRetry } = this;
    const delivery = { options, handler, signal, onRetry, bury: checkpoints.bury.bind(checkpoints) };
    const consumer = await relay({
      store: this.store,
      checkpoints,
      group,
      ...(batchSize === undefined ? {} : { batchSize }),
      onRetry: (error) => onRetry(group, error),
      publish: async (events) => {
        const batch = wanted ? events.filter((event) => wanted.has(event.type)) : events;
        if (batch.length > 0) await deliver(delivery, batch);
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
}
