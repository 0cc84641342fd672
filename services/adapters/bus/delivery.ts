import { setTimeout as sleep } from 'node:timers/promises';
import {
  asAgonError,
  type BatchHandler,
  type ConsumerOptions,
  type DeadLetter,
  isAgonError,
  type RecordedEvent,
} from '../../kernel/index.js';
import { backoffMs } from '../relay.js';

/** How a bus hands events to a group, whatever carried them. */
export interface Delivery {
  readonly options: ConsumerOptions;
  readonly handler: BatchHandler;
  /** Fires when the consumer is to stop: what failed then is neither tried again nor buried. */
  readonly signal: AbortSignal;
  bury(deadLetter: DeadLetter, event: RecordedEvent): Promise<void>;
  onRetry(group: string, error: unknown): void;
}

/** The whole batch first; if that fails, one event after the other, so that only the failing one waits or is buried. */
export async function deliver(delivery: Delivery, batch: readonly RecordedEvent[]): Promise<void> {
  const { options, handler, signal, onRetry } = delivery;
  try {
    return await handler(batch);
  } catch (error) {
    signal.throwIfAborted();
    if (hasMoved(error)) throw error;
    onRetry(options.group, error);
  }
  for (const event of batch) await deliverOne(delivery, event);
}

/** The log goes on without that stream, and so can everybody else. */
const OF_ONE_STREAM = new Set(['STORE.DELETED', 'STORE.TRUNCATED']);

/** False when the event was put aside. */
export async function deliverOne(delivery: Delivery, event: RecordedEvent): Promise<boolean> {
  const { handler, signal, onRetry } = delivery;
  const { group, attemptsMax = Number.POSITIVE_INFINITY } = delivery.options;
  for (let attempts = 1; ; attempts++) {
    try {
      await handler([event]);
      return true;
    } catch (error) {
      // Stopping leaves the checkpoint where it is: the event is delivered again after the next start.
      signal.throwIfAborted();
      if (hasMoved(error)) throw error;
      onRetry(group, error);
      const { code, message } = asAgonError(error);
      // A log that cannot be written to is not the event's fault, and burying would lose what it stands for.
      if (attempts >= attemptsMax && (!code.startsWith('STORE.') || OF_ONE_STREAM.has(code))) {
        await delivery.bury({ group, position: event.position, eventId: event.id, code, message, attempts }, event);
        return false;
      }
      await sleep(backoffMs(attempts), undefined, { signal });
    }
  }
}

/** The checkpoint is not where the consumer left it: these events are the wrong ones, and the bus starts over. */
const hasMoved = (error: unknown) => isAgonError(error, 'CHECKPOINT.MOVED');
