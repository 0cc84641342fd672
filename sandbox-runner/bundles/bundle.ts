import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { type AgentRuntime, AgonError, agentRuntime, canonical } from '../../services/kernel/index.js';
import { jsonOf } from '../json.js';
import { defaultLimits } from '../limits.js';

/** What a bundle may be. Its files together are bounded by the limit on an agent's code. */
export const bundleLimits = Object.freeze({
  files: 256,
  /** Whatever an archive lists: folders, and what is left out, too. */
  entries: 4_096,
  pathChars: 200,
  contentBytes: defaultLimits.sourceBytes,
  /** Of an archive, packed, and of a tar once its gzip is off. */
  archiveBytes: 4 * 1024 * 1024,
});

/** Something that an archive or a folder holds, before anything of it is believed. */
export interface Entry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'special';
  /** As declared. `content` answers with exactly as many, or throws. */
  readonly bytes: number;
  content(): Buffer;
}

/** Several files that are one agent. Paths are relative, portable and checked. */
export interface Bundle {
  readonly entry: string;
  readonly files: ReadonlyMap<string, Buffer>;
}

/** No file in JavaScript or Python can start like this, so code that does is a bundle and nothing else. */
const header = 'agon bundle 1\n';
const manifestName = 'agent.json';
/** By convention, at the top; a manifest may name another. */
const usualEntries = ['main.py', 'main.js', 'main.mjs', 'index.js'];

export const refused = (code: string, message: string, details: Record<string, unknown> = {}): AgonError =>
  new AgonError(`AGENTS.BUNDLE_${code}`, message, details);

export const corrupt = (why: string): AgonError => refused('CORRUPT', `The archive cannot be read: ${why}.`);

export const unsupported = (what: string): AgonError =>
  refused('UNSUPPORTED', `The archive uses ${what}, which is not supported. Pack it as a plain tar, tar.gz or zip.`);

const tooMany = (): AgonError => refused('TOO_MANY_FILES', `A bundle has at most ${bundleLimits.files} files.`);

const tooLarge = (): AgonError =>
  refused('TOO_LARGE', `The bundle is too large: its code may have ${bundleLimits.contentBytes} bytes, unpacked.`);

const portable = /^[A-Za-z0-9_.@+][A-Za-z0-9_.@+ -]*$/;

/** Why a path cannot be part of a bundle. What is portable here is the same file to every system and every tool. */
function whyUnsafe(path: string): string | undefined {
  if (path.includes('\0')) return 'it contains a NUL';
  if (path.includes('\\')) return 'it contains a backslash';
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'it is absolute';
  const parts = path.split('/');
  if (parts.includes('..')) return 'it leads out of the bundle';
  if (parts.includes('__proto__')) return 'it contains __proto__';
  const odd = parts.find((part) => !portable.test(part) || part === '.');
  if (odd !== undefined) return 'only letters, digits, spaces and . _ - + @ are portable, in parts divided by /';
  return undefined;
}

function assertSafe(path: string): void {
  const shown = JSON.stringify(path.slice(0, 100));
  const why = whyUnsafe(path);
  if (why) throw refused('UNSAFE_NAME', `The bundle has a file named ${shown}, and ${why}. Rename it.`);
  if (path.length > bundleLimits.pathChars) {
    throw refused('NAME_TOO_LONG', `The name ${shown}... is longer than ${bundleLimits.pathChars} characters.`);
  }
}

/** Names that are one to some file system are refused to all, or a bundle would mean different things on two machines. */
function claimer(): (path: string) => void {
  const taken = new Map<string, string>();
  return (path) => {
    const parts = path.split('/');
    for (let length = 1; length <= parts.length; length += 1) {
      const isFile = length === parts.length;
      const mine = parts.slice(0, length).join('/') + (isFile ? '' : '/');
      const key = parts.slice(0, length).join('/').toLowerCase();
      const other = taken.get(key);
      if (other !== undefined && (isFile || other !== mine)) {
        throw refused('NAME_TWICE', `The bundle has both ${other} and ${mine}, which some systems cannot tell apart.`);
      }
      taken.set(key, mine);
    }
  };
}

/** What tools leave behind. It is no part of an agent, in a folder as little as in an archive of it. */
const isLitter = (path: string): boolean =>
  path.split('/').some((part) => part.startsWith('.') || part === '__pycache__' || part === '__MACOSX');

/** Archives of "." name all that they hold from there, and folders end in a slash. */
function pathOf({ name, kind }: Entry): string {
  const path = name.replace(/^(\.\/)+/, '');
  return kind === 'folder' ? path.replace(/\/$/, '') : path;
}

/** Takes in what an archive or a folder holds, or refuses all of it. Nothing is ever written anywhere. */
export function collect(entries: Iterable<Entry>): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const claim = claimer();
  let left = bundleLimits.contentBytes;
  let seen = 0;
  for (const entry of entries) {
    seen += 1;
    if (seen > bundleLimits.entries) throw tooMany();
    const path = pathOf(entry);
    if (entry.kind === 'folder' && (path === '' || path === '.')) continue;
    assertSafe(path);
    if (entry.kind === 'link')
      throw refused('LINK', `${path} is a link. A bundle holds files alone: put a copy there.`);
    if (entry.kind === 'special') throw refused('SPECIAL_FILE', `${path} is a device or a pipe, and no file.`);
    if (entry.kind === 'folder' || isLitter(path)) continue;
    claim(path);
    if (files.size >= bundleLimits.files) throw tooMany();
    if (entry.bytes > left) throw tooLarge();
    left -= entry.bytes;
    files.set(path, entry.content());
  }
  return withoutWrapper(files);
}

/** Most archives of a folder hold that folder and nothing beside it. */
function withoutWrapper(files: Map<string, Buffer>): Map<string, Buffer> {
  const tops = new Set([...files.keys()].map((path) => path.slice(0, path.indexOf('/') + 1)));
  const [top = ''] = tops;
  if (tops.size !== 1 || top === '') return files;
  return new Map([...files].map(([path, content]) => [path.slice(top.length), content]));
}

const manifestSchema = z.strictObject({
  entry: z.string().optional(),
  runtime: agentRuntime.optional(),
});

function manifestOf(content: Buffer | undefined): z.output<typeof manifestSchema> {
  if (content === undefined) return {};
  const parsed = manifestSchema.safeParse(jsonOf(content.toString()));
  if (parsed.success) return parsed.data;
  const form = `{ "runtime": one of "${agentRuntime.options.join('", "')}", "entry": a file }`;
  throw refused('BAD_MANIFEST', `${manifestName} is not of the form ${form}, both of which may be left out.`);
}

/**
 * The one form in which these files are stored, sent and hashed, and what runs them. Order, times, modes and the way
 * they were packed leave no trace in it: the same files are the same code.
 */
export function bundleCode(given: ReadonlyMap<string, Buffer>): { source: string; runtime: AgentRuntime } {
  const manifest = manifestOf(given.get(manifestName));
  const files = new Map([...given].filter(([path]) => path !== manifestName));
  const entry = manifest.entry ?? usualEntry(files);
  if (!files.has(entry)) throw refused('NO_ENTRY', `${manifestName} names ${entry} as the entry, which is not there.`);
  const runtime = manifest.runtime ?? (entry.endsWith('.py') ? 'python' : 'javascript');
  if (!(runtime === 'python' ? /\.py$/ : /\.[cm]?js$/).test(entry)) {
    throw refused('BAD_MANIFEST', `${entry} is not a file that ${runtime} runs. Name another entry or runtime.`);
  }
  const source = write({ entry, files });
  if (Buffer.byteLength(source) > bundleLimits.contentBytes) throw tooLarge();
  return { source, runtime };
}

function usualEntry(files: ReadonlyMap<string, Buffer>): string {
  const [found, another] = usualEntries.filter((name) => files.has(name));
  if (found !== undefined && another === undefined) return found;
  const what = found === undefined ? `has none of ${usualEntries.join(', ')}` : `has both ${found} and ${another}`;
  throw refused('NO_ENTRY', `The bundle ${what}. Name its entry in ${manifestName}: { "entry": "..." }.`);
}

function write({ entry, files }: Bundle): string {
  const contents = [...files].map(([path, content]) => [
    path,
    isUtf8(content) ? content.toString() : { base64: content.toString('base64') },
  ]);
  return header + canonical({ entry, files: Object.fromEntries(contents) });
}

/** A bundle as it is stored and sent. Text is text, so that the log's readers can read it. */
const bundleSchema = z.strictObject({
  entry: z.string(),
  files: z.record(z.string(), z.union([z.string(), z.strictObject({ base64: z.string() })])),
});

/**
 * Reads an agent's code. Undefined when it is a plain file; throws when it starts like a bundle and is not one to the
 * letter, wherever it came from.
 */
export function bundleOf(source: string): Bundle | undefined {
  if (!source.startsWith(header)) return undefined;
  const parsed = bundleSchema.safeParse(jsonOf(source.slice(header.length)));
  if (!parsed.success) throw refused('CORRUPT', 'The code starts like a bundle, and is none.');
  const { entry } = parsed.data;
  const claim = claimer();
  const files = new Map<string, Buffer>();
  for (const [path, content] of Object.entries(parsed.data.files)) {
    assertSafe(path);
    claim(path);
    files.set(path, typeof content === 'string' ? Buffer.from(content) : Buffer.from(content.base64, 'base64'));
  }
  if (files.size > bundleLimits.files) throw tooMany();
  if (!files.has(entry)) throw refused('NO_ENTRY', 'The entry of the bundle is not in it.');
  if (write({ entry, files }) !== source) throw refused('CORRUPT', 'The bundle is not in its canonical form.');
  return { entry, files };
}

/** What a sandbox that runs a process is told to load. */
export const bootCode = (source: string): { source: string } | { bundle: z.output<typeof bundleSchema> } =>
  bundleOf(source) ? { bundle: JSON.parse(source.slice(header.length)) } : { source };
