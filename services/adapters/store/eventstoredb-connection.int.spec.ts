import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { KEYS, openEndpoint, urlOf } from '../../../gateway/eventstore/endpoint.contract.js';
import { chain, headAfter } from '../../kernel/fixtures.js';
import { NO_STREAM, type RecordedEvent, type SealedEvent, seal } from '../../kernel/index.js';
import { EventStoreDbStore } from './eventstoredb.js';
import { addressOf, shownAddress } from './eventstoredb-address.js';
import { MemoryEventStore } from './memory.js';
import { fillWithMany, MANY, stalling, until } from './subscription.contract.js';

describe('eventstoredb, over a connection', () => {
  const opened: { close(): Promise<void> }[] = [];
  const kept = <T extends { close(): Promise<void> }>(part: T): T => {
    opened.unshift(part);
    return part;
  };
  afterEach(async () => {
    for (const part of opened.splice(0)) await part.close();
  });

  describe('that breaks', () => {
    it('goes on with a subscription where it was, once each and in order', async () => {
      const log = kept(new MemoryEventStore());
      let door = await openEndpoint(log);
      const port = Number(door.address.split(':')[1]);
      const store = kept(await EventStoreDbStore.open(urlOf(door)));
      const seen: RecordedEvent[] = [];
      const subscription = store.subscribe({ after: 0, batchSize: 3 }, async (events) => void seen.push(...events));
      for (let round = 0; round < 3; round++) {
        const stream = `note-${round}`;
        await log.append(stream, NO_STREAM, chain(stream, 5));
        await until(() => seen.at(-1)?.position === 10 * round + 5);
        await door.close();
        await log.append(`late-${round}`, NO_STREAM, chain(`late-${round}`, 5));
        door = await openEndpoint(log, { port });
        await until(() => seen.at(-1)?.position === 10 * round + 10);
      }
      await subscription.stop();
      await door.close();
      expect(seen).toEqual(await log.readAll());
    });

    it('brings again what was on its way to a follower that stood still when it broke', async () => {
      const log = kept(new MemoryEventStore());
      await fillWithMany(log);
      let door = await openEndpoint(log);
      const port = Number(door.address.split(':')[1]);
      const store = kept(await EventStoreDbStore.open(urlOf(door)));
      const seen: number[] = [];
      const stall = stalling(3, async () => {
        await sleep(250);
        await door.close();
        door = await openEndpoint(log, { port });
      });
      const subscription = store.subscribe({ after: 0, batchSize: 1 }, async ([event]) => {
        seen.push(event?.position ?? 0);
        await stall(seen.length);
      });
      await until(() => seen.at(-1) === MANY);
      await subscription.stop();
      await door.close();
      expect(seen).toEqual(Array.from({ length: MANY }, (_, i) => i + 1));
    });

    it('appends and reads as soon as somebody answers again', async () => {
      const log = kept(new MemoryEventStore());
      let door = await openEndpoint(log);
      const port = Number(door.address.split(':')[1]);
      const store = kept(await EventStoreDbStore.open(urlOf(door)));
      await store.append('note-a', NO_STREAM, chain('note-a', 1));
      await door.close();
      const all = chain('note-a', 2);
      const waiting = Promise.all([store.append('note-a', 0, all.slice(1)), store.readStream('note-a', { limit: 1 })]);
      door = kept(await openEndpoint(log, { port }));
      await expect(waiting).resolves.toMatchObject([{ revision: 1, position: 2 }, [{ revision: 0 }]]);
    });

    it('refuses with a code when nobody comes back, and shows no key', async () => {
      const log = kept(new MemoryEventStore());
      const door = await openEndpoint(log);
      await door.close();
      const opening = EventStoreDbStore.open(urlOf(door), { attemptsMax: 2 });
      await expect(opening).rejects.toMatchObject({
        code: 'STORE.UNAVAILABLE',
        message: expect.not.stringContaining(KEYS.writer),
      });
    });
  });

  it('sends nothing that breaks the chain of a stream: no server would notice', async () => {
    const door = await openEndpoint(kept(new MemoryEventStore()));
    const store = kept(await EventStoreDbStore.open(urlOf(door), { attemptsMax: 1 }));
    const [first, second] = chain('note-a', 2) as [SealedEvent, SealedEvent];
    await store.append('note-a', NO_STREAM, [first]);
    await door.close();
    const other = { ...second, prevHash: 'f'.repeat(64) };
    await expect(store.append('note-a', 0, [other])).rejects.toMatchObject({ code: 'STORE.BROKEN_CHAIN' });
    const begun = { ...first, prevHash: 'f'.repeat(64), stream: 'note-b' };
    await expect(store.append('note-b', NO_STREAM, [begun])).rejects.toMatchObject({ code: 'STORE.BROKEN_CHAIN' });
  });

  it('ends a subscription that meets what is not an event of ours', async () => {
    const log = kept(new MemoryEventStore());
    const door = kept(await openEndpoint(log));
    const store = kept(await EventStoreDbStore.open(urlOf(door)));
    const [event] = chain('note-a', 1) as [SealedEvent];
    await log.append('note-a', NO_STREAM, [{ ...event, meta: { ...event.meta, inputHash: 'none' } }]);
    const subscription = store.subscribe({ after: 0 }, async () => {});
    await expect(subscription.done).rejects.toMatchObject({ code: 'STORE.CORRUPT', details: { position: 1 } });
    await expect(store.readAll()).rejects.toMatchObject({ code: 'STORE.CORRUPT' });
  });

  it.each([
    ['a key that nobody has', 'wrong', 'STORE.ACCESS_DENIED'],
    ['no key', undefined, 'STORE.ACCESS_DENIED'],
  ])('is refused with %s', async (_what, key, code) => {
    const door = kept(await openEndpoint(kept(new MemoryEventStore())));
    const url = key ? urlOf(door, key) : `esdb://${door.address}?tls=false`;
    await expect(EventStoreDbStore.open(url)).rejects.toMatchObject({ code });
  });

  it('reads with a key for reading, and appends nothing with it', async () => {
    const log = kept(new MemoryEventStore());
    const door = kept(await openEndpoint(log));
    const store = kept(await EventStoreDbStore.open(urlOf(door, KEYS.reader)));
    const appending = store.append('note-a', NO_STREAM, chain('note-a', 1));
    await expect(appending).rejects.toMatchObject({ code: 'STORE.ACCESS_DENIED' });
    expect(await log.lastPosition()).toBe(0);
    await log.append('note-a', NO_STREAM, chain('note-a', 2));
    expect(await store.readAll()).toHaveLength(2);
  });

  it('sees a stream that another process has continued', async () => {
    const log = kept(new MemoryEventStore());
    const door = kept(await openEndpoint(log));
    const [ours, theirs] = [
      kept(await EventStoreDbStore.open(urlOf(door))),
      kept(await EventStoreDbStore.open(urlOf(door))),
    ];
    const events = chain('note-a', 4);
    await ours.append('note-a', NO_STREAM, events.slice(0, 1));
    await theirs.append('note-a', 0, events.slice(1, 2));
    const late = chain('note-a', 1, { after: headAfter(events.slice(0, 1)), writer: 'late' });
    await expect(ours.append('note-a', 0, late)).rejects.toMatchObject({
      code: 'STORE.REVISION_CONFLICT',
      details: { actualRevision: 1 },
    });
    await expect(ours.append('note-a', 1, events.slice(2, 3))).resolves.toEqual({ revision: 2, position: 3 });
    await expect(theirs.append('note-a', 2, events.slice(3))).resolves.toEqual({ revision: 3, position: 4 });
  });

  it('tells two processes apart that carry out one command with another result', async () => {
    const log = kept(new MemoryEventStore());
    const door = kept(await openEndpoint(log));
    const [one, other] = [
      kept(await EventStoreDbStore.open(urlOf(door))),
      kept(await EventStoreDbStore.open(urlOf(door))),
    ];
    const [event] = chain('note-a', 1) as [SealedEvent];
    const { hash: _hash, ...rest } = event;
    const later = seal({ ...rest, time: '2027-01-01T00:00:00.000Z' });
    await one.append('note-a', NO_STREAM, [event]);
    await expect(other.append('note-a', NO_STREAM, [later])).rejects.toMatchObject({ code: 'STORE.REVISION_CONFLICT' });
    await expect(other.append('note-a', NO_STREAM, [event])).resolves.toEqual({ revision: 0, position: 1 });
  });

  it('asks only for what bears its prefix, on a server that others use as well', async () => {
    const log = kept(new MemoryEventStore());
    const door = kept(await openEndpoint(log));
    const store = kept(await EventStoreDbStore.open(`${urlOf(door)}&streamPrefix=agon.`));
    await log.append('other-a', NO_STREAM, chain('other-a', 2));
    expect(await store.lastPosition()).toBe(0);
    expect(await store.readAll()).toEqual([]);
  });

  it.each([
    ['esdb://a:b@h:1?tls=false&streamPrefix=x.', { url: 'esdb://a:b@h:1?tls=false', prefix: 'x.' }],
    ['esdb://h:1?streamPrefix=x%2B&tls=false', { url: 'esdb://h:1?tls=false', prefix: 'x+' }],
    ['esdb://h:1?streamPrefix=x', { url: 'esdb://h:1', prefix: 'x' }],
    ['esdb+discover://h:1', { url: 'esdb+discover://h:1', prefix: '' }],
  ])('takes its own option out of %s', (url, expected) => {
    expect(addressOf(url)).toEqual(expected);
    expect(shownAddress(url)).not.toMatch(/a:b/);
  });

  it.each(['http://h:1', 'esdb://', 'esdb://h:port'])('refuses the address %s', async (url) => {
    await expect(EventStoreDbStore.open(url)).rejects.toMatchObject({ code: 'CONFIG.INVALID' });
  });
});
