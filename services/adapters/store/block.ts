import { crc32 } from 'node:zlib';
import { Packr } from 'msgpackr';
import { AgonError } from '../../kernel/errors.js';
import { type EventMeta, type RecordedEvent, recomputeHash } from '../../kernel/event.js';

/**
 * The storage format of the embedded log. Changing anything here needs a new format byte and a reader for the old one.
 *
 * A block holds the events of one commit: format (u8), CRC-32 of all that follows (u32), number of events (u32), bytes
 * of the body (u32), body, zeros up to BLOCK_BYTES_MIN. The body is one MessagePack value with msgpackr's records and
 * bundled strings: the metas, one a command, and the events. An event holds the number of its meta, and null for what
 * is as in the event before it; nothing written twice makes it four times as fast to read as JSON. It is self-contained:
 * no table of shapes outside the block that could be lost. The padding makes LMDB keep every block on pages of its own:
 * an event is written once, is never moved, and stands in the file once.
 */
const FORMAT = 1;
const CHECKED_FROM = 5;
const HEADER_BYTES = 13;
const BLOCK_BYTES_MIN = 2048;
const packr = new Packr({ useRecords: true, bundleStrings: true, moreTypes: false } as object);

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type StoredMeta = Mutable<Omit<EventMeta, 'correlationId' | 'causationId'>> & {
  /** Null for the command's own id, which is what a command that starts something correlates with. */
  correlationId: string | null;
  causationId: string | null;
};
type StoredEvent = Mutable<Omit<RecordedEvent, 'meta' | 'type' | 'stream' | 'time' | 'prevHash'>> & {
  meta: number | EventMeta;
  type: string | null;
  stream: string | null;
  time: string | null;
  prevHash: string | null;
};
type Body = [StoredMeta[], StoredEvent[]];

export function encodeBlock(events: readonly RecordedEvent[]): Buffer {
  const body = packr.pack(toBody(events));
  const end = HEADER_BYTES + body.length;
  const block = Buffer.allocUnsafe(Math.max(BLOCK_BYTES_MIN, end)).fill(0, end);
  block[0] = FORMAT;
  block.writeUInt32LE(events.length, 5);
  block.writeUInt32LE(body.length, 9);
  body.copy(block, HEADER_BYTES);
  block.writeUInt32LE(crc32(block.subarray(CHECKED_FROM)), 1);
  return block;
}

/** Decodes a block whose first event stands at this position. Damage is an error that names the event. */
export function decodeBlock(block: Buffer, firstPosition: number): RecordedEvent[] {
  const count = countEvents(block, firstPosition);
  const body = block.subarray(HEADER_BYTES, HEADER_BYTES + block.readUInt32LE(9));
  if (crc32(block.subarray(CHECKED_FROM)) !== block.readUInt32LE(1)) throw damageIn(body, firstPosition, count);
  const events = fromBody(packr.unpack(body) as Body);
  if (events.length !== count) throw corrupt(firstPosition, `is in a block of ${events.length} events, not ${count}`);
  for (let i = 0; i < count; i++) {
    const event = events[i] as RecordedEvent;
    if (event.position !== firstPosition + i) throw corrupt(firstPosition + i, `says it stands at ${event.position}`);
  }
  return events;
}

function toBody(events: readonly RecordedEvent[]): Body {
  const metas: StoredMeta[] = [];
  let before: RecordedEvent | undefined;
  const stored = events.map((event): StoredEvent => {
    const { id, type, version, stream, revision, time, data, meta, prevHash, hash, position } = event;
    if (meta !== before?.meta) {
      const { commandId, inputHash, correlationId, causationId, actor } = meta;
      metas.push({
        commandId,
        inputHash,
        correlationId: correlationId === commandId ? null : correlationId,
        causationId: causationId === commandId ? null : causationId,
        actor,
      });
    }
    // Written out, because spreading and overwriting takes several times as long.
    const result: StoredEvent = {
      id,
      type: type === before?.type ? null : type,
      version,
      stream: stream === before?.stream ? null : stream,
      revision,
      time: time === before?.time ? null : time,
      data,
      meta: metas.length - 1,
      prevHash: prevHash === before?.hash ? null : prevHash,
      hash,
      position,
    };
    before = event;
    return result;
  });
  return [metas, stored];
}

/** Puts back what was left out, in place: a second object for each event would cost as much as reading the first. */
function fromBody([metas, events]: Body): RecordedEvent[] {
  for (const meta of metas) {
    meta.correlationId ??= meta.commandId;
    meta.causationId ??= meta.commandId;
  }
  let before = events[0] as StoredEvent;
  for (const event of events) {
    event.meta = metas[event.meta as number] as EventMeta;
    event.type ??= before.type;
    event.stream ??= before.stream;
    event.time ??= before.time;
    event.prevHash ??= before.hash;
    before = event;
  }
  return events as RecordedEvent[];
}

/** How many events a block says it holds. */
export function countEvents(block: Buffer, firstPosition: number): number {
  if (block.length < BLOCK_BYTES_MIN) throw corrupt(firstPosition, 'is cut short');
  if (block[0] !== FORMAT) throw corrupt(firstPosition, `is in a block of the unknown format ${block[0]}`);
  return block.readUInt32LE(5);
}

/** Finds the event that made the checksum fail: the first one that does not match its own hash. */
function damageIn(body: Buffer, firstPosition: number, count: number): AgonError {
  const together = count === 1 ? '' : ` or one of the ${count - 1} written with it`;
  try {
    const events = fromBody(packr.unpack(body) as Body);
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
