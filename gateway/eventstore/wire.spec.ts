import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contentId, enclose, fromWire, isSealed, toWire } from '../../proto/eventstore.js';
import { anyJson } from '../../services/adapters/store/odd-data.contract.js';
import { chain } from '../../services/kernel/fixtures.js';
import { recomputeHash, type SealedEvent, seal } from '../../services/kernel/index.js';

const [first] = chain('note-a', 1) as [SealedEvent];
const withData = (data: unknown): SealedEvent => {
  const { hash: _hash, ...rest } = first;
  return seal({ ...rest, data });
};
/** Over the wire and back, as JSON text. */
const back = (event: SealedEvent) => {
  const { data, metadata } = JSON.parse(JSON.stringify(toWire(event))) as { data: unknown; metadata: unknown };
  const { stream, revision, type } = event;
  return fromWire({ stream, revision, type, data, metadata });
};

describe('an event on the wire', () => {
  it('comes back with every byte that its hash covers, whatever its data', () => {
    fc.assert(
      fc.property(anyJson(), (data) => {
        const event = withData(data);
        expect(recomputeHash(back(event))).toBe(event.hash);
      }),
      { seed: 3, numRuns: 500 },
    );
  });

  it.each([
    ['metadata of its own', enclose({ by: 1 }, { tenant: 'a', nested: { b: [1, null] } })],
    ['data that looks enclosed', enclose({ $data: 1, $metadata: { a: 1 } }, {})],
    ['data that only looks like it', { $data: 1, $metadata: { hash: 'taken' } }],
    ['data with more beside it', { $data: 1, $metadata: {}, more: 1 }],
    ['empty metadata', { $data: null, $metadata: {} }],
  ])('comes back with %s', (_what, data) => {
    const event = withData(data);
    expect(back(event)).toEqual(event);
  });

  it('shows data and metadata as they came', () => {
    const { data, metadata } = toWire(withData(enclose({ by: 1 }, { tenant: 'a', $correlationId: 'c' })));
    expect({ data, tenant: metadata.tenant }).toEqual({ data: { by: 1 }, tenant: 'a' });
    expect(isSealed(metadata)).toBe(true);
    expect(isSealed({ tenant: 'a' })).toBe(false);
  });

  it('has an id that is the same for the same content alone', () => {
    const { hash: _hash, ...rest } = first;
    const later = seal({ ...rest, time: '2027-01-01T00:00:00.000Z' });
    expect(contentId(first)).toBe(contentId({ ...first }));
    expect(later.id).toBe(first.id);
    expect(contentId(later)).not.toBe(contentId(first));
    expect(contentId(first)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});
