import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryEventStore } from '../adapters/store/memory.js';
import { Add, chain, counter, headAfter, metaOf } from './fixtures.js';
import { Folds, pagesOf } from './folds.js';
import { createHandle } from './handle.js';
import { storeLimits } from './ports.js';

describe('load()', () => {
  let store: MemoryEventStore;
  let reads: number;
  beforeEach(() => {
    store = new MemoryEventStore();
    reads = 0;
    const readStream = store.readStream.bind(store);
    store.readStream = (...asked) => {
      reads += 1;
      return readStream(...asked);
    };
  });
  const add = (id: string, by: number, counterId = 'a') => new Add({ counterId, by }, metaOf(id));

  it('knows a stream that nobody wrote to as the initial state', async () => {
    const { load } = new Folds({ store });
    expect(await load(counter, 'a', 'tail')).toEqual({ state: { total: 0 }, revision: -1 });
  });

  it('sees with "tail" what another process appended, and with "cached" what this one knows', async () => {
    const { load } = new Folds({ store });
    const elsewhere = createHandle({ store });
    await elsewhere(counter, add('c1', 1));
    expect(await load(counter, 'a', 'cached')).toEqual({ state: { total: 1 }, revision: 0 });
    await elsewhere(counter, add('c2', 2));
    const before = reads;
    expect(await load(counter, 'a', 'cached')).toEqual({ state: { total: 1 }, revision: 0 });
    expect(reads).toBe(before);
    expect(await load(counter, 'a', 'tail')).toEqual({ state: { total: 3 }, revision: 1 });
  });

  it('shares what it folds with handle(), and takes each event in once, however they overlap', async () => {
    const folds = new Folds({ store });
    const handle = createHandle({ store, folds });
    const elsewhere = createHandle({ store });
    for (let i = 0; i < 20; i++) {
      const looks = [1, 2, 3].map(() => folds.load(counter, 'a', 'tail'));
      await Promise.all([handle(counter, add(`here-${i}`, 1)), elsewhere(counter, add(`there-${i}`, 1)), ...looks]);
    }
    expect(await folds.load(counter, 'a', 'tail')).toEqual({ state: { total: 40 }, revision: 39 });
    await expect(handle(counter, add('here-3', 1))).resolves.toMatchObject({ repeated: true });
  });

  it('reads long streams page by page, and reads no event twice', async () => {
    const events = chain('counter-a', storeLimits.pageEventsMax + 5, {
      data: () => ({ counterId: 'a', by: 1 }),
    }).map((event) => ({ ...event, type: 'Added' }));
    const pages = [events.slice(0, storeLimits.pageEventsMax), events.slice(storeLimits.pageEventsMax)];
    const long = {
      readStream: async (_: string, { fromRevision = 0 } = {}) => pages[fromRevision === 0 ? 0 : 1] ?? [],
    };
    const { load } = new Folds({ store: long as never });
    expect(await load(counter, 'a', 'tail')).toMatchObject({ state: { total: events.length } });
    const seen = [];
    for await (const page of pagesOf(long as never, 'counter-a')) seen.push(page.length);
    expect(seen).toEqual([storeLimits.pageEventsMax, 5]);
    expect(headAfter(events).revision).toBe(events.length - 1);
  });

  it('lets go of what was used least recently, by the bytes of its events', async () => {
    const folds = new Folds({ store, cacheBytesMax: 3_000 });
    const handle = createHandle({ store, folds });
    for (const name of ['a', 'b', 'c']) await handle(counter, add(`first-${name}`, 1, name));
    const isKept = (name: string) => folds.cached(`counter-${name}`) !== undefined;
    expect(['a', 'b', 'c'].filter(isKept)).toEqual(['b', 'c']);
    for (let i = 0; i < 6; i++) await handle(counter, add(`more-${i}`, 1, 'c'));
    expect(['a', 'b', 'c'].filter(isKept)).toEqual(['c']);
    expect(await folds.load(counter, 'b', 'cached')).toEqual({ state: { total: 1 }, revision: 0 });
  });
});
