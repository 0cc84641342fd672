import { crc32, deflateRawSync } from 'node:zlib';

/** Archives as no honest tool would write them. Every field that a reader might believe can be set to a lie. */
export interface ArchiveEntry {
  readonly name: string;
  readonly content?: string | Buffer;
  /** Of a tar: the letter of its type, and where a link leads. */
  readonly type?: string;
  readonly linkTo?: string;
  /** Of a zip. */
  readonly mode?: number;
  readonly flags?: number;
  readonly method?: number;
  readonly crc?: number;
  /** How many bytes it says that it has. */
  readonly bytes?: number;
  /** The name that the entry itself has, when the list gives another. */
  readonly localName?: string;
}

const tarBlockBytes = 512;

export function tarOf(entries: readonly ArchiveEntry[], end = Buffer.alloc(2 * tarBlockBytes)): Buffer {
  const blocks = entries.map(({ name, content = '', type = '0', linkTo = '', bytes }) => {
    const data = Buffer.from(content);
    const header = Buffer.alloc(tarBlockBytes);
    const octal = (value: number, at: number, digits: number) =>
      header.write(value.toString(8).padStart(digits, '0'), at, 'latin1');
    header.write(name, 0, 100);
    octal(0o644, 100, 7);
    octal(bytes ?? data.length, 124, 11);
    header.write(type, 156, 'latin1');
    header.write(linkTo, 157, 100);
    header.write('ustar\x0000', 257, 'latin1');
    header.fill(' ', 148, 156);
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      148,
      6,
    );
    header[154] = 0;
    return Buffer.concat([header, data, Buffer.alloc(-data.length & (tarBlockBytes - 1))]);
  });
  return Buffer.concat([...blocks, end]);
}

/** A name for the next entry, in the way of pax; longer than a header has room for, or holding anything at all. */
export function longName(name: string, key = 'path'): ArchiveEntry {
  const text = ` ${key}=${name}\n`;
  let length = text.length + 1;
  while (`${length}`.length + text.length !== length) length += 1;
  return { name: 'long', type: 'x', content: `${length}${text}` };
}

export function zipOf(entries: readonly ArchiveEntry[], prefix = Buffer.alloc(0)): Buffer {
  const local: Buffer[] = [prefix];
  const list: Buffer[] = [];
  let at = prefix.length;
  for (const entry of entries) {
    const data = Buffer.from(entry.content ?? '');
    const { flags = 0, method = 8, mode = 0o100644, crc = crc32(data), bytes = data.length, localName } = entry;
    const packed = method === 8 ? deflateRawSync(data) : data;
    const head = (name: string, before: number) => {
      const fields = Buffer.alloc(26);
      fields.writeUInt16LE(20, 0);
      fields.writeUInt16LE(flags, 2);
      fields.writeUInt16LE(method, 4);
      fields.writeUInt32LE(crc, 10);
      fields.writeUInt32LE(packed.length, 14);
      fields.writeUInt32LE(bytes, 18);
      fields.writeUInt16LE(Buffer.byteLength(name), 22);
      const signature = Buffer.alloc(before);
      signature.writeUInt32LE(before === 4 ? 0x04034b50 : 0x02014b50);
      return Buffer.concat([signature, fields]);
    };
    const rest = Buffer.alloc(14);
    rest.writeUInt16LE(mode, 8);
    rest.writeUInt32LE(at, 10);
    list.push(head(entry.name, 6), rest, Buffer.from(entry.name));
    const own = Buffer.concat([head(localName ?? entry.name, 4), Buffer.from(localName ?? entry.name), packed]);
    local.push(own);
    at += own.length;
  }
  const listBytes = list.reduce((sum, { length }) => sum + length, 0);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listBytes, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...local, ...list, end]);
}
