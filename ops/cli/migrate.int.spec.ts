import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Endpoint, KEYS, openEndpoint } from '../../gateway/eventstore/endpoint.contract.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { chain, headAfter } from '../../services/kernel/fixtures.js';
import { type EventStore, NO_STREAM, type RecordedEvent, type SealedEvent, seal } from '../../services/kernel/index.js';
import { migrate } from './migrate.js';
import { verifyStore } from './verify.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-migrate-'));
const STREAMS = 40;
const EVENTS = 2_000;
let source: LmdbEventStore;

/** Streams that take turns, alone and several at once, as an arena's do. */
beforeAll(async () => {
  source = await LmdbEventStore.open(join(folder, 'source'));
  const heads = new Map<string, readonly SealedEvent[]>();
  for (let count = 0, turn = 0; count < EVENTS; turn++) {
    const stream = `note-${(turn * 7) % STREAMS}`;
    const before = headAfter(heads.get(stream) ?? []);
    const events = chain(stream, Math.min(1 + (turn % 4), EVENTS - count), { after: before });
    await source.append(stream, before.revision, events);
    heads.set(stream, events);
    count += events.length;
  }
});
afterAll(async () => {
  await source.close();
  rmSync(folder, { recursive: true, force: true });
});

let log: MemoryEventStore;
let endpoint: Endpoint;
let target: EventStoreDbStore;
const serve = async (store: EventStore) => {
  endpoint = await openEndpoint(store);
  target = await EventStoreDbStore.open(`esdb://any:${KEYS.writer}@${endpoint.address}?tls=false`, { attemptsMax: 1 });
};
beforeEach(async () => {
  log = new MemoryEventStore();
  await serve(log);
});
afterEach(async () => {
  await target.close();
  await endpoint.close();
});

const hashes = async (store: EventStore) => (await store.readAll()).map(({ stream, hash }) => `${stream} ${hash}`);
/** What the target is given beforehand, past every check. */
const seed = async (events: readonly RecordedEvent[]) => {
  for (const { position: _position, ...event } of events) await log.append(event.stream, event.revision - 1, [event]);
};

describe('moving a log to EventStoreDB', () => {
  describe('refuses, and changes nothing,', () => {
    const forge = (event: RecordedEvent, data: unknown) => {
      const { hash: _hash, position, ...rest } = event;
      return { ...seal({ ...rest, data }), position };
    };

    it('when an event over there is another one', async () => {
      const [first, second] = (await source.readAll({ limit: 2 })) as [RecordedEvent, RecordedEvent];
      await seed([first, forge(second, { revision: 7 })]);
      await expect(migrate(source, target)).rejects.toMatchObject({
        code: 'MIGRATE.DIFFERS',
        details: { position: 2, targetPosition: 2 },
        message: expect.stringMatching(/Move to an empty EventStoreDB/),
      });
      expect(await log.lastPosition()).toBe(2);
    });

    it('when one byte over there is another one, under the same hash', async () => {
      const page = await source.readAll({ limit: 30 });
      await seed(page.map((event, i) => (i === 17 ? { ...event, data: { revision: 7 } } : event)));
      await expect(migrate(source, target)).rejects.toMatchObject({
        code: 'LOG.BROKEN_CHAIN',
        details: { position: 18, eventId: page[17]?.id },
      });
      expect(await log.lastPosition()).toBe(30);
    });

    it('when one byte here is another one', async () => {
      const broken = new MemoryEventStore();
      const page = await source.readAll({ limit: 30 });
      for (const [i, { position: _position, ...event }] of page.entries()) {
        const stored = i === 17 ? { ...event, data: { revision: 7 } } : event;
        await broken.append(event.stream, event.revision - 1, [stored]);
      }
      await expect(migrate(broken, target)).rejects.toMatchObject({
        code: 'LOG.BROKEN_CHAIN',
        details: { position: 18 },
      });
      expect(await log.lastPosition()).toBeLessThan(18);
    });

    it('when the order over there is another one', async () => {
      const page = await source.readAll({ limit: 40 });
      const other = page.findIndex(({ stream, revision }) => stream !== page[0]?.stream && revision === 0);
      await seed([page[other] as RecordedEvent]);
      await expect(migrate(source, target)).rejects.toMatchObject({
        code: 'MIGRATE.DIFFERS',
        details: { position: 1 },
      });
    });

    it('when there is more over there', async () => {
      const little = new MemoryEventStore();
      await little.append('note-0', NO_STREAM, chain('note-0', 1));
      await log.append('note-0', NO_STREAM, chain('note-0', 1));
      await log.append('extra-1', NO_STREAM, chain('extra-1', 1));
      await expect(migrate(little, target)).rejects.toMatchObject({
        code: 'MIGRATE.DIFFERS',
        details: { targetPosition: 2 },
      });
    });
  });

  it('copies every event in its order, and says what it has verified', async () => {
    const { logHash } = await verifyStore(source);
    expect(await migrate(source, target)).toEqual({ events: EVENTS, resumedAt: 0, logHash, lastPosition: EVENTS });
    expect(await hashes(log)).toEqual(await hashes(source));
    expect(await verifyStore(target)).toMatchObject({ verified: true, events: EVENTS, logHash });
  });

  it('needs positions that grow, not that they are the same', async () => {
    await target.close();
    await endpoint.close();
    const sparse = new MemoryEventStore({ gaps: true });
    await serve(sparse);
    const { logHash } = await verifyStore(source);
    const lastPosition = 733 + 115 * (EVENTS - 1);
    expect(await migrate(source, target)).toMatchObject({ events: EVENTS, logHash, lastPosition });
    expect(await hashes(sparse)).toEqual(await hashes(source));
  });

  it.each([1, 1_001, EVENTS - 1])('goes on after an interruption at %d events', async (at) => {
    const stopping = new AbortController();
    const onProgress = (step: string, done: number) => step === 'copying' && done >= at && stopping.abort();
    await expect(migrate(source, target, { onProgress, signal: stopping.signal })).rejects.toThrow(/abort/i);
    const there = await log.lastPosition();
    expect(there).toBeGreaterThanOrEqual(at);
    expect(await hashes(log)).toEqual((await hashes(source)).slice(0, there));
    expect(await migrate(source, target)).toMatchObject({ events: EVENTS, resumedAt: there });
    expect(await hashes(log)).toEqual(await hashes(source));
  });

  it('goes on after the server went away in the middle', async () => {
    let closing: Promise<void> | undefined;
    const onProgress = (step: string, done: number) => {
      if (step === 'copying' && done > 700) closing ??= endpoint.close();
    };
    await expect(migrate(source, target, { onProgress })).rejects.toMatchObject({
      code: expect.stringMatching(/^STORE\./),
    });
    await closing;
    await target.close();
    const there = await log.lastPosition();
    expect(await hashes(log)).toEqual((await hashes(source)).slice(0, there));
    await serve(log);
    expect(await migrate(source, target)).toMatchObject({ events: EVENTS, resumedAt: there });
  });

  it('repeated, finds everything there', async () => {
    await migrate(source, target);
    expect(await migrate(source, target)).toMatchObject({ events: EVENTS, resumedAt: EVENTS });
    expect(await log.lastPosition()).toBe(EVENTS);
  });
});
