import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { chain } from '../../kernel/fixtures.js';
import { isAgonError, NO_STREAM } from '../../kernel/index.js';
import { LmdbCheckpoints } from '../bus/checkpoints.js';
import { LmdbEventStore } from './lmdb.js';
import { asStoreError, committed } from './store-error.js';

const root = mkdtempSync(join(tmpdir(), 'agon-full-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A file system of its own. Mounting one needs a privilege that not every machine gives: then the test says so. */
function smallDisk(context: TestContext, kib: number): { folder: string; grow(): void } {
  const folder = mkdtempSync(join(root, 'disk-'));
  const mount = (...options: string[]) => execFileSync('mount', [...options, folder], { stdio: 'pipe' });
  try {
    mount('-t', 'tmpfs', '-o', `size=${kib}k`, 'tmpfs');
  } catch (error) {
    context.skip(`This machine cannot mount a small file system: ${String(error)}`);
  }
  onTestFinished(() => void execFileSync('umount', ['-l', folder]));
  return { folder, grow: () => mount('-o', 'remount,size=64m') };
}

describe('a full disk', () => {
  it.for([5_000, 6_100, 8_192])('of %i KiB loses nothing, and goes on once there is space', async (kib, context) => {
    const { folder, grow } = smallDisk(context, kib);
    const store = await LmdbEventStore.open(folder);
    const events = chain('note-a', 400, { data: (revision) => ({ revision, text: 'z'.repeat(30_000) }) });
    let acknowledged = 0;
    const appendNext = async () => {
      await store.append('note-a', acknowledged - 1, events.slice(acknowledged, acknowledged + 1));
      acknowledged += 1;
    };
    const fillUp = async () => {
      while (acknowledged < events.length) await appendNext();
    };
    await expect(fillUp()).rejects.toMatchObject({ code: 'STORE.FULL' });
    expect(acknowledged).toBeGreaterThan(5);
    const hashes = () => events.slice(0, acknowledged).map((event) => event.hash);
    expect((await store.readStream('note-a')).map((event) => event.hash)).toEqual(hashes());
    await expect(appendNext()).rejects.toMatchObject({ code: 'STORE.FULL' });
    // The index is written by a timer; it waits as well, and must not take anything with it.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await store.readStream('note-a')).map((event) => event.hash)).toEqual(hashes());

    grow();
    await appendNext();
    await appendNext();
    await store.close();
    const reopened = await LmdbEventStore.open(folder);
    expect((await reopened.readStream('note-a')).map((event) => event.hash)).toEqual(hashes());
    await reopened.close();
  });

  it('refuses all of many concurrent appends, or none of one: what is acknowledged is there', async (context) => {
    const { folder, grow } = smallDisk(context, 6_000);
    const store = await LmdbEventStore.open(folder);
    const acknowledged: string[] = [];
    const refused: unknown[] = [];
    for (let round = 0; round < 4; round++) {
      const appends = Array.from({ length: 20 }, async (_, i) => {
        const events = chain(`note-${round}-${i}`, 2, { data: () => 'z'.repeat(20_000) });
        await store.append(`note-${round}-${i}`, NO_STREAM, events).then(
          () => acknowledged.push(...events.map((event) => event.hash)),
          (error: unknown) => refused.push(error),
        );
      });
      await Promise.all(appends);
    }
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.every((error) => isAgonError(error, 'STORE.FULL'))).toBe(true);
    expect((await store.readAll()).map((event) => event.hash)).toEqual(acknowledged);
    grow();
    await store.close();
  });

  it('refuses a checkpoint, which keeps its last value', async (context) => {
    const { folder, grow } = smallDisk(context, 5_000);
    const checkpoints = new LmdbCheckpoints(join(folder, 'checkpoints.mdb'));
    await checkpoints.save('group', 7);
    writeFileSync(join(folder, 'ballast'), Buffer.alloc(2_000_000));
    await expect(checkpoints.save('group', 8)).rejects.toMatchObject({ code: 'STORE.FULL' });
    expect(await checkpoints.load('group')).toBe(7);
    grow();
    await checkpoints.save('group', 8);
    expect(await checkpoints.load('group')).toBe(8);
    await checkpoints.close();
  });
});

describe('what LMDB says when a write fails', () => {
  it.each([
    ['No space left on device', 'STORE.FULL'],
    ['ENOSPC: no space', 'STORE.FULL'],
    ['MDB_MAP_FULL: Environment mapsize limit reached', 'STORE.FULL'],
    ['File too large', 'STORE.FULL'],
    ['MDB_CORRUPTED: Located page was wrong type', 'STORE.CORRUPT'],
    ['MDB_INVALID: File is not an LMDB file', 'STORE.CORRUPT'],
    ['MDB_PAGE_NOTFOUND: Requested page not found', 'STORE.CORRUPT'],
    ['MDB_VERSION_MISMATCH: Database environment version mismatch', 'STORE.CORRUPT'],
    ['Input/output error', 'STORE.FAILED'],
    ['something else', 'STORE.FAILED'],
  ])('"%s" is %s', (message, code) => {
    expect(asStoreError(new Error(message), root).code).toBe(code);
  });

  it('takes an input/output error for a full disk when the disk is full', (context) => {
    const { folder } = smallDisk(context, 1_000);
    expect(asStoreError(new Error('Input/output error'), folder).code).toBe('STORE.FULL');
  });

  it('is found behind the error that only points to it', async () => {
    const commitError = Promise.reject(new Error('No space left on device'));
    const failed = Promise.reject(Object.assign(new Error('Commit failed (see commitError)'), { commitError }));
    await expect(committed(failed, root)).rejects.toMatchObject({ code: 'STORE.FULL' });
  });
});
