import { isUtf8 } from 'node:buffer';
import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { type AgentRuntime, AgonError } from '../../services/kernel/index.js';
import { bundleCode, bundleLimits, collect, corrupt, type Entry, refused } from './bundle.js';
import { tarEntries } from './tar.js';
import { zipEntries } from './zip.js';

/** An agent's code as the arena takes it, and what runs it. */
export interface AgentCode {
  readonly source: string;
  readonly runtime: AgentRuntime;
}

const tooLarge = () =>
  refused('TOO_LARGE', `The archive is too large: ${bundleLimits.archiveBytes} bytes are allowed, before unpacking.`);

function gunzip(archive: Buffer): Buffer {
  try {
    return gunzipSync(archive, { maxOutputLength: bundleLimits.archiveBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw corrupt('its gzip is damaged or ends in the middle');
  }
}

function entriesOf(archive: Buffer): Iterable<Entry> {
  if (archive.length > bundleLimits.archiveBytes) throw tooLarge();
  if (archive.readUInt16BE(0) === 0x1f8b) return tarEntries(gunzip(archive));
  // An empty zip is its end alone; a tar starts with a name.
  if (archive.toString('latin1', 0, 2) === 'PK') return zipEntries(archive);
  return tarEntries(archive);
}

/**
 * The agent in a tar, tar.gz or zip. All of it happens in memory; whatever is odd is refused with a code of
 * AGENTS.BUNDLE_*.
 */
export function archivedAgent(archive: Buffer): AgentCode {
  if (archive.length < 2) throw corrupt('it is empty');
  return bundleCode(collect(entriesOf(archive)));
}

const isArchive = (content: Buffer): boolean =>
  content.length >= 4 &&
  (content.readUInt16BE(0) === 0x1f8b ||
    [0x504b0304, 0x504b0506].includes(content.readUInt32BE(0)) ||
    content.toString('latin1', 257, 262) === 'ustar');

/** The agent in what somebody uploaded, by what it is and not by what it is called: an archive, or a file of code. */
export function uploadedAgent(content: Buffer): AgentCode {
  if (isArchive(content)) return archivedAgent(content);
  if (content.includes(0) || !isUtf8(content)) {
    throw refused('UNSUPPORTED', 'This is neither code in UTF-8 nor a tar, tar.gz or zip of it.');
  }
  return { source: content.toString(), runtime: 'javascript' };
}

const kindOf = (item: Dirent): Entry['kind'] =>
  item.isFile() ? 'file' : item.isDirectory() ? 'folder' : item.isSymbolicLink() ? 'link' : 'special';

function* folderEntries(root: string): Generator<Entry> {
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const item of readdirSync(join(root, folder), { withFileTypes: true })) {
      // What is hidden can be large, and is left out in any case.
      if (item.name.startsWith('.')) continue;
      const name = `${folder}${item.name}`;
      const kind = kindOf(item);
      const path = join(root, name);
      if (kind === 'folder') folders.push(`${name}/`);
      const bytes = kind === 'file' ? statSync(path).size : 0;
      yield { name, kind, bytes, content: () => readFileSync(path) };
    }
  }
}

/** The agent in a folder, the same as in any archive of it. */
export function folderAgent(folder: string): AgentCode {
  try {
    return bundleCode(collect(folderEntries(folder)));
  } catch (error) {
    if (error instanceof AgonError) throw error;
    throw new AgonError('FILE.UNREADABLE', `${folder} cannot be read: ${(error as Error).message}.`);
  }
}
