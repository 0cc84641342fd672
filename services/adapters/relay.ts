import type { BatchHandler, Checkpoints, Consumer, EventStore } from '../kernel/index.js';

export interface RelayOptions {
  readonly store: EventStore;
  readonly checkpoints: Checkpoints;
  /** Names the checkpoint. */
  readonly group: string;
  readonly batchSize?: number;
  /** Takes over a batch. The checkpoint moves when it resolves; a crash in between delivers the batch again. */
  readonly publish: BatchHandler;
}

/**
 * Tails the log from a durable checkpoint and hands every event on, at least once and in order. In the embedded
 * deployment each consumer group is one relay whose `publish` is the consumer; in a cluster one relay publishes to
 * Kafka. Nobody writes to the store and to a bus in one breath.
 */
export async function relay(options: RelayOptions): Promise<Consumer> {
  const { store, checkpoints, group, batchSize = 256, publish } = options;
  let position = await checkpoints.load(group);
  const subscription = store.subscribe({ after: position, batchSize }, async (events) => {
    await publish(events);
    position = events.at(-1)?.position ?? position;
    await checkpoints.save(group, position);
  });
  return { done: subscription.done, stop: () => subscription.stop(), position: () => position };
}
