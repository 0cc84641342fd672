import { crc32 } from 'node:zlib';
import { Packr } from 'msgpackr';
import { AgonError, type RecordedEvent, recomputeHash } from '../../kernel/index.js';

/**
 * The storage format of the embedded log. Changing anything here needs a new format byte and a reader for the old one.
 *
 * A block holds the events of one commit: format (u8), number of events (u32), CRC-32 of the body (u32), body. The
 * body is one MessagePack array of envelopes with msgpackr's records and bundled strings. It is self-contained: no
 * table of shapes outside the block that could be lost. One body a block and bundled strings make it three times as
 * fast to read as JSON.
 */
const FORMAT = 1;
const HEADER_BYTES = 9;
const packr = new Packr({ useRecords: true, bundleStrings: true, moreTypes: false } as object);

export function encodeBlock(events: readonly RecordedEvent[]): Buffer {
  const body = packr.pack(events);
  const block = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  block[0] = FORMAT;
  block.writeUInt32LE(events.length, 1);
  block.writeUInt32LE(crc32(body), 5);
  body.copy(block, HEADER_BYTES);
  return block;
}

/** Decodes a block whose first event stands at this position. Damage is an error that names the event. */
export function decodeBlock(block: Buffer, firstPosition: number): RecordedEvent[] {
  const count = countEvents(block, firstPosition);
  const body = block.subarray(HEADER_BYTES);
  if (crc32(body) !== block.readUInt32LE(5)) throw damageIn(body, firstPosition, count);
  const events = packr.unpack(body) as RecordedEvent[];
  if (events.length !== count) throw corrupt(firstPosition, `is in a block of ${events.length} events, not ${count}`);
  for (let i = 0; i < count; i++) {
    const event = events[i] as RecordedEvent;
    if (event.position !== firstPosition + i) throw corrupt(firstPosition + i, `says it stands at ${event.position}`);
  }
  return events;
}

/** How many events a block says it holds. */
export function countEvents(block: Buffer, firstPosition: number): number {
  if (block.length <= HEADER_BYTES) throw corrupt(firstPosition, 'is cut short');
  if (block[0] !== FORMAT) throw corrupt(firstPosition, `is in a block of the unknown format ${block[0]}`);
  return block.readUInt32LE(1);
}

/** Finds the event that made the checksum fail: the first one that does not match its own hash. */
function damageIn(body: Buffer, firstPosition: number, count: number): AgonError {
  const together = count === 1 ? '' : ` or one of the ${count - 1} written with it`;
  try {
    const events = packr.unpack(body) as RecordedEvent[];
    const damaged = events.findIndex((event, i) => event.position !== firstPosition + i || !matchesHash(event));
    const event = events[damaged];
    if (!event) return corrupt(firstPosition, `${together} fails its checksum`);
    const name = `(${event.type} ${event.id}, revision ${event.revision} of ${event.stream})`;
    return corrupt(firstPosition + damaged, `${name} does not match its hash`, event);
  } catch {
    return corrupt(firstPosition, `${together} cannot be decoded`);
  }
}

const matchesHash = (event: RecordedEvent) => recomputeHash(event) === event.hash;

export const corrupt = (position: number, what: string, event?: RecordedEvent) =>
  new AgonError(
    'STORE.CORRUPT',
    `The event at position ${position} ${what}. The log was changed outside of Agon or the disk is failing. ` +
      'Nothing was changed; restore the data folder from a backup.',
    event
      ? { position, eventId: event.id, type: event.type, stream: event.stream, revision: event.revision }
      : { position },
  );
