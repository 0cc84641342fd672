import { close, fdatasync, openSync, write } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import type { SealedEvent } from '../../services/kernel/index.js';
import { loadPeer } from './peers.js';

/** The least that all of those measured have in common: an append that resolves when it is durable. */
export interface Log {
  append(event: SealedEvent): Promise<unknown>;
  close(): Promise<void>;
}

export async function openOurs(folder: string): Promise<Log> {
  const store = await LmdbEventStore.open(folder);
  return {
    append: (event) => store.append(event.stream, event.revision - 1, [event]),
    close: () => store.close(),
  };
}

/** What a log costs at the very least: lines in a file and an fdatasync, shared by all that wait. No index, no checks. */
export async function openRaw(folder: string): Promise<Log> {
  const file = openSync(join(folder, 'events.jsonl'), 'a');
  const writeText = promisify(write) as unknown as (file: number, text: Buffer) => Promise<unknown>;
  const sync = promisify(fdatasync);
  let position = 0;
  const append = grouped<SealedEvent>(async (group) => {
    let text = '';
    for (const event of group) text += `${JSON.stringify({ ...event, position: ++position })}\n`;
    await writeText(file, Buffer.from(text));
    await sync(file);
  });
  return { append, close: () => promisify(close)(file) };
}

interface Sqlite {
  pragma(text: string): unknown;
  exec(sql: string): unknown;
  prepare(sql: string): { run(...values: unknown[]): unknown };
  transaction<T>(work: (group: T) => void): (group: T) => void;
  close(): void;
}

/** SQLite as it is used for event logs, at its best: one prepared insert, one transaction a group. */
export async function openSqlite(folder: string): Promise<Log> {
  const Database = loadPeer<new (path: string) => Sqlite>('better-sqlite3');
  const database = new Database(join(folder, 'events.db'));
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.exec(`
    CREATE TABLE events (position INTEGER PRIMARY KEY, stream TEXT NOT NULL, revision INTEGER NOT NULL, event TEXT NOT NULL);
    CREATE UNIQUE INDEX events_by_stream ON events (stream, revision);
  `);
  const insert = database.prepare('INSERT INTO events VALUES (?, ?, ?, ?)');
  let position = 0;
  const insertAll = database.transaction((group: readonly SealedEvent[]) => {
    for (const event of group) {
      position += 1;
      insert.run(position, event.stream, event.revision, JSON.stringify({ ...event, position }));
    }
  });
  return { append: grouped(async (group) => insertAll(group)), close: async () => database.close() };
}

/** Group commit: whatever arrives while a commit is under way shares the next one. */
function grouped<T>(commit: (group: readonly T[]) => Promise<void>): (item: T) => Promise<void> {
  let waiting: { item: T; resolve: () => void; reject: (error: unknown) => void }[] = [];
  let committing = false;
  const run = async () => {
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      try {
        await commit(group.map(({ item }) => item));
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
      // Those just answered ask again within this turn, and belong to the next group.
      await new Promise((turn) => setImmediate(turn));
    }
    committing = false;
  };
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (committing) return;
      committing = true;
      setImmediate(run);
    });
}
