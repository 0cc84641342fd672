import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { env } from 'node:process';
import { probe } from '../../services/adapters/store/probe.js';
import { asAgonError, chainFault, EMPTY_HEAD, type EventStore, type StreamHead } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { logPages, withLog } from './offline.js';

export interface Verification {
  readonly verified: boolean;
  readonly events: number;
  readonly streams: number;
  /**
   * A digest of every hash in the order of the log. The chains show that no event was changed; only somebody who noted
   * this digest before can tell that none was removed from the end, or reordered between streams.
   */
  readonly logHash?: string;
  /**
   * A digest of every stream's name, last revision and last hash, by name. A stream's last hash stands for all of it, so
   * this is the same for two logs with the same streams, however the streams came to lie between each other.
   */
  readonly streamsHash?: string;
  /** The first event that does not hold, and why. */
  readonly fault?: { code: string; message: string; [detail: string]: unknown };
}

/**
 * Re-checks every event of every stream: dense revisions, unbroken chain, and the hash of the content, recomputed with
 * the reference implementation of RFC 8785 and not with the code that wrote it.
 */
export async function verifyStore(
  store: EventStore,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<Verification> {
  const heads = new Map<string, StreamHead>();
  const total = await store.lastPosition();
  let events = 0;
  const digest = createHash('sha256');
  try {
    for await (const page of logPages(store)) {
      for (const event of page) {
        const { id: eventId, type, stream, revision, position } = event;
        const why = chainFault(event, heads.get(stream) ?? EMPTY_HEAD);
        if (why) {
          const message = `${type} ${eventId} at position ${position} (revision ${revision} of ${stream}): ${why}.`;
          const fault = { code: 'LOG.BROKEN_CHAIN', message, eventId, type, stream, revision, position };
          return { verified: false, events, streams: heads.size, fault };
        }
        heads.set(stream, { revision, hash: event.hash });
        digest.update(event.hash);
        events += 1;
      }
      onProgress(events, total);
    }
    // A stream that was removed may still stand in the log of all, until the server tidies up.
    for (const fault of (await store.removed?.()) ?? []) throw fault;
    const hashes = { logHash: digest.digest('hex'), streamsHash: streamsHashOf(heads) };
    return { verified: true, events, streams: heads.size, ...hashes };
  } catch (error) {
    return { verified: false, events, streams: heads.size, fault: faultOf(error) };
  }
}

function streamsHashOf(heads: ReadonlyMap<string, StreamHead>): string {
  const lines = [...heads].map(([stream, { revision, hash }]) => `${stream} ${revision} ${hash}\n`);
  return createHash('sha256').update(lines.sort().join('')).digest('hex');
}

/** Verifies the log of a data folder. A file that a reader cannot survive is found by the probe, in a process of its own. */
export async function verifyFolder(
  dataDir: string,
  onProgress?: (done: number, total: number) => void,
): Promise<Verification> {
  try {
    if (!parseConfig({ dataDir }, env).storeUrl) await probe(join(folderLayout(dataDir).log));
  } catch (error) {
    return { verified: false, events: 0, streams: 0, fault: faultOf(error) };
  }
  return withLog(dataDir, (store) => verifyStore(store, onProgress));
}

function faultOf(error: unknown): { code: string; message: string } {
  const { code, message, details } = asAgonError(error);
  return { ...details, code, message };
}
