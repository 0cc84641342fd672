import { crc32 } from 'node:zlib';
import { Packr } from 'msgpackr';
import { AgonError } from '../../kernel/errors.js';
import { type EventMeta, type RecordedEvent, type Role, recomputeHash, type SealedEvent } from '../../kernel/event.js';

/**
 * The storage format of the embedded log. Changing anything here needs a new format byte and a reader for the old one.
 *
 * A block holds the events of one commit: format (u8), CRC-32 of all that follows (u32), number of events (u32), bytes
 * of the text (u32), bytes of the values (u32), text, values, zeros up to BLOCK_BYTES_MIN. The text (UTF-8) has the
 * strings of all envelopes one after the other. The values are a MessagePack value with msgpackr's records and bundled
 * strings: the position of the first event, the length of the text, the fields of the envelopes, and the events' data. The fields are the
 * lengths of the strings and the numbers, in the order in which `fromBody` takes them; a length is written plus one, and
 * zero stands for a text that is known from what came before; names that come again and again are numbered. Columns are
 * written and read several times as fast as an object for each event. A block is self-contained: no table of shapes
 * outside of it that could be lost. The padding makes LMDB keep every block on pages of its own: an event is written
 * once, is never moved, and stands in the file once.
 */
const FORMAT = 2;
const CHECKED_FROM = 5;
const HEADER_BYTES = 17;
const BLOCK_BYTES_MIN = 2048;
const packr = new Packr({ useRecords: true, bundleStrings: true, moreTypes: false } as object);

interface Body {
  readonly text: string;
  readonly values: readonly [firstPosition: number, chars: number, fields: readonly number[], data: readonly unknown[]];
}

export function encodeBlock(events: readonly SealedEvent[], firstPosition: number): Buffer {
  const body = toBody(events, firstPosition);
  const values = packr.pack(body.values);
  const textBytes = Buffer.byteLength(body.text);
  const end = HEADER_BYTES + textBytes + values.length;
  const block = Buffer.allocUnsafe(Math.max(BLOCK_BYTES_MIN, end)).fill(0, end);
  block[0] = FORMAT;
  block.writeUInt32LE(events.length, 5);
  block.writeUInt32LE(textBytes, 9);
  block.writeUInt32LE(values.length, 13);
  block.write(body.text, HEADER_BYTES);
  values.copy(block, HEADER_BYTES + textBytes);
  block.writeUInt32LE(crc32(block.subarray(CHECKED_FROM)), 1);
  return block;
}

/** Decodes a block whose first event stands at this position. Damage is an error that names the event. */
export function decodeBlock(block: Buffer, firstPosition: number): RecordedEvent[] {
  const count = countEvents(block, firstPosition);
  if (crc32(block.subarray(CHECKED_FROM)) !== block.readUInt32LE(1)) throw damageIn(block, firstPosition, count);
  const events = fromBody(bodyOf(block));
  if (events.length !== count) throw corrupt(firstPosition, `is in a block of ${events.length} events, not ${count}`);
  const says = events[0]?.position;
  if (says !== firstPosition) throw corrupt(firstPosition, `says it stands at ${says}`);
  return events;
}

function bodyOf(block: Buffer): Body {
  const textEnd = HEADER_BYTES + block.readUInt32LE(9);
  const values = packr.unpack(block.subarray(textEnd, textEnd + block.readUInt32LE(13))) as Body['values'];
  // A byte for each character means ASCII, which is only copied.
  const encoding = values[1] === textEnd - HEADER_BYTES ? 'latin1' : 'utf8';
  return { text: block.toString(encoding, HEADER_BYTES, textEnd), values };
}

function toBody(events: readonly SealedEvent[], firstPosition: number): Body {
  const texts: string[] = [];
  const fields: number[] = [];
  const data: unknown[] = [];
  const names = new Map<string, number>();
  const write = (text: string) => {
    texts.push(text);
    fields.push(text.length + 1);
  };
  const writeUnless = (known: boolean, text: string) => {
    if (known) fields.push(0);
    else write(text);
  };
  const writeName = (name: string) => {
    const number = names.get(name);
    if (number !== undefined) {
      fields.push(number);
      return;
    }
    fields.push(names.size);
    names.set(name, names.size);
    write(name);
  };
  let before: SealedEvent | undefined;
  for (const event of events) {
    const { meta } = event;
    write(event.id);
    writeName(event.type);
    writeName(event.stream);
    writeUnless(event.time === before?.time, event.time);
    writeUnless(event.prevHash === before?.hash, event.prevHash);
    write(event.hash);
    fields.push(event.version, event.revision);
    data.push(event.data);
    // The events of one command share its meta.
    if (meta === before?.meta) fields.push(0);
    else {
      write(meta.commandId);
      write(meta.inputHash);
      // A command that starts something correlates with itself.
      writeUnless(meta.correlationId === meta.commandId, meta.correlationId);
      writeUnless(meta.causationId === meta.commandId, meta.causationId);
      writeName(meta.actor.id);
      writeName(meta.actor.role);
    }
    before = event;
  }
  const text = texts.join('');
  return { text, values: [firstPosition, text.length, fields, data] };
}

function fromBody({ text, values: [firstPosition, , fields, data] }: Body): RecordedEvent[] {
  const names: string[] = [];
  let field = 0;
  let at = 0;
  const read = (known: string): string => {
    const length = (fields[field++] as number) - 1;
    if (length < 0) return known;
    at += length;
    return text.slice(at - length, at);
  };
  const readName = (): string => {
    const number = fields[field++] as number;
    if (number === names.length) names.push(read(''));
    return names[number] as string;
  };
  const readMeta = (known: EventMeta | undefined): EventMeta => {
    if (known && fields[field] === 0) {
      field += 1;
      return known;
    }
    const commandId = read('');
    const inputHash = read('');
    const correlationId = read(commandId);
    const causationId = read(commandId);
    return { commandId, inputHash, correlationId, causationId, actor: { id: readName(), role: readName() as Role } };
  };
  let time = '';
  let hash = '';
  let meta: EventMeta | undefined;
  return data.map((data, i) => {
    const id = read('');
    const type = readName();
    const stream = readName();
    time = read(time);
    const prevHash = read(hash);
    hash = read('');
    const version = fields[field++] as number;
    const revision = fields[field++] as number;
    meta = readMeta(meta);
    return { id, type, version, stream, revision, time, data, meta, prevHash, hash, position: firstPosition + i };
  });
}

/** How many events a block says it holds. */
export function countEvents(block: Buffer, firstPosition: number): number {
  if (block.length < BLOCK_BYTES_MIN) throw corrupt(firstPosition, 'is cut short');
  if (block[0] !== FORMAT) throw corrupt(firstPosition, `is in a block of the unknown format ${block[0]}`);
  return block.readUInt32LE(5);
}

/** Finds the event that made the checksum fail: the first one that does not match its own hash. */
function damageIn(block: Buffer, firstPosition: number, count: number): AgonError {
  const together = count === 1 ? '' : ` or one of the ${count - 1} written with it`;
  try {
    const events = fromBody(bodyOf(block));
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
