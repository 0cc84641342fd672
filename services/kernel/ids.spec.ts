import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { derivedId, manualClock, seededIds } from './ids.js';

const UUID_V5 = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('a derived id', () => {
  it('is a UUID of version 5, and the same for the same parts', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.integer()), { minLength: 1 }), (parts) => {
        expect(derivedId(...parts)).toMatch(UUID_V5);
        expect(derivedId(...parts)).toBe(derivedId(...parts));
      }),
      { seed: 9 },
    );
  });

  it('differs for another cause, another policy or another index', () => {
    const ids = [
      derivedId('event-1', 'policy', 0),
      derivedId('event-1', 'policy', 1),
      derivedId('event-1', 'other', 0),
      derivedId('event-2', 'policy', 0),
      derivedId('event-1', 0),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  // These vectors are storage format: a repeated command finds its events by them.
  it.each([
    [['command', 0], '5a61906c-5fb4-53ec-b25a-2a8810effb27'],
    [['command', 1], 'c8298aa6-da89-56f0-ba11-f56b7a73c1d6'],
    [['8f14e45f-ceea-467f-a8f3-0d1c3b2a1f00', 'wallet.stakes', 1], 'ab0e6cf4-d314-5ef9-bc2d-5db376bf9e4f'],
  ] as const)('of %j is %s', (parts, id) => {
    expect(derivedId(...parts)).toBe(id);
  });
});

describe('ids and clocks for simulations', () => {
  it('repeat with the seed and differ within it', () => {
    const take = (seed: string) => Array.from({ length: 5 }, seededIds(seed));
    expect(take('a')).toEqual(take('a'));
    expect(new Set([...take('a'), ...take('b')]).size).toBe(10);
  });

  it('stand still until they are told otherwise', () => {
    const clock = manualClock('2026-01-01T00:00:00.000Z');
    expect([clock(), clock()]).toEqual(['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z']);
    clock.advance(1_500);
    expect(clock()).toBe('2026-01-01T00:00:01.500Z');
  });
});
