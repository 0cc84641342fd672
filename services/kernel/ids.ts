import { hash, randomUUID } from 'node:crypto';

/** The namespace of every id that Agon derives. Changing it would change the ids of repeated commands. */
const NAMESPACE = Buffer.from('3f0d4fa5e6c25d3b9a07c1f2a8b4d6e9', 'hex');
/** Room for the namespace and a name, and its beginnings by length: a view costs as much as the hash itself. */
const scratch = Buffer.concat([NAMESPACE, Buffer.alloc(480)]);
const beginnings: Buffer[] = [];

/**
 * A name-based UUID (version 5, RFC 9562), so that the same cause always gets the same id.
 *
 * @example derivedId(event.id, 'escrow', 0) // one id for one reaction to one event, on every delivery
 */
export function derivedId(...parts: readonly (string | number)[]): string {
  const hex = hash('sha1', named(parts.join('/')));
  const variant = '89ab'[Number.parseInt(hex.charAt(16), 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function named(name: string): Buffer {
  // A UTF-16 code unit takes three bytes of UTF-8 at most.
  if (NAMESPACE.length + name.length * 3 > scratch.length) return Buffer.concat([NAMESPACE, Buffer.from(name)]);
  const end = NAMESPACE.length + scratch.write(name, NAMESPACE.length);
  beginnings[end] ??= scratch.subarray(0, end);
  return beginnings[end];
}

/** Where new ids come from. Tests and simulations pass a seeded one. */
export type Ids = () => string;
export const randomIds: Ids = randomUUID;

/** Ids that depend only on the seed, for simulations and tests that must repeat. */
export function seededIds(seed: string): Ids {
  let count = 0;
  return () => derivedId('seeded', seed, count++);
}

/** Where the time comes from, as ISO 8601. */
export type Clock = () => string;
export const systemClock: Clock = () => {
  const ms = Date.now();
  if (ms !== nowMs) {
    nowMs = ms;
    nowIso = new Date(ms).toISOString();
  }
  return nowIso;
};

/** Writing a time down takes longer than looking at the clock, and many commands share a millisecond. */
let [nowMs, nowIso] = [0, ''];

/** A clock that stands still until it is told otherwise. */
export function manualClock(startIso: string): Clock & { advance(ms: number): void } {
  let nowMs = Date.parse(startIso);
  return Object.assign(() => new Date(nowMs).toISOString(), {
    advance: (ms: number) => {
      nowMs += ms;
    },
  });
}
