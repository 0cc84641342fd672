import { crc32 } from 'node:zlib';
import { Packr } from 'msgpackr';
import { AgonError } from '../../kernel/errors.js';
import { type EventMeta, type RecordedEvent, type Role, recomputeHash, type SealedEvent } from '../../kernel/event.js';

/**
 * The storage format of the embedded log. Changing anything here needs a new format byte and a reader for the old one.
 *
 * A block holds the events of one commit: header, fields, text, data, zeros up to BLOCK_BYTES_MIN. The header has the
 * format (u8), the CRC-32 of all that follows it (u32), the number of events (u32), the position of the first (u48), the
 * bytes of the fields, of the text and of the data and the characters of the text (u32 each); little-endian. The text
 * (UTF-8) has the strings of all envelopes one after the other. The fields are the lengths of those strings and the
 * numbers, as variable-length integers in the order in which `toEvents` takes them; a length is written plus one, and zero
 * stands for a text that is known from what came before; names that come again and again are numbered. The data is a
 * MessagePack array with msgpackr's records and bundled strings. Columns are written and read several times as fast as
 * an object for each event. A block is self-contained: no table of shapes outside of it that could be lost. The padding
 * makes LMDB keep every block on pages of its own: an event is written once, is never moved, and stands in the file once.
 */
const FORMAT = 3;
const CHECKED_FROM = 5;
const HEADER_BYTES = 31;
const BLOCK_BYTES_MIN = 2048;
/** Text is decoded in pieces, because a string that was cut from one keeps all of it in memory. */
const PIECE_CHARS = 8192;
const packr = new Packr({ useRecords: true, bundleStrings: true, moreTypes: false } as object);

export function encodeBlock(events: readonly SealedEvent[], firstPosition: number): Buffer {
  const { fields, text } = columnsOf(events);
  const data = packr.pack(events.map((event) => event.data));
  const textBytes = Buffer.byteLength(text);
  const textAt = HEADER_BYTES + fields.length;
  const end = textAt + textBytes + data.length;
  const block = Buffer.allocUnsafe(Math.max(BLOCK_BYTES_MIN, end)).fill(0, end);
  block[0] = FORMAT;
  block.writeUInt32LE(events.length, 5);
  block.writeUIntLE(firstPosition, 9, 6);
  block.writeUInt32LE(fields.length, 15);
  block.writeUInt32LE(textBytes, 19);
  block.writeUInt32LE(data.length, 23);
  block.writeUInt32LE(text.length, 27);
  block.set(fields, HEADER_BYTES);
  block.write(text, textAt);
  data.copy(block, textAt + textBytes);
  block.writeUInt32LE(crc32(block.subarray(CHECKED_FROM)), 1);
  return block;
}

/** Decodes a block whose first event stands at this position. Damage is an error that names the event. */
export function decodeBlock(block: Buffer, firstPosition: number): RecordedEvent[] {
  const count = countEvents(block, firstPosition);
  if (crc32(block.subarray(CHECKED_FROM)) !== block.readUInt32LE(1)) throw damageIn(block, firstPosition, count);
  const events = toEvents(block);
  if (events.length !== count) throw corrupt(firstPosition, `is in a block of ${events.length} events, not ${count}`);
  const says = events[0]?.position;
  if (says !== firstPosition) throw corrupt(firstPosition, `says it stands at ${says}`);
  return events;
}

function columnsOf(events: readonly SealedEvent[]): { fields: readonly number[]; text: string } {
  const texts: string[] = [];
  const fields: number[] = [];
  const names = new Map<string, number>();
  const writeNumber = (number: number) => {
    let rest = number;
    for (; rest > 127; rest = Math.floor(rest / 128)) fields.push((rest % 128) + 128);
    fields.push(rest);
  };
  const write = (text: string) => {
    texts.push(text);
    writeNumber(text.length + 1);
  };
  const writeUnless = (known: boolean, text: string) => {
    if (known) fields.push(0);
    else write(text);
  };
  const writeName = (name: string) => {
    const number = names.get(name);
    writeNumber(number ?? names.size);
    if (number !== undefined) return;
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
    writeNumber(event.version);
    writeNumber(event.revision);
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
  return { fields, text: texts.join('') };
}

function toEvents(block: Buffer): RecordedEvent[] {
  const firstPosition = block.readUIntLE(9, 6);
  const textAt = HEADER_BYTES + block.readUInt32LE(15);
  const dataAt = textAt + block.readUInt32LE(19);
  const data = packr.unpack(block.subarray(dataAt, dataAt + block.readUInt32LE(23))) as unknown[];
  const text = new TextColumn(block, textAt, dataAt, block.readUInt32LE(27));
  const names: string[] = [];
  let field = HEADER_BYTES;
  const readNumber = (): number => {
    let byte = block[field++] as number;
    let number = byte & 127;
    for (let unit = 128; byte > 127; unit *= 128) {
      byte = block[field++] as number;
      number += (byte & 127) * unit;
    }
    return number;
  };
  const read = (known: string): string => {
    const length = readNumber() - 1;
    return length < 0 ? known : text.next(length);
  };
  const readName = (): string => {
    const number = readNumber();
    if (number === names.length) names.push(text.nextAlone(readNumber() - 1));
    return names[number] as string;
  };
  const readMeta = (known: EventMeta | undefined): EventMeta => {
    if (known && block[field] === 0) {
      field += 1;
      return known;
    }
    const commandId = read('');
    const inputHash = read('');
    const correlationId = read(commandId);
    const causationId = read(commandId);
    return { commandId, inputHash, correlationId, causationId, actor: { id: readName(), role: readName() as Role } };
  };
  const events: RecordedEvent[] = new Array(data.length);
  let time = '';
  let hash = '';
  let meta: EventMeta | undefined;
  for (let i = 0; i < data.length; i++) {
    const id = read('');
    const type = readName();
    const stream = readName();
    time = read(time);
    const prevHash = read(hash);
    hash = read('');
    const version = readNumber();
    const revision = readNumber();
    meta = readMeta(meta);
    const position = firstPosition + i;
    events[i] = { id, type, version, stream, revision, time, data: data[i], meta, prevHash, hash, position };
  }
  return events;
}

/** Hands out the strings of a text one after the other. */
class TextColumn {
  private readonly ascii: boolean;
  private piece = '';
  private pieceAt = 0;
  private at = 0;

  constructor(
    private readonly block: Buffer,
    private readonly start: number,
    end: number,
    chars: number,
  ) {
    // Where a byte isn't a character, a character's place is known only when all is decoded.
    this.ascii = end - start === chars;
    if (!this.ascii) this.piece = block.toString('utf8', start, end);
  }

  next(length: number): string {
    const from = this.at;
    this.at += length;
    if (this.ascii && this.at > this.pieceAt + this.piece.length) {
      this.piece = this.latin1(from, from + Math.max(length, PIECE_CHARS));
      this.pieceAt = from;
    }
    return this.piece.slice(from - this.pieceAt, this.at - this.pieceAt);
  }

  /** The next string in memory of its own: what is kept for long must not keep the text around it. */
  nextAlone(length: number): string {
    if (!this.ascii) return this.next(length);
    this.at += length;
    return this.latin1(this.at - length, this.at);
  }

  private latin1(from: number, to: number): string {
    return this.block.toString('latin1', this.start + from, this.start + to);
  }
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
    const events = toEvents(block);
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
