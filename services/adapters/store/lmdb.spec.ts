import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chain, headAfter } from '../../kernel/fixtures.js';
import { NO_STREAM, recomputeHash } from '../../kernel/index.js';
import { compiled } from '../../runtime/package.js';
import { LmdbEventStore } from './lmdb.js';
import { storeContract } from './store.contract.js';
import { until } from './subscription.contract.js';

const root = mkdtempSync(join(tmpdir(), 'agon-lmdb-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const newFolder = () => mkdtempSync(join(root, 'log-'));
const folders = new WeakMap<object, string>();
const openIn = async (folder: string) => {
  const store = await LmdbEventStore.open(folder);
  folders.set(store, folder);
  return store;
};

storeContract('lmdb', {
  counts: true,
  open: () => openIn(newFolder()),
  reopen: async (store) => {
    await store.close();
    return openIn(folders.get(store) ?? '');
  },
});

/** Runs a piece of a program against the compiled store, in a process of its own. */
async function elsewhere(folder: string, program: string): Promise<string> {
  const source = `
    const { LmdbEventStore } = await import(${JSON.stringify(compiled(import.meta.url, './lmdb.js'))});
    const { chain, headAfter } = await import(${JSON.stringify(compiled(import.meta.url, '../../kernel/fixtures.js'))});
    const folder = ${JSON.stringify(folder)};
    ${program}`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', source]);
  return stdout;
}

describe('lmdb: a log in a folder', () => {
  let folder: string;
  const opened: LmdbEventStore[] = [];
  const open = async (options?: { readOnly: boolean }) => {
    const store = await LmdbEventStore.open(folder, options);
    opened.push(store);
    return store;
  };
  beforeEach(() => {
    folder = newFolder();
  });
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
  });

  const fill = async (streams: number, eventsEach: number) => {
    const store = await open();
    for (let i = 0; i < streams; i++) await store.append(`note-${i}`, NO_STREAM, chain(`note-${i}`, eventsEach));
    await store.close();
  };

  describe('the stream index follows the log', () => {
    const expectWhole = async (streams: number, eventsEach: number) => {
      const store = await open();
      for (let i = 0; i < streams; i++) {
        const events = chain(`note-${i}`, eventsEach);
        expect((await store.readStream(`note-${i}`)).map((event) => event.hash)).toEqual(events.map((e) => e.hash));
        expect(await store.head(`note-${i}`)).toEqual(headAfter(events));
      }
      return store;
    };

    it('is rebuilt when it is deleted', async () => {
      await fill(20, 3);
      rmSync(join(folder, 'streams.mdb'));
      rmSync(join(folder, 'streams.mdb-lock'), { force: true });
      await expectWhole(20, 3);
    });

    it('catches up when it is behind, and the stream goes on', async () => {
      await fill(4, 2);
      copyFileSync(join(folder, 'streams.mdb'), join(folder, 'older'));
      const writer = await open();
      for (let i = 0; i < 4; i++) {
        const all = chain(`note-${i}`, 5);
        await writer.append(`note-${i}`, 1, all.slice(2));
      }
      await writer.close();
      copyFileSync(join(folder, 'older'), join(folder, 'streams.mdb'));
      const store = await expectWhole(4, 5);
      await expect(store.append('note-0', 4, chain('note-0', 6).slice(5))).resolves.toEqual({
        revision: 5,
        position: 21,
      });
    });

    it('serves a stream from disk, from what is being written and from memory alike', async () => {
      const store = await open();
      const events = chain('note-a', 9_000);
      const others = chain('note-b', 9_000);
      for (let from = 0; from < events.length; from += 500) {
        const both = [store.append('note-a', from - 1, events.slice(from, from + 500))];
        both.push(store.append('note-b', from - 1, others.slice(from, from + 500)));
        await Promise.all(both);
        const tail = await store.readStream('note-a', { fromRevision: Math.max(0, from - 250), limit: 600 });
        expect(tail.map((event) => event.revision)).toEqual(tail.map((_, i) => Math.max(0, from - 250) + i));
      }
      expect((await store.readStream('note-a')).map((event) => event.hash)).toEqual(events.map((event) => event.hash));
    });
  });

  describe('a reader', () => {
    it('cannot write', async () => {
      await fill(1, 1);
      const reader = await open({ readOnly: true });
      await expect(reader.append('note-9', NO_STREAM, chain('note-9', 1))).rejects.toMatchObject({
        code: 'STORE.READ_ONLY',
      });
    });

    it('sees at once, in every way of reading, what its writer appends', async () => {
      const writer = await open();
      const events = chain('note-a', 40);
      await writer.append('note-a', NO_STREAM, events.slice(0, 1));
      const reader = await open({ readOnly: true });
      for (let count = 1; count < events.length; count++) {
        expect((await reader.readAll()).map((event) => event.hash)).toEqual(events.slice(0, count).map((e) => e.hash));
        expect(await reader.readStream('note-a')).toHaveLength(count);
        expect(await reader.readStream('note-a', { direction: 'backwards', limit: 1 })).toMatchObject([
          { revision: count - 1 },
        ]);
        expect(await reader.head('note-a')).toEqual(headAfter(events.slice(0, count)));
        expect(await reader.lastPosition()).toBe(count);
        await writer.append('note-a', count - 1, events.slice(count, count + 1));
        // Now and then the index goes to disk under the reader.
        if (count % 13 === 0) await new Promise((resolve) => setTimeout(resolve, 250));
      }
    });

    it('follows a writer in another process', async () => {
      await fill(1, 2);
      const reader = await open({ readOnly: true });
      const seen: number[] = [];
      const subscription = reader.subscribe({ after: 0 }, async (events) => {
        for (const event of events) {
          expect(recomputeHash(event)).toBe(event.hash);
          seen.push(event.position);
        }
      });
      await elsewhere(
        folder,
        `const store = await LmdbEventStore.open(folder);
         const events = chain('note-x', 30);
         for (const [i, event] of events.entries()) await store.append('note-x', i - 1, [event]);
         await store.close();`,
      );
      await until(() => seen.length >= 32);
      await subscription.stop();
      expect(seen).toEqual(Array.from({ length: 32 }, (_, i) => i + 1));
      expect(await reader.readStream('note-x')).toHaveLength(30);
    });

    it('in another process sees what was appended here', async () => {
      const writer = await open();
      const events = chain('note-a', 3);
      await writer.append('note-a', NO_STREAM, events);
      const head = await elsewhere(
        folder,
        `const store = await LmdbEventStore.open(folder, { readOnly: true });
         process.stdout.write(JSON.stringify([await store.head('note-a'), (await store.readAll()).length]));
         await store.close();`,
      );
      expect(JSON.parse(head)).toEqual([headAfter(events), 3]);
    });
  });

  describe('a second writer', () => {
    it('never overwrites: what was acknowledged stays, what could not be written is refused', async () => {
      await fill(1, 1);
      const writers = [await open(), await open()];
      const acknowledged: string[] = [];
      const refused: string[] = [];
      for (let i = 0; i < 20; i++) {
        const stream = `note-by-${i}`;
        const events = chain(stream, 1 + (i % 3), { writer: `writer-${i % 2}` });
        await (writers[i % 2] as LmdbEventStore).append(stream, NO_STREAM, events).then(
          () => acknowledged.push(...events.map((event) => event.hash)),
          (error: { code: string }) => refused.push(error.code),
        );
      }
      expect(new Set(refused)).toEqual(new Set(['STORE.ANOTHER_WRITER']));
      for (const writer of writers) await writer.close();
      const store = await open();
      expect((await store.readAll({ after: 1 })).map((event) => event.hash)).toEqual(acknowledged);
    });

    it('in another process is refused as well', async () => {
      const first = await open();
      await first.append('note-a', NO_STREAM, chain('note-a', 1));
      await elsewhere(
        folder,
        `const store = await LmdbEventStore.open(folder);
         await store.append('note-b', -1, chain('note-b', 2));
         await store.close();`,
      );
      await expect(first.append('note-c', NO_STREAM, chain('note-c', 1))).rejects.toMatchObject({
        code: 'STORE.ANOTHER_WRITER',
      });
      await first.close();
      const store = await open();
      expect((await store.readAll()).map((event) => event.stream)).toEqual(['note-a', 'note-b', 'note-b']);
    });
  });

  it('finishes the appends under way before it closes', async () => {
    const store = await open();
    const appends = Array.from({ length: 50 }, (_, i) => store.append(`note-${i}`, NO_STREAM, chain(`note-${i}`, 1)));
    await store.close();
    await expect(Promise.all(appends)).resolves.toHaveLength(50);
    expect(await (await open()).lastPosition()).toBe(50);
  });
});
