import { describe, expect, it } from 'vitest';
import { chain } from '../kernel/fixtures.js';
import { NO_STREAM } from '../kernel/index.js';
import { MemoryCheckpoints } from './bus/checkpoints.js';
import { relay } from './relay.js';
import { MemoryEventStore } from './store/memory.js';
import { until } from './store/subscription.contract.js';

describe('the relay', () => {
  const start = async (options: { count: number; checkpoints?: MemoryCheckpoints; gaps?: boolean }) => {
    const store = new MemoryEventStore({ gaps: options.gaps ?? false });
    const { checkpoints = new MemoryCheckpoints() } = options;
    await store.append('note-a', NO_STREAM, chain('note-a', options.count));
    const published: number[] = [];
    /** Where the checkpoint stood while each batch was published. */
    const meanwhile: number[] = [];
    const consumer = await relay({
      store,
      checkpoints,
      group: 'relay',
      batchSize: 2,
      publish: async (events) => {
        published.push(...events.map((event) => event.position));
        meanwhile.push(await checkpoints.load('relay'));
      },
    });
    return { store, checkpoints, published, meanwhile, consumer };
  };

  it('publishes the log in order, and its checkpoint follows', async () => {
    const { published, meanwhile, consumer, checkpoints, store } = await start({ count: 5 });
    await until(() => consumer.position() === 5);
    expect(published).toEqual([1, 2, 3, 4, 5]);
    expect(meanwhile).toEqual([0, 2, 4]);
    await consumer.stop();
    expect(await checkpoints.load('relay')).toBe(5);
    await store.close();
  });

  it('starts behind its checkpoint', async () => {
    const checkpoints = new MemoryCheckpoints();
    await checkpoints.save('relay', 3);
    const { published, consumer } = await start({ count: 5, checkpoints });
    await until(() => consumer.position() === 5);
    await consumer.stop();
    expect(published).toEqual([4, 5]);
  });

  it('begins anew where its checkpoint is no place of this log', async () => {
    const checkpoints = new MemoryCheckpoints();
    await checkpoints.save('relay', 800);
    const { published, consumer, store } = await start({ count: 3, checkpoints, gaps: true });
    await until(() => published.length === 3);
    await consumer.stop();
    expect(published).toEqual((await store.readAll()).map(({ position }) => position));
  });

  it('does not move past what could not be published, and goes on once it can', async () => {
    const store = new MemoryEventStore();
    const checkpoints = new MemoryCheckpoints();
    await store.append('note-a', NO_STREAM, chain('note-a', 5));
    const published: number[] = [];
    let away = true;
    let refusals = 0;
    const consumer = await relay({
      store,
      checkpoints,
      group: 'relay',
      batchSize: 2,
      onRetry: () => {
        refusals += 1;
      },
      publish: async (events) => {
        if (away && events.some((event) => event.position === 3)) throw new Error('The broker is away.');
        published.push(...events.map((event) => event.position));
      },
    });
    await until(() => refusals > 2);
    expect(published).toEqual([1, 2]);
    expect([consumer.position(), await checkpoints.load('relay')]).toEqual([2, 2]);
    away = false;
    await until(() => consumer.position() === 5);
    expect(published).toEqual([1, 2, 3, 4, 5]);
    await consumer.stop();
  });
});
