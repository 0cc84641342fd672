import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { afterAll } from 'vitest';
import { openEndpoint, urlOf } from '../../../gateway/eventstore/endpoint.contract.js';
import type { EventStore } from '../../kernel/index.js';
import { EventStoreDbStore } from './eventstoredb.js';
import { LmdbEventStore } from './lmdb.js';
import { MemoryEventStore } from './memory.js';
import { storeContract } from './store.contract.js';

const root = mkdtempSync(join(tmpdir(), 'agon-esdb-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Closing the store closes what it stands on, once. */
function together(store: EventStore, ...under: readonly { close(): Promise<void> }[]): EventStore {
  const close = store.close.bind(store);
  let closing: Promise<void> | undefined;
  const all = async () => {
    await close();
    for (const each of under) await each.close();
  };
  return Object.assign(store, {
    close: () => {
      closing ??= all();
      return closing;
    },
  });
}

const folders = new WeakMap<EventStore, string>();
async function overLmdb(folder: string): Promise<EventStore> {
  const log = await LmdbEventStore.open(folder);
  const door = await openEndpoint(log);
  const store = together(await EventStoreDbStore.open(urlOf(door)), door, log);
  folders.set(store, folder);
  return store;
}

storeContract('eventstoredb, by the endpoint over LMDB', {
  counts: true,
  open: () => overLmdb(mkdtempSync(join(root, 'log-'))),
  reopen: async (store) => {
    await store.close();
    return overLmdb(folders.get(store) ?? '');
  },
});

storeContract('eventstoredb, by an endpoint whose positions have gaps', {
  open: async () => {
    const log = new MemoryEventStore({ gaps: true });
    const endpoint = await openEndpoint(log);
    return together(await EventStoreDbStore.open(urlOf(endpoint)), endpoint, log);
  },
});

// A real server keeps what earlier runs wrote, so every store of this suite has streams of its own.
if (env.EVENTSTORE_URL) {
  const url = env.EVENTSTORE_URL;
  const separator = url.includes('?') ? '&' : '?';
  storeContract('eventstoredb, by the server at EVENTSTORE_URL', {
    open: () => EventStoreDbStore.open(`${url}${separator}streamPrefix=${randomUUID()}.`),
  });
}
