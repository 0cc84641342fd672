import { existsSync, readFileSync } from 'node:fs';
import { addressOf, shownAddress } from '../../services/adapters/store/eventstoredb-address.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { AgonError, type EventStore } from '../../services/kernel/index.js';
import { EMBEDDED, folderLayout } from '../../services/runtime/data-folder.js';
import type { Config } from '../../services/runtime/settings.js';

type Where = Pick<Config, 'dataDir' | 'storeUrl'>;

/** Opens the log that the configuration names: the one in the data folder, or EventStoreDB's. */
export async function openLog({ dataDir, storeUrl }: Where, options: { readOnly?: boolean } = {}): Promise<EventStore> {
  if (storeUrl) {
    // Its client takes a while to load, and most commands do without it.
    const { EventStoreDbStore } = await import('../../services/adapters/store/eventstoredb.js');
    return EventStoreDbStore.open(storeUrl.reveal());
  }
  const { log, moved } = folderLayout(dataDir);
  if (!options.readOnly && existsSync(moved)) {
    const { to } = JSON.parse(readFileSync(moved, 'utf8')) as { to: string };
    throw new AgonError(
      'DATA.MOVED',
      `The log of ${dataDir} has moved to ${to}. Set AGON_STORE to its address; here it can only be read.`,
      { to },
    );
  }
  return LmdbEventStore.open(log, options);
}

/** What the log is called, without anybody's key. */
export function logName({ storeUrl }: Where): string {
  if (!storeUrl) return EMBEDDED;
  const { url, prefix } = addressOf(storeUrl.reveal());
  return prefix ? `${shownAddress(url)}?streamPrefix=${prefix}` : shownAddress(url);
}
