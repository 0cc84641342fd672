import { z } from 'zod';
import { AgonError, roles, type SealedEvent } from '../services/kernel/index.js';

/** How an event of Agon stands in EventStoreDB's protocol: its type and data as they are, the rest as metadata. */
interface WireEvent {
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
}

const text = z.string().max(500);
const digest = z.string().regex(/^[0-9a-f]{64}$/);

/** The envelope's fields that EventStoreDB has no place of its own for. Two go by the names that its users know. */
const envelope = z.object({
  id: text,
  version: z.int().min(1),
  time: text,
  commandId: text,
  inputHash: digest,
  $correlationId: text,
  $causationId: text,
  actor: z.strictObject({ id: text, role: z.enum(roles) }),
  prevHash: digest,
  hash: digest,
});

const RESERVED = new Set<string>([...Object.keys(envelope.shape), 'enclosed']);

/** An event that came with metadata of its own is recorded with it: the hash has to cover both. */
interface Enclosure {
  readonly $data: unknown;
  readonly $metadata: Record<string, unknown>;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isEnclosed = (data: unknown): data is Enclosure =>
  isObject(data) &&
  Object.keys(data).length === 2 &&
  '$data' in data &&
  isObject(data.$metadata) &&
  !Object.keys(data.$metadata).some((key) => RESERVED.has(key));

/**
 * What is recorded for an event that came without an envelope: its data, or both if there is metadata to be kept.
 *
 * @example enclose({ by: 1 }, { tenant: 'a' }) // { $data: { by: 1 }, $metadata: { tenant: 'a' } }
 */
export function enclose(data: unknown, metadata: Record<string, unknown>): unknown {
  const taken = Object.keys(metadata).find((key) => RESERVED.has(key) && !key.startsWith('$'));
  if (taken) throw new AgonError('EVENT.NOT_SEALED', `The metadata has "${taken}", a field of Agon's own envelope.`);
  const { $correlationId: _correlation, $causationId: _causation, ...own } = metadata;
  return Object.keys(own).length > 0 || isEnclosed(data) ? { $data: data, $metadata: own } : data;
}

/** The event's data and metadata as they cross the wire; `fromWire` gives the very same event back. */
export function toWire(event: SealedEvent): { data: unknown; metadata: Record<string, unknown> } {
  const { id, version, time, meta, prevHash, hash } = event;
  const { commandId, inputHash, correlationId, causationId, actor } = meta;
  const sealed = {
    id,
    version,
    time,
    commandId,
    inputHash,
    $correlationId: correlationId,
    $causationId: causationId,
    actor,
    prevHash,
    hash,
  };
  if (!isEnclosed(event.data)) return { data: event.data, metadata: sealed };
  return { data: event.data.$data, metadata: { ...event.data.$metadata, ...sealed, enclosed: true } };
}

/** Whether somebody has sealed this event, well or badly. */
export const isSealed = (metadata: unknown): boolean => isObject(metadata) && 'hash' in metadata;

/** The event with its envelope. Refuses what is no envelope; whether its hash holds is for others to check. */
export function fromWire({ stream, revision, type, data: given, metadata }: WireEvent): SealedEvent {
  const parsed = envelope.safeParse(metadata);
  if (!parsed.success) {
    const why = z.prettifyError(parsed.error).replaceAll('\n', ' ');
    throw new AgonError('EVENT.NOT_SEALED', `${type} at revision ${revision} of ${stream} has no envelope: ${why}`);
  }
  const { id, version, time, commandId, inputHash, $correlationId, $causationId, actor, prevHash, hash } = parsed.data;
  const meta = { commandId, inputHash, correlationId: $correlationId, causationId: $causationId, actor };
  const data = (metadata as { enclosed?: unknown }).enclosed === true ? reclose(given, metadata) : given;
  return { id, type, version, stream, revision, time, data, meta, prevHash, hash };
}

function reclose(data: unknown, metadata: unknown): Enclosure {
  const own = Object.entries(metadata as object).filter(([key]) => !RESERVED.has(key));
  return { $data: data, $metadata: Object.fromEntries(own) };
}

/**
 * The id under which an event is written to EventStoreDB: a UUID (version 8) made of its hash. EventStoreDB takes an
 * append for a repetition if the ids are the same, whatever the content; with this id, the same id is the same content.
 */
export function contentId({ hash }: Pick<SealedEvent, 'hash'>): string {
  const variant = '89ab'[Number.parseInt(hash.charAt(16), 16) & 3];
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}
