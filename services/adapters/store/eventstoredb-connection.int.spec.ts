import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type Endpoint, KEYS, openEndpoint, urlOf } from '../../../gateway/eventstore/endpoint.contract.js';
import { verifyStore } from '../../../ops/cli/verify.js';
import { TamperedStore } from '../../../ops/harness/tampered-store.js';
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

  it('is looked for again after nobody was found in a whole cluster', async () => {
    const log = kept(new MemoryEventStore({ gaps: true }));
    let endpoint = await openEndpoint(log);
    const port = Number(endpoint.address.split(':')[1]);
    const url = `esdb+discover://any:${KEYS.writer}@${endpoint.address}?tls=false&maxDiscoverAttempts=2`;
    const store = kept(await EventStoreDbStore.open(url, { attemptsMax: 2 }));
    const seen: string[] = [];
    const subscription = store.subscribe({ after: 0 }, async (events) => void seen.push(...events.map(({ id }) => id)));
    const all = chain('note-a', 4);
    await store.append('note-a', NO_STREAM, all.slice(0, 1));
    await endpoint.close();
    for (const _try of [1, 2, 3]) {
      await expect(store.append('note-a', 0, all.slice(1, 2))).rejects.toMatchObject({ code: 'STORE.UNAVAILABLE' });
    }
    await expect(store.readAll()).rejects.toMatchObject({ code: 'STORE.UNAVAILABLE' });
    endpoint = kept(await openEndpoint(log, { port }));
    await store.append('note-a', 0, all.slice(1, 2));
    await store.append('note-a', 1, all.slice(2, 4));
    await until(() => seen.length === 4);
    expect(seen).toEqual(all.map(({ id }) => id));
    await subscription.stop();
  });

  describe('to a server on which others remove things', () => {
    let endpoint: Endpoint;
    const tampered = async () => {
      const log = kept(new TamperedStore(new MemoryEventStore({ gaps: true })));
      endpoint = kept(await openEndpoint(log));
      const open = async () => kept(await EventStoreDbStore.open(urlOf(endpoint)));
      const store = await open();
      await store.append('note-a', NO_STREAM, chain('note-a', 3));
      await store.append('note-b', NO_STREAM, chain('note-b', 3));
      return { log, store, open };
    };
    const named = (code: string, stream = 'note-a') => ({ code, message: expect.stringContaining(stream) });

    it('names a stream that was deleted, before and after it was begun anew', async () => {
      const { log, store, open } = await tampered();
      await log.delete('note-a');
      await expect(store.readStream('note-a')).rejects.toMatchObject(named('STORE.DELETED'));
      await expect(store.head('note-a')).rejects.toMatchObject(named('STORE.DELETED'));
      // Nobody who has not seen it can tell it from one that never was, until it answers.
      const another = await open();
      expect(await another.head('note-a')).toBeUndefined();
      const anew = chain('note-a', 1, { writer: 'anew' });
      await expect(another.append('note-a', NO_STREAM, anew)).rejects.toMatchObject(named('STORE.DELETED'));
      expect(await store.readStream('note-b')).toHaveLength(3);
    });

    it('names a stream that was deleted for good', async () => {
      const { log, store } = await tampered();
      await log.tombstone('note-a');
      const more = chain('note-a', 1, { after: headAfter(chain('note-a', 3)) });
      for (const use of [store.readStream('note-a'), store.head('note-a'), store.append('note-a', 2, more)]) {
        await expect(use).rejects.toMatchObject(named('STORE.DELETED'));
      }
    });

    it('names a stream whose beginning was cut, and reads what is left of it', async () => {
      const { log, store } = await tampered();
      await log.cut('note-a', 2);
      await expect(store.readStream('note-a')).rejects.toMatchObject(named('STORE.TRUNCATED'));
      await expect(store.readStream('note-a', { fromRevision: 1 })).rejects.toMatchObject(named('STORE.TRUNCATED'));
      const backwards = store.readStream('note-a', { direction: 'backwards', limit: 2 });
      await expect(backwards).rejects.toMatchObject(named('STORE.TRUNCATED'));
      expect(await store.readStream('note-a', { fromRevision: 2 })).toHaveLength(1);
      expect(await store.head('note-a')).toMatchObject({ revision: 2 });
      log.restore();
      expect(await store.readStream('note-a')).toHaveLength(3);
    });

    it('tells all that was removed, and reads on over what the server notes of it', async () => {
      const { log, store } = await tampered();
      const mine = kept(await EventStoreDbStore.open(`${urlOf(endpoint)}&streamPrefix=note-`));
      expect(await store.removed()).toEqual([]);
      await log.delete('note-a');
      await log.tombstone('note-b');
      await log.append('note-c', NO_STREAM, chain('note-c', 2));
      await log.cut('note-c', 1);
      const removed = [named('STORE.DELETED', 'note-b'), named('STORE.DELETED'), named('STORE.TRUNCATED', 'note-c')];
      expect(await store.removed()).toMatchObject(removed);
      expect(await mine.removed()).toHaveLength(3);
      for (const limit of [1, 2, 100]) {
        const seen: string[] = [];
        for (let after = 0; ; ) {
          const page = await mine.readAll({ after, limit });
          seen.push(...page.map(({ stream, revision }) => `${stream} ${revision}`));
          if (page.length === 0) break;
          after = page.at(-1)?.position ?? 0;
        }
        expect(seen).toEqual(['a 0', 'a 1', 'a 2', 'b 0', 'b 1', 'b 2', 'c 0', 'c 1']);
      }
      expect(await verifyStore(store)).toMatchObject({ verified: false, fault: { code: 'STORE.DELETED' } });
      log.restore();
      expect(await verifyStore(store)).toMatchObject({ verified: true });
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
    ['kurrentdb://h:1?streamPrefix=x', { url: 'esdb://h:1', prefix: 'x' }],
    [
      'kurrentdb+discover://h:1?nodePreference=Leader',
      { url: 'esdb+discover://h:1?nodePreference=Leader', prefix: '' },
    ],
  ])('takes its own option out of %s', (url, expected) => {
    expect(addressOf(url)).toEqual(expected);
    expect(shownAddress(url)).not.toMatch(/a:b/);
  });

  it.each(['http://h:1', 'esdb://', 'esdb://h:port', 'esdb://h:1?nodePreference=follower'])(
    'refuses the address %s',
    async (url) => {
      await expect(EventStoreDbStore.open(url)).rejects.toMatchObject({ code: 'CONFIG.INVALID' });
    },
  );
});
