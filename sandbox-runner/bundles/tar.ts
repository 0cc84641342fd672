import { corrupt, type Entry, unsupported } from './bundle.js';

const blockBytes = 512;

const kinds: Readonly<Record<string, Entry['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'link',
  '2': 'link',
  '3': 'special',
  '4': 'special',
  '5': 'folder',
  '6': 'special',
};

/** Text up to the first NUL. What stands behind it is a name that only some tools would see. */
function text(field: Buffer): string {
  const end = field.indexOf(0);
  if (end >= 0 && field.subarray(end).some((byte) => byte !== 0)) return field.toString('latin1');
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

function octal(field: Buffer, what: string): number {
  if ((field[0] ?? 0) & 0x80) throw unsupported(`a ${what} in base 256`);
  const digits = field
    .toString('latin1')
    .replace(/[\0 ]+$/, '')
    .trimStart();
  if (!/^[0-7]*$/.test(digits)) throw corrupt(`a ${what} is not a number`);
  return Number.parseInt(digits || '0', 8);
}

function assertChecksum(block: Buffer): void {
  let sum = 0;
  for (let at = 0; at < blockBytes; at += 1) sum += at >= 148 && at < 156 ? 32 : (block[at] ?? 0);
  if (sum !== octal(block.subarray(148, 156), 'checksum')) throw corrupt('a checksum of the tar does not match');
}

/** The records of an extended header that could change what an entry is; the rest are times and owners. */
function extendedName(content: Buffer): string | undefined {
  let name: string | undefined;
  for (let at = 0; at < content.length; ) {
    const record = /^([1-9]\d{0,7}) /.exec(content.toString('latin1', at, at + 9));
    const length = Number(record?.[1]);
    if (!record || at + length > content.length || content[at + length - 1] !== 10) {
      throw corrupt('an extended header is malformed');
    }
    const [key = '', ...value] = content.toString('utf8', at + record[0].length, at + length - 1).split('=');
    if (key === 'size' || key.startsWith('GNU.sparse')) throw unsupported(`the extended header ${key}`);
    if (key === 'path') name = value.join('=');
    at += length;
  }
  return name;
}

/** Reads POSIX tar, with the long names of GNU and of pax. Nothing after a mistake is believed. */
export function* tarEntries(archive: Buffer): Generator<Entry> {
  let longName: string | undefined;
  for (let at = 0; ; ) {
    const block = archive.subarray(at, at + blockBytes);
    if (block.length < blockBytes) throw corrupt('it ends in the middle');
    if (block.every((byte) => byte === 0)) return;
    assertChecksum(block);
    const type = String.fromCharCode(block[156] ?? 0);
    const bytes = octal(block.subarray(124, 136), 'size');
    // Links and the like have no content, whatever their header says of a size.
    const hasContent = !'123456'.includes(type);
    const start = at + blockBytes;
    const end = start + (hasContent ? bytes : 0);
    if (end > archive.length) throw corrupt('it ends in the middle');
    if (type === 'x' || type === 'g' || type === 'L') {
      const content = archive.subarray(start, end);
      const name = type === 'L' ? text(content) : extendedName(content);
      if (type === 'g' && name !== undefined) throw unsupported('one name for all entries');
      longName = name ?? longName;
    } else {
      const kind = type === 'K' ? 'link' : kinds[type];
      if (kind === undefined) throw unsupported(`entries of type ${JSON.stringify(type)}`);
      const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? text(block.subarray(345, 500)) : '';
      const name = longName ?? (prefix === '' ? '' : `${prefix}/`) + text(block.subarray(0, 100));
      longName = undefined;
      yield {
        name,
        // Before there were types, a name with a slash at its end was a folder.
        kind: kind === 'file' && name.endsWith('/') ? 'folder' : kind,
        bytes: end - start,
        content: () => archive.subarray(start, end),
      };
    }
    at = start + Math.ceil((end - start) / blockBytes) * blockBytes;
  }
}
