import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordedEvent } from '../../kernel/index.js';

/**
 * The messages of gRPC between the adapter of commit 1743556 and the endpoint of that commit, in base64, and the events
 * that they are about. It is never made again: servers that people have hold what was written then.
 */
export const golden = JSON.parse(readFileSync(join(import.meta.dirname, 'golden', 'eventstoredb.json'), 'utf8')) as {
  /** Requests to append, in the order in which they were sent: one and up to four events each. */
  readonly written: readonly { readonly call: string; readonly message: string }[];
  /** The answers to a read of all of them. */
  readonly read: readonly string[];
  readonly events: readonly RecordedEvent[];
};
