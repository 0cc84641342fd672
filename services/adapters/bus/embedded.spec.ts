import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { chain } from '../../kernel/fixtures.js';
import { AgonError, NO_STREAM } from '../../kernel/index.js';
import { LmdbEventStore } from '../store/lmdb.js';
import { MemoryEventStore } from '../store/memory.js';
import { until } from '../store/subscription.contract.js';
import { busContract } from './bus.contract.js';
import { LmdbCheckpoints, MemoryCheckpoints } from './checkpoints.js';
import { EmbeddedBus } from './embedded.js';

const root = mkdtempSync(join(tmpdir(), 'agon-bus-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

busContract('embedded, in memory', async () => {
  const store = new MemoryEventStore();
  const checkpoints = new MemoryCheckpoints();
  return {
    store,
    checkpoints,
    start: (other = checkpoints) => new EmbeddedBus(store, other),
    close: () => store.close(),
  };
});

busContract('embedded, on disk', async () => {
  const folder = mkdtempSync(join(root, 'data-'));
  const store = await LmdbEventStore.open(join(folder, 'log'));
  const checkpoints = new LmdbCheckpoints(join(folder, 'checkpoints.mdb'));
  return {
    store,
    checkpoints,
    start: (other = checkpoints) => new EmbeddedBus(store, other),
    close: async () => {
      await store.close();
      await checkpoints.close();
    },
  };
});

describe('the embedded bus', () => {
  it('tells its owner of every failed delivery', async () => {
    const store = new MemoryEventStore();
    const told: string[] = [];
    const bus = new EmbeddedBus(store, new MemoryCheckpoints(), (group, error) => told.push(`${group}: ${error}`));
    await store.append('note-a', NO_STREAM, chain('note-a', 1));
    const consumer = await bus.consume({ group: 'g', attemptsMax: 2 }, async () => {
      throw new Error('no');
    });
    await until(() => consumer.position() === 1);
    await bus.close();
    expect(told).toEqual(['g: Error: no', 'g: Error: no', 'g: Error: no']);
  });

  it('ends a consumer whose log breaks, with the reason', async () => {
    const store = new MemoryEventStore();
    const bus = new EmbeddedBus(store, new MemoryCheckpoints());
    await store.append('note-a', NO_STREAM, chain('note-a', 1));
    store.readAll = async () => {
      throw new AgonError('STORE.CORRUPT', 'The log broke.');
    };
    const consumer = await bus.consume({ group: 'g' }, async () => {});
    await expect(consumer.done).rejects.toThrow('The log broke.');
    await bus.close();
  });

  it('starts over from a checkpoint that went back, as that of a database after a crash does', async () => {
    const store = new MemoryEventStore();
    const checkpoints = new MemoryCheckpoints();
    const bus = new EmbeddedBus(store, checkpoints);
    await store.append('note-a', NO_STREAM, chain('note-a', 6));
    const seen: number[] = [];
    let lost = false;
    const consumer = await bus.consume({ group: 'g', batchSize: 2 }, async (events) => {
      if (!lost && events[0]?.position === 5) {
        lost = true;
        await checkpoints.save('g', 2);
        throw new AgonError('CHECKPOINT.MOVED', 'The database forgot what came after position 2.');
      }
      seen.push(...events.map(({ position }) => position));
    });
    await expect.poll(() => consumer.position()).toBe(6);
    expect(seen).toEqual([1, 2, 3, 4, 3, 4, 5, 6]);
    await bus.close();
  });
});
