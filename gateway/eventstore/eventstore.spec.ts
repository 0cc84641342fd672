import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { connect as tlsConnect } from 'node:tls';
import { promisify } from 'node:util';
import db, { type EventStoreDBClient, type JSONType } from '@eventstore/db-client';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { verifyStore } from '../../ops/cli/verify.js';
import { toWire } from '../../proto/eventstore.js';
import type { Tls } from '../../proto/serve.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { connect as connectTo } from '../../services/adapters/store/eventstoredb-client.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { until } from '../../services/adapters/store/subscription.contract.js';
import { chain } from '../../services/kernel/fixtures.js';
import { manualClock, NO_STREAM, recomputeHash, type SealedEvent } from '../../services/kernel/index.js';
import { ownCertificates } from './certificate.js';
import { type Endpoint, KEYS, openEndpoint } from './endpoint.contract.js';
import { linearTest } from './filter.js';
import { reachedBy } from './server.js';

const { jsonEvent, binaryEvent, eventTypeFilter, streamNameFilter } = db;
const folder = mkdtempSync(join(tmpdir(), 'agon-door-'));
const certFile = join(folder, 'door.crt');
const tls = ownCertificates(certFile, join(folder, 'door.key'), '127.0.0.1', Date.now);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const TIME = '2026-05-01T10:00:00.000Z';
const clock = manualClock(TIME);
let log: MemoryEventStore;
let door: Endpoint;
let writer: EventStoreDBClient;
let reader: EventStoreDBClient;
const clients: EventStoreDBClient[] = [];

const connect = (key: string, scheme = 'esdb') => {
  const client = connectTo({ url: `${scheme}://any:${key}@${door.address}?tlsCAFile=${certFile}`, prefix: '' });
  clients.push(client);
  return client;
};

beforeEach(async () => {
  log = new MemoryEventStore();
  door = await openEndpoint(log, { tls, clock });
  writer = connect(KEYS.writer);
  reader = connect(KEYS.reader);
});

afterEach(async () => {
  for (const client of clients.splice(0)) await client.dispose();
  await door.close();
  await log.close();
});

const added = (by: number, id?: string) => jsonEvent({ type: 'Added', data: { by }, ...(id ? { id } : {}) });
const collected = async <T>(stream: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = [];
  for await (const item of stream) all.push(item);
  return all;
};
const fill = async (stream: string, count: number) => {
  const events = chain(stream, count);
  for (let at = 0; at < count; at += 100) await log.append(stream, at - 1, events.slice(at, at + 100));
};
const sealedJson = (event: SealedEvent) =>
  jsonEvent({ id: event.id, type: event.type, ...(toWire(event) as { data: JSONType; metadata: object }) });

describe("the official client's appends", () => {
  it('come back as they were sent, in a log that verifies', async () => {
    const event = jsonEvent({
      type: 'Added',
      data: { by: 1, text: 'é🤖' },
      metadata: { tenant: 'a', $correlationId: 'order-7' },
    });
    const result = await writer.appendToStream('note-1', [event, added(2)], { expectedRevision: 'no_stream' });
    expect(result).toMatchObject({ success: true, nextExpectedRevision: 1n, position: { commit: 2n, prepare: 2n } });
    const [first, second] = await collected(reader.readStream('note-1'));
    expect(first?.event).toMatchObject({
      id: event.id,
      type: 'Added',
      streamId: 'note-1',
      revision: 0n,
      isJson: true,
      created: new Date(TIME),
      data: { by: 1, text: 'é🤖' },
      metadata: { tenant: 'a', $correlationId: 'order-7', actor: { id: 'ada', role: 'operator' } },
      position: { commit: 1n, prepare: 1n },
    });
    expect(second?.event).toMatchObject({ data: { by: 2 }, revision: 1n });
    const recorded = await log.readAll();
    expect(recorded.map(recomputeHash)).toEqual(recorded.map(({ hash }) => hash));
    expect(await verifyStore(log)).toMatchObject({ verified: true, events: 2 });
  });

  it.each([
    ['one after the other, on one call', {}],
    ['each on a call of its own', { credentials: { username: 'any', password: KEYS.writer } }],
  ])('expect revisions: %s', async (_how, options) => {
    const append = (expectedRevision: 'any' | 'no_stream' | 'stream_exists' | bigint) =>
      writer.appendToStream('note-1', added(1), { expectedRevision, ...options });
    await expect(append('stream_exists')).rejects.toMatchObject({ type: 'wrong-expected-version' });
    await expect(append(3n)).rejects.toMatchObject({ type: 'wrong-expected-version', actualVersion: 'no_stream' });
    await append('no_stream');
    await append('stream_exists');
    await append('any');
    await append(2n);
    const wrong = { type: 'wrong-expected-version', streamName: 'note-1', actualVersion: 3n };
    await expect(append('no_stream')).rejects.toMatchObject(wrong);
    await expect(append(1n)).rejects.toMatchObject({ ...wrong, expectedVersion: 1n });
    expect(await log.head('note-1')).toMatchObject({ revision: 3 });
  });

  it('are written once, however often they are sent', async () => {
    const events = [added(1), added(2)];
    const first = await writer.appendToStream('note-1', events, { expectedRevision: 'no_stream' });
    clock.advance(1_000);
    expect(await writer.appendToStream('note-1', events, { expectedRevision: 'no_stream' })).toEqual(first);
    expect(await writer.appendToStream('note-1', events, { expectedRevision: 'any' })).toEqual(first);
    const forged = events.map((event) => ({ ...event, data: { by: 99 } }));
    const again = writer.appendToStream('note-1', forged, { expectedRevision: 'no_stream' });
    await expect(again).rejects.toMatchObject({ type: 'wrong-expected-version' });
    expect(await log.lastPosition()).toBe(2);
  });

  it('of nothing are acknowledged where their expectation holds', async () => {
    await fill('note-1', 2);
    const nothing = (stream: string, expectedRevision: 'no_stream' | bigint) =>
      writer.appendToStream(stream, [], { expectedRevision });
    expect(await nothing('note-1', 1n)).toMatchObject({ nextExpectedRevision: 1n });
    await nothing('note-2', 'no_stream');
    await expect(nothing('note-1', 'no_stream')).rejects.toMatchObject({ type: 'wrong-expected-version' });
    expect(await log.lastPosition()).toBe(2);
  });

  it('queue behind each other where they expect nothing', async () => {
    // The client's first append opens the call for all others, and is sent after them.
    await writer.appendToStream('note-1', added(0));
    await Promise.all(Array.from({ length: 99 }, (_, i) => writer.appendToStream('note-1', added(i + 1))));
    const events = await log.readStream('note-1');
    expect(events.map(({ data }) => (data as { by: number }).by)).toEqual(Array.from({ length: 100 }, (_, by) => by));
    expect(await verifyStore(log)).toMatchObject({ verified: true, events: 100 });
  });

  it('wait for a full call together, not each with a listener of its own', async () => {
    const warnings: string[] = [];
    const hear = ({ name }: Error) => void warnings.push(name);
    process.on('warning', hear);
    await writer.appendToStream('note-0', added(0));
    // They become durable at one moment, so that their answers are more than the call takes at once.
    const append = log.append.bind(log);
    let waiting = 0;
    let letGo = () => {};
    const all = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    log.append = async (...args) => {
      waiting += 1;
      if (waiting === 100) letGo();
      await all;
      return append(...args);
    };
    await Promise.all(Array.from({ length: 100 }, (_, i) => writer.appendToStream(`note-${i + 1}`, added(i))));
    process.off('warning', hear);
    expect(warnings).toEqual([]);
    expect(await log.lastPosition()).toBe(101);
  });

  it('of sealed events are taken as they are', async () => {
    const events = chain('note-1', 3);
    await writer.appendToStream('note-1', events.map(sealedJson), { expectedRevision: 'no_stream' });
    expect((await log.readAll()).map(({ hash }) => hash)).toEqual(events.map(({ hash }) => hash));
  });

  const [first, second] = chain('note-1', 2) as [SealedEvent, SealedEvent];
  it.each<[string, RegExp, string, unknown[]]>([
    [
      'a sealed event that was changed',
      /STORE\.BROKEN_CHAIN/,
      'note-1',
      [{ ...sealedJson(first), data: { revision: 9 } }],
    ],
    ['a sealed event in another stream', /STORE\.BROKEN_CHAIN/, 'note-2', [sealedJson(first)]],
    ['a sealed event under another id', /under another id/, 'note-1', [{ ...sealedJson(first), id: second.id }]],
    [
      'an envelope with a field missing',
      /EVENT\.NOT_SEALED/,
      'note-1',
      [{ ...sealedJson(first), metadata: { hash: first.hash } }],
    ],
    ['sealed and open events together', /all|none/i, 'note-1', [sealedJson(first), added(1)]],
    ["an event in the arena's own streams", /arena's own business/, 'wallet-ada', [added(1)]],
    [
      "an event of the arena's own types",
      /arena's own business/,
      'note-1',
      [jsonEvent({ type: 'MatchSettled', data: {} })],
    ],
    ['a stream that is the system’s', /STORE\.BAD_STREAM/, '$$note-1', [added(1)]],
    ['a stream without a category', /STORE\.BAD_STREAM/, 'note', [added(1)]],
    ['what is not JSON', /EVENT\.NOT_JSON/, 'note-1', [binaryEvent({ type: 'Added', data: Buffer.from([1, 2]) })]],
    ['a type that is no name', /EVENT\.INVALID/, 'note-1', [jsonEvent({ type: 'a b', data: {} })]],
    ['an id that is no UUID', /not a UUID/, 'note-1', [added(1, 'one')]],
    [
      'metadata that is Agon’s',
      /Agon's own envelope/,
      'note-1',
      [jsonEvent({ type: 'Added', data: {}, metadata: { version: 3 } })],
    ],
  ])('%s is refused, and nothing is written', async (_what, message, stream, events) => {
    const append = writer.appendToStream(stream, events as never, { expectedRevision: 'no_stream' });
    await expect(append).rejects.toMatchObject({ message: expect.stringMatching(message) });
    const credentials = { username: 'any', password: KEYS.writer };
    const alone = writer.appendToStream(stream, events as never, { expectedRevision: 'no_stream', credentials });
    await expect(alone).rejects.toMatchObject({ message: expect.stringMatching(message) });
    expect(await log.lastPosition()).toBe(0);
  });

  it('are refused by their size as the client knows it', async () => {
    const large = Array.from({ length: 3 }, () => jsonEvent({ type: 'Added', data: { text: 'x'.repeat(500_000) } }));
    const append = writer.appendToStream('note-1', large);
    await expect(append).rejects.toMatchObject({ type: 'maximum-append-size-exceeded' });
    const many = Array.from({ length: 513 }, (_, by) => added(by));
    await expect(writer.appendToStream('note-1', many)).rejects.toMatchObject({ type: 'maximum-append-size-exceeded' });
    await writer.appendToStream('note-1', many.slice(0, 512));
    expect(await log.lastPosition()).toBe(512);
  });
});

describe("the official client's reads", () => {
  it.each<[string, object, number[]]>([
    ['all', {}, [0, 1, 2, 3, 4]],
    ['from a revision', { fromRevision: 3n }, [3, 4]],
    ['at most so many', { maxCount: 2 }, [0, 1]],
    ['backwards', { direction: 'backwards', fromRevision: 'end' }, [4, 3, 2, 1, 0]],
    ['backwards from a revision', { direction: 'backwards', fromRevision: 2n, maxCount: 2 }, [2, 1]],
    ['beyond the end', { fromRevision: 9n }, []],
  ])('of a stream: %s', async (_what, options, revisions) => {
    await fill('note-2', 3);
    await fill('note-1', 5);
    const events = await collected(reader.readStream('note-1', options));
    expect(events.map(({ event }) => Number(event?.revision))).toEqual(revisions);
  });

  it('of a stream that is not there', async () => {
    await expect(collected(reader.readStream('note-9'))).rejects.toMatchObject({
      type: 'stream-not-found',
      streamName: 'note-9',
    });
  });

  const at = (position: number) => ({ commit: BigInt(position), prepare: BigInt(position) });
  const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
  it.each<[string, object, number[]]>([
    ['forwards', {}, upTo(700)],
    ['from a position, with what stands there', { fromPosition: at(698) }, [698, 699, 700]],
    ['at most so many', { fromPosition: at(5), maxCount: 3 }, [5, 6, 7]],
    ['backwards', { direction: 'backwards', fromPosition: 'end' }, upTo(700).reverse()],
    [
      'backwards from a position, without what stands there',
      { direction: 'backwards', fromPosition: at(4) },
      [3, 2, 1],
    ],
    ['backwards, at most so many', { direction: 'backwards', fromPosition: 'end', maxCount: 2 }, [700, 699]],
    ['backwards from the start', { direction: 'backwards', fromPosition: 'start' }, []],
    ['forwards from the end', { fromPosition: 'end' }, []],
    ['far beyond the end', { fromPosition: at(2 ** 50) }, []],
  ])('of all: %s', async (_what, options, positions) => {
    await fill('note-1', 500);
    await fill('note-2', 200);
    const events = await collected(reader.readAll(options));
    expect(events.map(({ event }) => Number(event?.position?.commit))).toEqual(positions);
  });

  it('give every event as `agon log` shows it', async () => {
    await fill('note-1', 2);
    const events = await collected(reader.readAll());
    const recorded = await log.readAll();
    expect(
      events.map(({ event }) => [
        event?.id,
        event?.type,
        event?.data,
        (event?.metadata as { hash: string } | undefined)?.hash,
      ]),
    ).toEqual(recorded.map(({ id, type, data, hash }) => [id, type, data, hash]));
  });
});

describe("the official client's subscriptions", () => {
  interface Followed {
    readonly seen: string[];
    readonly checkpoints: number[];
    said: string[];
    stop(): Promise<void>;
  }
  const follow = (
    subscription: ReturnType<EventStoreDBClient['subscribeToAll']>,
    checkpoints: number[] = [],
  ): Followed => {
    const [seen, said]: [string[], string[]] = [[], []];
    subscription.on('data', ({ event }) => seen.push(`${event?.streamId}/${event?.revision}`));
    for (const word of ['confirmation', 'caughtUp', 'fellBehind'] as const) {
      subscription.on(word as never, () => said.push(`${word}@${seen.length}`));
    }
    return { seen, checkpoints, said, stop: () => subscription.unsubscribe() };
  };
  const names = (stream: string, count: number, from = 0) =>
    Array.from({ length: count - from }, (_, i) => `${stream}/${from + i}`);

  it('to all catch up, say so, and go on', async () => {
    await fill('note-1', 300);
    const live = follow(reader.subscribeToAll({ fromPosition: 'start' }));
    await until(() => live.said.length === 2);
    expect(live.said).toEqual(['confirmation@0', 'caughtUp@300']);
    await fill('note-2', 3);
    await until(() => live.seen.length === 303);
    expect(live.seen).toEqual([...names('note-1', 300), ...names('note-2', 3)]);
    await live.stop();
  });

  it('to all begin after a position, or at the end', async () => {
    await fill('note-1', 5);
    const later = follow(reader.subscribeToAll({ fromPosition: { commit: 3n, prepare: 3n } }));
    const last = follow(reader.subscribeToAll({ fromPosition: 'end' }));
    await until(() => last.said.length === 2 && later.seen.length === 2);
    await fill('note-2', 1);
    await until(() => later.seen.length === 3 && last.seen.length === 1);
    expect([later.seen, last.seen]).toEqual([['note-1/3', 'note-1/4', 'note-2/0'], ['note-2/0']]);
    await Promise.all([later.stop(), last.stop()]);
  });

  it.each([
    ['by the beginning of a stream', () => streamNameFilter({ prefixes: ['other-', 'more-'] })],
    ['by a pattern of streams', () => streamNameFilter({ regex: '^(other|more)-' })],
    ['by a type', () => eventTypeFilter({ prefixes: ['Wri'] })],
    ['by a pattern of types', () => eventTypeFilter({ regex: '^(?!Noted$).*$' })],
  ])('to all are filtered here: %s', async (_what, filterOf) => {
    for (let i = 0; i < 4; i++) {
      await fill(`note-${i}`, 20);
      await writer.appendToStream(`other-${i}`, jsonEvent({ type: 'Written', data: { i } }));
    }
    const checkpoints: number[] = [];
    const filter = {
      ...filterOf(),
      checkpointReached: async (_: unknown, at: { commit: bigint }) => void checkpoints.push(Number(at.commit)),
    };
    const live = follow(reader.subscribeToAll({ filter: filter as never }), checkpoints);
    await until(() => live.said.length === 2);
    expect(live.seen).toEqual(['other-0/0', 'other-1/0', 'other-2/0', 'other-3/0']);
    expect(checkpoints).toEqual([32, 64, 84]);
    expect(live.said).toEqual(['confirmation@0', 'caughtUp@4']);
    await live.stop();
  });

  it('to a stream begin anywhere, and miss nothing where reading meets following', async () => {
    await fill('note-1', 600);
    const streams = ['start' as const, 'end' as const, 597n].map((fromRevision) =>
      follow(reader.subscribeToStream('note-1', { fromRevision }) as never),
    );
    const notYet = follow(reader.subscribeToStream('later-1') as never);
    await until(() => [...streams, notYet].every(({ said }) => said.length === 2));
    const events = chain('note-1', 620);
    for (let i = 600; i < 620; i++) {
      await log.append('note-1', i - 1, [events[i] as SealedEvent]);
      await fill(`aside-${i}`, 2);
    }
    await fill('later-1', 2);
    await until(() => streams.every(({ seen }) => seen.at(-1) === 'note-1/619') && notYet.seen.length === 2);
    expect(streams.map(({ seen }) => seen)).toEqual([
      names('note-1', 620),
      names('note-1', 620, 600),
      names('note-1', 620, 598),
    ]);
    expect(notYet.seen).toEqual(names('later-1', 2));
    for (const live of [...streams, notYet]) await live.stop();
  });

  it('wait for a slow reader, without keeping the log in memory for it', async () => {
    const count = 3_000;
    for (let i = 0; i < count / 500; i++) {
      await log.append(`note-${i}`, NO_STREAM, chain(`note-${i}`, 500, { data: () => ({ text: 'x'.repeat(2_000) }) }));
    }
    const pages: number[] = [];
    const readAll = log.readAll.bind(log);
    log.readAll = async (page) => {
      pages.push(page?.after ?? 0);
      return readAll(page);
    };
    const subscription = reader.subscribeToAll({ fromPosition: 'start' });
    await new Promise<void>((resolve) => subscription.once('confirmation', () => resolve()));
    subscription.pause();
    await until(() => pages.length > 0);
    for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(Math.max(...pages)).toBeLessThan(count);
    let seen = 0;
    subscription.on('data', () => {
      seen += 1;
    });
    subscription.resume();
    await until(() => seen === count);
    await subscription.unsubscribe();
  });

  it('hear of it when the door closes, and end', async () => {
    const subscription = reader.subscribeToAll({ fromPosition: 'start' });
    const ended = new Promise<{ type: string }>((resolve) => subscription.once('error', resolve as never));
    await new Promise<void>((resolve) => subscription.once('caughtUp', () => resolve()));
    await door.close();
    expect(await ended).toMatchObject({ type: 'unavailable' });
  });
});

describe('what the door refuses', () => {
  it.each([
    ['without a key', () => connectTo({ url: `esdb://${door.address}?tlsCAFile=${certFile}`, prefix: '' })],
    ['with a key that nobody has', () => connect('wrong')],
  ])('reads and appends %s', async (_what, open) => {
    const client = open();
    clients.push(client);
    await expect(collected(client.readAll())).rejects.toMatchObject({ type: 'access-denied' });
    await expect(client.appendToStream('note-1', added(1))).rejects.toMatchObject({ type: 'access-denied' });
    expect(await log.lastPosition()).toBe(0);
  });

  it('appends with a key for reading', async () => {
    const credentials = { username: 'any', password: KEYS.reader };
    for (const options of [{}, { credentials }]) {
      await expect(reader.appendToStream('note-1', added(1), options)).rejects.toMatchObject({ type: 'access-denied' });
    }
    expect(await log.lastPosition()).toBe(0);
  });

  it('to delete anything', async () => {
    await fill('note-1', 2);
    for (const client of [writer, reader]) {
      for (const remove of [client.deleteStream('note-1'), client.tombstoneStream('note-1')]) {
        await expect(remove).rejects.toMatchObject({
          type: 'access-denied',
          message: expect.stringMatching(client === writer ? /STORE\.IMMUTABLE: The log is immutable/ : /reading only/),
        });
      }
    }
    expect(await log.lastPosition()).toBe(2);
  });

  it.each([
    ['is too long', 'a'.repeat(1_001), 'FILTER.UNSAFE'],
    ['counts too far', '.{100}.{100}.{100}', 'FILTER.UNSAFE'],
    ['counts what is counted', `(${'[ab]{8}'.repeat(15)}){100}`, 'FILTER.UNSAFE'],
    ['remembers a group', '(a)\\1', 'FILTER.INVALID'],
    ['looks ahead in the middle', '^a(?!b)', 'FILTER.INVALID'],
    ['looks back', '(?<!a)b', 'FILTER.INVALID'],
    ['looks ahead on one side of a choice', '^(?!a)b|c', 'FILTER.INVALID'],
    ['looks ahead without an end', '^(?!a', 'FILTER.INVALID'],
  ])('a pattern that %s', (_what, pattern, code) => {
    expect(() => linearTest(pattern)).toThrow(expect.objectContaining({ code }));
  });

  // An engine that tries would be at it for longer than anybody waits: the suite's own time limit is what fails it.
  it.each([
    '^(a+)+$',
    '(a|b*)+!',
    `${'.*'.repeat(60)}!`,
    '^(.?){20}.{20}[!?]',
    `^(.?){100}.{100}[!?]`,
    '(\\w+\\W?)*[!?]',
  ])('not the pattern %s, which takes no longer than others', (pattern) => {
    const test = linearTest(pattern);
    for (let i = 0; i < 100; i++) expect(test(`wallet-${'a'.repeat(190)}-${i}`)).toBe(false);
  });

  it.each([
    ['^[^$].*', ['wallet-a'], ['$system']],
    ['^(?!(\\$.+$|PersistentConfig\\d*$|Result$)).*$', ['Noted', 'Results'], ['$x', 'PersistentConfig1', 'Result']],
    ['^(?![)(|]).', ['a'], ['(a', '|', ')']],
    ['^(?!\\)|a)(b|c)', ['b', 'cd'], [')b', 'ab', 'd']],
    ['^(wallet|match)-', ['wallet-a', 'match-b'], ['a-wallet-']],
    ['(ab)+$', ['xabab'], ['aba']],
    ['[(+)]+x', ['a(+)x'], ['ax']],
  ])('not the pattern %s', (pattern, fit, others) => {
    const test = linearTest(pattern);
    expect([...fit, ...others].filter(test)).toEqual(fit);
  });

  it('a pattern that cannot be read', async () => {
    const subscription = reader.subscribeToAll({ filter: streamNameFilter({ regex: '(' }) });
    const ended = new Promise<{ message: string }>((resolve) => subscription.once('error', resolve as never));
    expect((await ended).message).toMatch(/FILTER\.INVALID/);
  });
});

/** In a process of its own: two generations of generated messages in one register each other's names. */
const KURRENT = `
import { KurrentDBClient, streamNameFilter } from '@kurrent/kurrentdb-client';
const client = KurrentDBClient.connectionString(process.argv[1]);
const collected = async (stream) => {
  const all = [];
  for await (const { event } of stream) all.push(event.streamId + '/' + event.revision);
  return all;
};
const said = {
  stream: await collected(client.readStream('note-1', { fromRevision: 298n })),
  all: (await collected(client.readAll({ maxCount: 5 }))).length,
  missing: await collected(client.readStream('note-9')).catch(({ type }) => type),
  followed: [],
};
const subscription = client.subscribeToAll({ filter: streamNameFilter({ prefixes: ['note-2'] }), fromPosition: 'start' });
for await (const { event } of subscription) {
  said.followed.push(event.streamId + '/' + event.revision);
  if (said.followed.length === 2) break;
}
await client.dispose();
console.log(JSON.stringify(said));
process.exit(0);
`;

describe("Kurrent's client, as it is published", () => {
  it('reads, filters and follows over TLS, trusting the authority that it is given', async () => {
    await fill('note-1', 300);
    await fill('note-2', 1);
    const url = `kurrentdb://any:${KEYS.reader}@${door.address}?tlsCaFile=${certFile}`;
    const running = promisify(execFile)(execPath, ['--input-type=module', '-e', KURRENT, url]);
    await log.append('note-2', 0, chain('note-2', 2).slice(1));
    expect(JSON.parse((await running).stdout)).toEqual({
      stream: ['note-1/298', 'note-1/299'],
      all: 5,
      missing: 'stream-not-found',
      followed: ['note-2/0', 'note-2/1'],
    });
  });
});

describe('finding the door', () => {
  it('works by gossip at a door on all addresses, which names the one that it was reached by', async () => {
    const wide = await openEndpoint(log, { host: '0.0.0.0' });
    const url = `esdb+discover://any:${KEYS.reader}@localhost:${wide.address.split(':').at(-1)}?tls=false`;
    const store = await EventStoreDbStore.open(url);
    expect(await store.lastPosition()).toBe(await log.lastPosition());
    await store.close();
    await wide.close();
    const call = (host: string) => reachedBy({ getHost: () => host }, { host: '0.0.0.0', port: 2113 });
    expect(call('log:2113')).toEqual({ host: 'log', port: 2113 });
    expect(call('log')).toEqual({ host: 'log', port: 2113 });
    expect(call('[::1]:9')).toEqual({ host: '[::1]', port: 9 });
    expect(reachedBy({ getHost: () => 'log:1' }, { host: 'db', port: 2 })).toEqual({ host: 'db', port: 2 });
  });

  it('works by gossip, as for a cluster', async () => {
    await fill('note-1', 2);
    expect(await collected(connect(KEYS.reader, 'esdb+discover').readAll())).toHaveLength(2);
  });

  it('works without a certificate of its own only if it is told which one to trust', async () => {
    const other = join(folder, 'other.crt');
    ownCertificates(other, join(folder, 'other.key'), '127.0.0.1', Date.now);
    const client = connectTo({ url: `esdb://any:${KEYS.reader}@${door.address}?tlsCAFile=${other}`, prefix: '' });
    clients.push(client);
    await expect(collected(client.readAll())).rejects.toMatchObject({ type: 'unavailable' });
  });

  it('keeps its authority while it holds, and shows a certificate of it for each host, anew before it runs out', () => {
    const [cert, key] = [join(folder, 'c.crt'), join(folder, 'c.key')];
    let nowMs = Date.now();
    const shown = (host: string) => ownCertificates(cert, key, host, () => nowMs);
    const first = shown('127.0.0.1');
    const authority = new X509Certificate(readFileSync(cert));
    const leaf = new X509Certificate(first().cert);
    expect([authority.ca, leaf.ca, leaf.checkIssued(authority), leaf.verify(authority.publicKey)]).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(first()).toBe(first());
    for (const host of ['arena.example', '0.0.0.0']) {
      const other = new X509Certificate(shown(host)().cert);
      expect(other.checkIssued(authority) && other.checkHost('localhost')).toBe('localhost');
      expect(other.checkHost('arena.example')).toBe(host === 'arena.example' ? host : undefined);
    }
    const before = first();
    nowMs += 368 * 86_400_000;
    expect(first()).not.toBe(before);
    expect(Date.parse(new X509Certificate(first().cert).validTo)).toBeGreaterThan(nowMs + 300 * 86_400_000);
    expect(readFileSync(cert)).toEqual(Buffer.from(authority.toString()));
    nowMs += 3_640 * 86_400_000;
    shown('127.0.0.1');
    expect(readFileSync(cert)).not.toEqual(Buffer.from(authority.toString()));
  });

  it('shows those who connect the certificate of the time', async () => {
    const made = [0, 1].map((i) => ownCertificates(certFile, join(folder, 'door.key'), `host-${i}`, Date.now)());
    let at = 0;
    const wide = await openEndpoint(log, { tls: () => made[at] as Tls });
    const shownNow = async () => {
      const [host, port] = wide.address.split(':');
      const socket = tlsConnect({ host, port: Number(port), ca: readFileSync(certFile), ALPNProtocols: ['h2'] });
      await once(socket, 'secureConnect');
      const { raw } = socket.getPeerCertificate();
      socket.destroy();
      return new X509Certificate(raw).toString();
    };
    expect(await shownNow()).toBe(`${made[0]?.cert}`);
    at = 1;
    expect(await shownNow()).toBe(`${made[1]?.cert}`);
    await wide.close();
  });
});
