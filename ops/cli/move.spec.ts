import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { chain } from '../../services/kernel/fixtures.js';
import { NO_STREAM } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { moveIntoCluster } from './eventstore.js';
import { moveArena, movedTo } from './move.js';

let root: string;
let from: string;
let into: string;

const written = (path: string, text: string) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
};

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'agon-move-'));
  [from, into] = [join(root, 'from'), join(root, 'into')];
  mkdirSync(from);
  const log = await LmdbEventStore.open(folderLayout(from).log);
  await log.append('note-1', NO_STREAM, chain('note-1', 3));
  await log.close();
  written(join(from, 'artifacts', 'ab', 'abcd'), 'code');
  written(join(from, 'people', 'ada.json'), 'ada');
  written(join(from, 'webhook.key'), 'key');
  written(join(from, 'bus.mdb'), 'what follows from the log');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const move = () => {
  const open = () => LmdbEventStore.open(join(root, 'new'));
  return moveArena({ from, into, target: { name: 'elsewhere', open } });
};

describe('moving an arena', () => {
  it('takes the log and what no log brings back, and leaves the rest', async () => {
    expect(movedTo(from)).toBeUndefined();
    expect(await move()).toMatchObject({ events: 3, files: 3 });
    expect(readFileSync(join(into, 'artifacts', 'ab', 'abcd'), 'utf8')).toBe('code');
    expect(readFileSync(join(into, 'people', 'ada.json'), 'utf8')).toBe('ada');
    expect(statSync(join(into, 'webhook.key')).mode & 0o777).toBe(0o600);
    expect(() => readFileSync(join(into, 'bus.mdb'))).toThrow(/ENOENT/);
    expect(movedTo(from)).toBe('elsewhere');
    // Interrupted just before its end, it would be repeated.
    expect(await move()).toMatchObject({ events: 3, resumedAt: 3, files: 3 });
  });

  it('into a cluster happens once: what has happened there since is not in the way', async () => {
    const cluster = join(root, 'cluster');
    expect(await moveIntoCluster(from, cluster)).toBe(0);
    const log = await LmdbEventStore.open(folderLayout(join(cluster, 'log')).log);
    await log.append('note-2', NO_STREAM, chain('note-2', 1));
    await log.close();
    expect(await moveIntoCluster(from, cluster)).toBe(0);
    expect(readFileSync(folderLayout(join(cluster, 'data')).webhookKey, 'utf8')).toBe('key');
  });

  it('leaves a folder alone that has keys of its own', async () => {
    written(join(into, 'webhook.key'), 'another key');
    await expect(move()).rejects.toMatchObject({ code: 'MIGRATE.FOLDER' });
    expect(readFileSync(join(into, 'webhook.key'), 'utf8')).toBe('another key');
    expect(() => readFileSync(join(into, 'people', 'ada.json'))).toThrow(/ENOENT/);
    expect(movedTo(from)).toBeUndefined();
  });

  it('needs an arena to move', async () => {
    rmSync(folderLayout(from).log, { recursive: true });
    await expect(move()).rejects.toMatchObject({ code: 'DATA.EMPTY' });
  });
});
