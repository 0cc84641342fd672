import { crc32, inflateRawSync } from 'node:zlib';
import { corrupt, type Entry, refused, unsupported } from './bundle.js';

const signature = { local: 0x04034b50, central: 0x02014b50, end: 0x06054b50, zip64: 0x07064b50 };
const headBytes = { local: 30, central: 46, end: 22, zip64: 20 };
const commentBytesMax = 0xffff;
/** Encrypted, strongly encrypted, or with its header hidden. */
const encryptedBits = 0x2041;
const patchBit = 0x20;
const fileTypeMask = 0o170000;
const fileTypes: ReadonlyMap<number, Entry['kind']> = new Map([
  [0, 'file'],
  [0o100000, 'file'],
  [0o040000, 'folder'],
  [0o120000, 'link'],
]);

/** The end of the list of contents. It has to be the very end of the file, or two tools could see two archives. */
function findEnd(archive: Buffer): number {
  const first = Math.max(0, archive.length - headBytes.end - commentBytesMax);
  for (let at = archive.length - headBytes.end; at >= first; at -= 1) {
    if (archive.readUInt32LE(at) !== signature.end) continue;
    if (at + headBytes.end + archive.readUInt16LE(at + 20) === archive.length) return at;
  }
  throw corrupt('it has no list of contents, or ends in the middle');
}

/** What the list of contents says of one entry, and where it goes on. */
function listedAt(archive: Buffer, at: number) {
  const [nameBytes = 0, extraBytes = 0, commentBytes = 0] = [28, 30, 32].map((o) => archive.readUInt16LE(at + o));
  const nameAt = at + headBytes.central;
  return {
    name: archive.toString('utf8', nameAt, nameAt + nameBytes),
    flags: archive.readUInt16LE(at + 8),
    method: archive.readUInt16LE(at + 10),
    crc: archive.readUInt32LE(at + 16),
    packedBytes: archive.readUInt32LE(at + 20),
    bytes: archive.readUInt32LE(at + 24),
    mode: archive.readUInt16LE(at + 40),
    localAt: archive.readUInt32LE(at + 42),
    next: nameAt + nameBytes + extraBytes + commentBytes,
  };
}

type ListEntry = ReturnType<typeof listedAt>;

function list(archive: Buffer): { listed: ListEntry[]; listAt: number } {
  const end = findEnd(archive);
  const [disk, listDisk, here, count] = [4, 6, 8, 10].map((offset) => archive.readUInt16LE(end + offset));
  const listBytes = archive.readUInt32LE(end + 12);
  const listAt = archive.readUInt32LE(end + 16);
  const locator = end - headBytes.zip64;
  const has64 = locator >= 0 && archive.readUInt32LE(locator) === signature.zip64;
  if (has64 || count === 0xffff || listAt === 0xffffffff) throw unsupported('zip64');
  if (disk !== 0 || listDisk !== 0 || here !== count) throw unsupported('several volumes');
  if (listAt + listBytes !== end) throw corrupt('its list of contents is not where it should be');
  const listed: ListEntry[] = [];
  let at = listAt;
  while (at < end) {
    if (at + headBytes.central > end || archive.readUInt32LE(at) !== signature.central) {
      throw corrupt('its list of contents is malformed');
    }
    const entry = listedAt(archive, at);
    listed.push(entry);
    at = entry.next;
  }
  if (at !== end || listed.length !== count) throw corrupt('its list of contents is malformed');
  return { listed, listAt };
}

/** Where the packed bytes of an entry lie. The entry says once more what it is, and both have to agree. */
function locate(archive: Buffer, entry: ListEntry, listAt: number): { start: number; end: number } {
  const { localAt, name } = entry;
  if (localAt + headBytes.local > listAt || archive.readUInt32LE(localAt) !== signature.local) {
    throw corrupt(`${JSON.stringify(name)} is not where the list says`);
  }
  const [flags = 0, method, nameBytes = 0, extraBytes = 0] = [6, 8, 26, 28].map((offset) =>
    archive.readUInt16LE(localAt + offset),
  );
  const nameAt = localAt + headBytes.local;
  const same = (flags & encryptedBits) === 0 && method === entry.method;
  if (!same || archive.toString('utf8', nameAt, nameAt + nameBytes) !== name) {
    throw corrupt(`the list says something else of ${JSON.stringify(name)} than the entry itself`);
  }
  const start = nameAt + nameBytes + extraBytes;
  if (start + entry.packedBytes > listAt) throw corrupt(`${JSON.stringify(name)} ends in the middle`);
  return { start, end: start + entry.packedBytes };
}

function unpack(packed: Buffer, { name, method, bytes, crc }: ListEntry): Buffer {
  const wrong = corrupt(`${JSON.stringify(name)} does not unpack to what the list says`);
  let content = packed;
  if (method === 8) {
    try {
      // Stops as soon as there is more than was declared, which was checked before: a bomb never goes off.
      content = inflateRawSync(packed, { maxOutputLength: Math.max(1, bytes) });
    } catch {
      throw wrong;
    }
  }
  if (content.length !== bytes || crc32(content) !== crc) throw wrong;
  return content;
}

/** Reads zip, stored or deflated. What one tool could read otherwise than another is refused. */
export function* zipEntries(archive: Buffer): Generator<Entry> {
  const { listed, listAt } = list(archive);
  const spans: { start: number; end: number }[] = [];
  for (const entry of listed) {
    const { name, flags, method, mode, bytes } = entry;
    if (flags & encryptedBits) throw refused('ENCRYPTED', 'The archive is encrypted. Pack it without a password.');
    if (flags & patchBit || (method !== 0 && method !== 8)) throw unsupported(`compression method ${method}`);
    if (bytes === 0xffffffff || entry.packedBytes === 0xffffffff) throw unsupported('zip64');
    const { start, end } = locate(archive, entry, listAt);
    if (spans.some((span) => start < span.end && span.start < end)) throw corrupt('two entries share the same bytes');
    spans.push({ start, end });
    const kind = fileTypes.get(mode & fileTypeMask) ?? 'special';
    yield {
      name,
      kind: kind === 'file' && name.endsWith('/') ? 'folder' : kind,
      bytes,
      content: () => unpack(archive.subarray(start, end), entry),
    };
  }
}
