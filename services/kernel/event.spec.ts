import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonical } from './canonical.js';
import { chainFault, EMPTY_HEAD, GENESIS_HASH, recomputeHash, roles, type SealedEvent, seal } from './event.js';
import { chain, headAfter } from './fixtures.js';

const json = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"__proto__"'));
const text = fc.oneof(fc.uuid(), fc.string({ unit: 'grapheme' }), fc.string());
const hex = fc.stringMatching(/^[0-9a-f]{64}$/);

const envelope = fc.record({
  id: text,
  type: text,
  version: fc.integer({ min: 1 }),
  stream: text,
  revision: fc.nat(),
  time: text,
  data: json,
  meta: fc.record({
    commandId: text,
    inputHash: hex,
    correlationId: text,
    causationId: text,
    actor: fc.record({ id: text, role: fc.constantFrom(...roles) }),
  }),
  prevHash: hex,
});

describe('sealing an event', () => {
  it('gives the hash that anybody can recompute', () => {
    fc.assert(
      fc.property(envelope, (open) => {
        const sealed = seal(open);
        expect(sealed).toEqual({ ...open, hash: sealed.hash });
        expect(recomputeHash(sealed)).toBe(sealed.hash);
      }),
      { seed: 7, numRuns: 1_000 },
    );
  });

  it('does not depend on the position, which belongs to a store', () => {
    const [sealed] = chain('note-a', 1) as [SealedEvent];
    expect(recomputeHash({ ...sealed, position: 99 } as SealedEvent)).toBe(sealed.hash);
  });

  it('has this hash, today and always', () => {
    const [first, second] = chain('note-a', 2);
    expect(first?.prevHash).toBe(GENESIS_HASH);
    expect(first?.hash).toBe('664c8250a8a322d450f1bafc5a062aa746b1f8aa03f0f6f20baf34fbc6f9b486');
    expect(second?.hash).toBe('8042f0bae776b15463eab5fe227b583baff64bce81380dcfeaf4567c0b901f83');
  });

  const [event] = chain('note-a', 1, { data: () => ({ amount: 1, note: 'x' }) }) as [SealedEvent];
  it.each<[string, Partial<SealedEvent>]>([
    ['id', { id: 'other' }],
    ['type', { type: 'Other' }],
    ['version', { version: 2 }],
    ['stream', { stream: 'note-b' }],
    ['revision', { revision: 1 }],
    ['time', { time: '2026-03-01T12:00:00.001Z' }],
    ['data', { data: { amount: 2, note: 'x' } }],
    ['a field of data left out', { data: { amount: 1 } }],
    ['a field of data added', { data: { amount: 1, note: 'x', more: null } }],
    ['commandId', { meta: { ...event.meta, commandId: 'other' } }],
    ['inputHash', { meta: { ...event.meta, inputHash: '1'.repeat(64) } }],
    ['correlationId', { meta: { ...event.meta, correlationId: 'other' } }],
    ['causationId', { meta: { ...event.meta, causationId: 'other' } }],
    ['actor id', { meta: { ...event.meta, actor: { ...event.meta.actor, id: 'eve' } } }],
    ['actor role', { meta: { ...event.meta, actor: { ...event.meta.actor, role: 'admin' } } }],
    ['prevHash', { prevHash: '1'.repeat(64) }],
    ['an unknown field', { extra: 1 } as object],
  ])('a changed %s changes the hash', (_what, change) => {
    const changed = { ...event, ...change };
    expect(recomputeHash(changed)).not.toBe(event.hash);
    expect(chainFault(changed, EMPTY_HEAD)).toBeDefined();
  });

  it('any other data has another hash', () => {
    fc.assert(
      fc.property(envelope, json, (open, data) => {
        const same = canonical(open.data) === canonical(data);
        expect(seal(open).hash === seal({ ...open, data }).hash).toBe(same);
      }),
      { seed: 8, numRuns: 500 },
    );
  });
});

describe('a stream as a chain', () => {
  it('continues its head', () => {
    const events = chain('note-a', 3);
    expect(events.map((event, i) => chainFault(event, headAfter(events.slice(0, i))))).toEqual(
      events.map(() => undefined),
    );
  });

  it.each([
    ['a revision left out', 2, 'revision 2 follows 0'],
    ['a repeated revision', 0, 'revision 0 follows 0'],
  ])('notices %s', (_what, index, fault) => {
    const events = chain('note-a', 3);
    expect(chainFault(events[index] as SealedEvent, headAfter(events.slice(0, 1)))).toBe(fault);
  });

  it('notices another history', () => {
    const mine = chain('note-a', 2, { writer: 'mine' });
    const theirs = chain('note-a', 2, { writer: 'theirs' });
    expect(chainFault(theirs[1] as SealedEvent, headAfter(mine.slice(0, 1)))).toContain('prevHash');
  });
});
