import db, { type EventStoreDBClient, type Filter, type ResolvedEvent } from '@eventstore/db-client';
import type { AgonError } from '../../kernel/index.js';
import { type Address, shownAddress } from './eventstoredb-address.js';
import { readAllFiltered } from './eventstoredb-client.js';
import { deleted, truncated } from './eventstoredb-errors.js';

const PAGE_EVENTS = 1_000;
/** Where the server has a stream begin that was deleted. */
const DELETED = 2n ** 63n - 1n;

type EventOfServer = NonNullable<ResolvedEvent['event']>;
type Notes = Readonly<Record<string, unknown>> | undefined;

/**
 * The streams of ours that somebody has deleted or cut: a server notes it in a stream beside each, and where one is gone
 * for good. Only the last note on a stream counts, since what is noted can be taken back.
 */
export async function removedFrom(client: EventStoreDBClient, address: Address): Promise<AgonError[]> {
  const shown = shownAddress(address.url);
  const faults: AgonError[] = [];
  for await (const { streamId } of eventsOf(client, db.eventTypeFilter({ prefixes: ['$streamDeleted'] }))) {
    if (!isOurs(streamId, address)) continue;
    faults.push(deleted(streamId.slice(address.prefix.length), shown, 'nothing can be read from it or added to it'));
  }
  const notes = new Map<string, Notes>();
  const beside = db.streamNameFilter({ prefixes: [`$$${address.prefix}`] });
  for await (const { streamId, type, data } of eventsOf(client, beside)) {
    const stream = streamId.slice(2);
    if (type === '$metadata' && isOurs(stream, address)) notes.set(stream.slice(address.prefix.length), data as Notes);
  }
  for (const [stream, noted] of notes) {
    const fault = faultOf(stream, noted, shown);
    if (fault) faults.push(fault);
  }
  return faults;
}

const isOurs = (stream: string, { prefix }: Address) => stream.startsWith(prefix) && !stream.startsWith('$');

function faultOf(stream: string, noted: Notes, address: string): AgonError | undefined {
  const { $tb: first, $maxCount: most, $maxAge: age } = noted ?? {};
  // JSON's numbers cannot hold the one that stands for deleted; what is near it means it.
  if (Number(first ?? 0) >= Number(DELETED)) return deleted(stream, address, 'its events are not read any more');
  if (Number(first ?? 0) > 0) return truncated(stream, address, `it begins at revision ${first}`);
  if (most !== undefined) return truncated(stream, address, `only ${most} events of it are kept`);
  if (age !== undefined) return truncated(stream, address, `its events are kept for ${age} seconds`);
  return undefined;
}

async function* eventsOf(client: EventStoreDBClient, filter: Filter): AsyncGenerator<EventOfServer> {
  for (let place: number | 'start' = 'start'; ; ) {
    let last: number | undefined;
    const page: AsyncIterable<ResolvedEvent> = readAllFiltered(client, { place, limit: PAGE_EVENTS }, filter);
    for await (const { event } of page) {
      if (!event) continue;
      const position = Number(event.position?.commit ?? 0);
      // Where the page before this one ended.
      if (position !== place) yield event;
      last = position;
    }
    if (last === undefined || last === place) return;
    place = last;
  }
}
