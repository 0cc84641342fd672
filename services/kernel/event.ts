import { hash as digest } from 'node:crypto';
import canonicalize from 'canonicalize';
import { canonical } from './canonical.js';
import { AgonError } from './errors.js';

export const roles = ['owner', 'operator', 'auditor', 'admin', 'runner', 'system'] as const;
export type Role = (typeof roles)[number];

/** What somebody may do in an organisation; each may what those before may. */
export const memberRoles = ['auditor', 'member', 'operator', 'admin', 'owner'] as const;
export type MemberRole = (typeof memberRoles)[number];

/** Who asked for something. */
export interface Actor {
  readonly id: string;
  readonly role: Role;
  /** The organisations that a person acts for as well. Not a part of what is recorded. */
  readonly memberOf?: Readonly<Record<string, MemberRole>>;
}

export interface EventMeta {
  readonly commandId: string;
  /** SHA-256 of the command's canonical data: the same command id with another input is refused, not replayed. */
  readonly inputHash: string;
  readonly correlationId: string;
  readonly causationId: string;
  readonly actor: Pick<Actor, 'id' | 'role'>;
}

/**
 * A fact, sealed: `hash` covers every other field here, and `prevHash` is the hash of the stream's previous event, so
 * a stream's last hash commits to its whole history. The names and meaning of these fields are the storage format.
 */
export interface SealedEvent {
  readonly id: string;
  readonly type: string;
  readonly version: number;
  readonly stream: string;
  readonly revision: number;
  readonly time: string;
  readonly data: unknown;
  readonly meta: EventMeta;
  readonly prevHash: string;
  readonly hash: string;
}

/** A sealed event with its place in the log. Positions grow, start at 1, and belong to a store, not to the fact. */
export interface RecordedEvent extends SealedEvent {
  readonly position: number;
}

/** The `prevHash` of a stream's first event. */
export const GENESIS_HASH = '0'.repeat(64);

/** Revision of a stream that holds nothing yet. */
export const NO_STREAM = -1;

const SAFE = /^[A-Za-z0-9][A-Za-z0-9._:@-]*$/;
export const STREAM_NAME = /^[a-z]+-[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/;

/** Computes the event's hash and closes the envelope. Whoever has the canonical text of the data already passes it. */
export function seal(event: Omit<SealedEvent, 'hash'>, dataText = canonical(event.data)): SealedEvent {
  const { id, type, version, stream, revision, time, data, meta, prevHash } = event;
  return {
    id,
    type,
    version,
    stream,
    revision,
    time,
    data,
    meta,
    prevHash,
    hash: digest('sha256', envelopeText(event, dataText)),
  };
}

/**
 * The canonical text of an envelope, put together from its known keys in their sorted order. Fields that hold only
 * characters JSON never escapes are quoted as they stand; anything else goes through the general path.
 */
function envelopeText(event: Omit<SealedEvent, 'hash'>, dataText: string): string {
  const { meta } = event;
  const commandId = quoted(meta.commandId);
  const correlationId = meta.correlationId === meta.commandId ? commandId : quoted(meta.correlationId);
  const causationId = meta.causationId === meta.commandId ? commandId : quoted(meta.causationId);
  return (
    `{"data":${dataText},"id":${quoted(event.id)},"meta":{"actor":{"id":${quotedName(meta.actor.id)},` +
    `"role":"${meta.actor.role}"},"causationId":${causationId},"commandId":${commandId},` +
    `"correlationId":${correlationId},"inputHash":"${meta.inputHash}"},"prevHash":"${event.prevHash}",` +
    `"revision":${event.revision},"stream":${quoted(event.stream)},"time":${quotedTime(event.time)},` +
    `"type":${quotedName(event.type)},"version":${event.version}}`
  );
}

const quoted = (text: string) => (SAFE.test(text) ? `"${text}"` : canonical(text));

/** Names of types and of who acts come again and again, and many events share a millisecond: looking up beats testing. */
const knownNames = new Map<string, string>();
const KNOWN_NAMES_MAX = 1_000;
let [lastTime, lastTimeText] = ['', '""'];

function quotedName(name: string): string {
  const known = knownNames.get(name);
  if (known !== undefined) return known;
  const text = quoted(name);
  if (knownNames.size < KNOWN_NAMES_MAX) knownNames.set(name, text);
  return text;
}

function quotedTime(time: string): string {
  if (time !== lastTime) [lastTime, lastTimeText] = [time, quoted(time)];
  return lastTimeText;
}

/** The hash as anybody can recompute it: SHA-256 over the RFC 8785 form, without `hash` and `position`. */
export function recomputeHash(event: SealedEvent): string {
  const { hash: _hash, position: _position, ...rest } = event as RecordedEvent;
  const text = canonicalize(rest);
  if (text === undefined) throw new AgonError('EVENT.NOT_JSON', `Event ${event.id} has no canonical form.`);
  return digest('sha256', text);
}

/** What a stream's next event must fit on. */
export interface StreamHead {
  readonly revision: number;
  readonly hash: string;
}

export const EMPTY_HEAD: StreamHead = { revision: NO_STREAM, hash: GENESIS_HASH };

/** Why this event does not continue the stream, or undefined if it does. Recomputes the hash. */
export function chainFault(event: SealedEvent, head: StreamHead): string | undefined {
  if (event.revision !== head.revision + 1) return `revision ${event.revision} follows ${head.revision}`;
  if (event.prevHash !== head.hash) return 'prevHash is not the hash of the event before it';
  if (recomputeHash(event) !== event.hash) return 'its content does not match its hash';
  return undefined;
}
