import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { Projector } from '../../projections/engine/projector.js';
import type { View } from '../../projections/engine/view.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { upcast } from '../../projections/views.js';
import { AgonError, type EventStore, type RecordedEvent } from '../../services/kernel/index.js';
import { folderLayout, holderOf } from '../../services/runtime/data-folder.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { openLog } from '../run/log.js';

/** Whether there is a log to read: one that AGON_STORE names, or one in the folder, unless AGON_URL names another arena. */
export function hasLog(dataDir: string): boolean {
  if (parseConfig({ dataDir }, env).storeUrl) return true;
  const named = env.AGON_URL?.replace(/\/+$/, '');
  return isLogIn(dataDir) && (!named || named === holderOf(dataDir)?.url);
}

export const isLogIn = (dataDir: string) => existsSync(join(folderLayout(dataDir).log, 'events.mdb'));

/** Opens the log of a data folder, or the one that AGON_STORE names, for reading. Works beside a running arena, and without one. */
export async function withLog<T>(dataDir: string, use: (store: EventStore) => Promise<T>): Promise<T> {
  const { storeUrl } = parseConfig({ dataDir }, env);
  if (!storeUrl && !isLogIn(dataDir)) {
    throw new AgonError(
      'DATA.EMPTY',
      `There is no arena in ${dataDir}. Start one with "agon start", or name its folder with --data.`,
    );
  }
  const store = await openLog({ dataDir, storeUrl }, { readOnly: true });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** The whole log, page by page. */
export async function* logPages(store: EventStore): AsyncGenerator<readonly RecordedEvent[]> {
  for (let after = 0; ; ) {
    const page = await store.readAll({ after, limit: 1024 });
    const last = page.at(-1);
    if (!last) return;
    yield page;
    after = last.position;
  }
}

/** Reads the whole log into a view, in memory: the same rows that the database holds, without the database. */
export async function readView(store: EventStore, view: View): Promise<MemorySink> {
  const sink = new MemorySink();
  const projector = new Projector(view, sink, upcast);
  for await (const events of logPages(store)) await projector.project(events);
  return sink;
}
