import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { chain, headAfter } from '../../kernel/fixtures.js';
import { NO_STREAM, type SealedEvent } from '../../kernel/index.js';
import { LmdbEventStore } from './lmdb.js';

const root = mkdtempSync(join(tmpdir(), 'agon-damage-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('lmdb: a damaged log', () => {
  let folder: string;
  let log: string;
  beforeEach(() => {
    folder = mkdtempSync(join(root, 'log-'));
    log = join(folder, 'events.mdb');
  });

  const text = (revision: number) => ({ text: `marker-${revision}-${'x'.repeat(50)}`, at: revision });

  /** Ten streams of three; `together` puts them all into one block. */
  const fill = async (together: boolean): Promise<SealedEvent[]> => {
    const store = await LmdbEventStore.open(folder);
    const chains = Array.from({ length: 10 }, (_, i) =>
      chain(`note-${i}`, 3, { data: (revision) => text(i * 10 + revision) }),
    );
    const appends: Promise<unknown>[] = [];
    for (const events of chains) {
      const append = store.append(events[0]?.stream ?? '', NO_STREAM, events);
      appends.push(append);
      if (!together) await append;
    }
    await Promise.all(appends);
    await store.close();
    return chains.flat();
  };

  /** Changes one letter of this text wherever the file has it: LMDB leaves older copies of a page behind. */
  const tamper = (marker: string, letter = 0) => {
    const bytes = readFileSync(log);
    let found = 0;
    for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + 1)) {
      bytes[at + letter] = (bytes[at + letter] ?? 0) ^ 0x20;
      found += 1;
    }
    expect(found).toBeGreaterThan(0);
    writeFileSync(log, bytes);
  };

  const opening = () => LmdbEventStore.open(folder).then((store) => store.close());
  const reading = async () => {
    const reader = await LmdbEventStore.open(folder, { readOnly: true });
    try {
      return await reader.readAll();
    } finally {
      await reader.close();
    }
  };

  it.each([
    ['in a block of its own', false, 'marker-51-', 17],
    ['in the middle of a block', true, 'marker-51-', 17],
    ['the first of the log', true, 'marker-0-', 1],
    ['the last of the log', false, 'marker-92-', 30],
  ])(
    'a changed letter in an event %s is reported with its position and id',
    async (_what, together, marker, position) => {
      const event = (await fill(together))[position - 1] as SealedEvent;
      tamper(marker);
      const { id: eventId, type, stream, revision } = event;
      const corrupt = { code: 'STORE.CORRUPT', details: { position, eventId, type, stream, revision } };
      await expect(reading()).rejects.toMatchObject(corrupt);
      await expect(opening()).rejects.toMatchObject(corrupt);
    },
  );

  it('a changed amount of data that can no longer be decoded still names the position', async () => {
    await fill(false);
    tamper('text', 3);
    await expect(opening()).rejects.toMatchObject({ code: 'STORE.CORRUPT', details: { position: 1 } });
  });

  it('a reader reports damage to a stream it is asked for, and still serves the others', async () => {
    await fill(false);
    tamper('marker-51-');
    const reader = await LmdbEventStore.open(folder, { readOnly: true });
    await expect(reader.readStream('note-5')).rejects.toMatchObject({ code: 'STORE.CORRUPT' });
    await expect(reader.readStream('note-4')).resolves.toHaveLength(3);
    await reader.close();
  });

  it('damage met while following ends the subscription with it', async () => {
    await fill(false);
    tamper('marker-51-');
    const reader = await LmdbEventStore.open(folder, { readOnly: true });
    const subscription = reader.subscribe({ after: 0, batchSize: 3 }, async () => {});
    await expect(subscription.done).rejects.toMatchObject({ code: 'STORE.CORRUPT', details: { position: 17 } });
    await reader.close();
  });

  it.each([
    ['to half its size', (size: number) => Math.floor(size / 2)],
    ['to its first pages', () => 8_192],
    ['to less than a page', () => 1_000],
    ['to nothing', () => 0],
  ])('a file cut %s is refused at the opening', async (_what, cut) => {
    const store = await LmdbEventStore.open(folder);
    for (let i = 0; i < 10; i++) {
      await store.append(`note-${i}`, NO_STREAM, chain(`note-${i}`, 1, { data: () => 'y'.repeat(30_000) }));
    }
    await store.close();
    truncateSync(log, cut(statSync(log).size));
    await expect(opening()).rejects.toMatchObject({ code: 'STORE.CORRUPT' });
  });

  it.each([
    ['zeros', Buffer.alloc(65_536)],
    ['text', Buffer.from('This is not a log.\n'.repeat(4_000))],
    ['a few bytes', Buffer.from('log')],
    ['noise', Buffer.from(Array.from({ length: 65_536 }, (_, i) => (i * i * 31 + i * 7) % 251))],
  ])('a file of %s is refused at the opening, and left as it is', async (_what, garbage) => {
    writeFileSync(log, garbage);
    await expect(opening()).rejects.toMatchObject({ code: 'STORE.CORRUPT' });
    expect(readFileSync(log).equals(garbage)).toBe(true);
  });

  it('a log that is shorter than its index has lost events, and is refused', async () => {
    const first = await fill(false);
    copyFileSync(log, join(folder, 'older'));
    const store = await LmdbEventStore.open(folder);
    const after = headAfter(first.slice(0, 3));
    await store.append('note-0', 2, chain('note-0', 4, { after }));
    await store.close();
    copyFileSync(join(folder, 'older'), log);
    await expect(opening()).rejects.toMatchObject({ code: 'STORE.CORRUPT', details: { position: 31 } });
  });
});
