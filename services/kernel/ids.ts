import { hash, randomUUID } from 'node:crypto';

/** The namespace of every id that Agon derives. Changing it would change the ids of repeated commands. */
const NAMESPACE = Buffer.from('3f0d4fa5e6c25d3b9a07c1f2a8b4d6e9', 'hex');

/**
 * A name-based UUID (version 5, RFC 9562), so that the same cause always gets the same id.
 *
 * @example derivedId(event.id, 'escrow', 0) // one id for one reaction to one event, on every delivery
 */
export function derivedId(...parts: readonly (string | number)[]): string {
  const digest = hash('sha1', Buffer.concat([NAMESPACE, Buffer.from(parts.join('/'))]), 'buffer');
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x50;
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80;
  const hex = digest.toString('hex', 0, 16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
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
export const systemClock: Clock = () => new Date().toISOString();

/** A clock that stands still until it is told otherwise. */
export function manualClock(startIso: string): Clock & { advance(ms: number): void } {
  let nowMs = Date.parse(startIso);
  return Object.assign(() => new Date(nowMs).toISOString(), {
    advance: (ms: number) => {
      nowMs += ms;
    },
  });
}
