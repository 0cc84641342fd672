import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chain } from '../../kernel/fixtures.js';
import { AgonError, type RecordedEvent } from '../../kernel/index.js';
import { decodeBlock, encodeBlock } from './block.js';

const recorded = (count: number, firstPosition: number): RecordedEvent[] =>
  chain('note-a', count, { data: (revision) => ({ revision, text: `text ${revision}`, list: [1, null, true] }) }).map(
    (event, i) => ({ ...event, position: firstPosition + i }),
  );

describe('a block of the embedded log', () => {
  it('returns what it was given', () => {
    const events = recorded(5, 41);
    expect(decodeBlock(encodeBlock(events, 41), 41)).toEqual(events);
  });

  it('returns envelopes of any text, and events of one command with one meta', () => {
    const [first, second, ...rest] = recorded(4, 1) as [RecordedEvent, RecordedEvent, ...RecordedEvent[]];
    const meta = {
      ...first.meta,
      commandId: 'Schlüssel-🗝',
      correlationId: '',
      actor: { id: 'Ægir', role: 'owner' } as const,
    };
    const events = [{ ...first, id: '', type: 'Größer', time: '', meta }, { ...second, stream: '日本', meta }, ...rest];
    const decoded = decodeBlock(encodeBlock(events, 1), 1);
    expect(decoded).toEqual(events);
    expect(decoded[0]?.meta).toBe(decoded[1]?.meta);
  });

  it('knows when it stands in the wrong place', () => {
    const block = encodeBlock(recorded(2, 7), 7);
    expect(() => decodeBlock(block, 8)).toThrow(
      expect.objectContaining({ code: 'STORE.CORRUPT', details: { position: 8 } }),
    );
  });

  it.each([0, 1, 5, 8, 9])('is refused when it is cut to %i bytes', (bytes) => {
    const block = encodeBlock(recorded(1, 1), 1).subarray(0, bytes);
    expect(() => decodeBlock(block, 1)).toThrow(expect.objectContaining({ code: 'STORE.CORRUPT' }));
  });

  it('never passes a changed byte, wherever it is, and always says near which event', () => {
    const block = encodeBlock(recorded(3, 10), 10);
    fc.assert(
      fc.property(fc.nat({ max: block.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, mask) => {
        const damaged = Buffer.from(block);
        damaged[at] = (damaged[at] ?? 0) ^ mask;
        let thrown: unknown;
        try {
          decodeBlock(damaged, 10);
        } catch (error) {
          thrown = error;
        }
        expect(thrown).toBeInstanceOf(AgonError);
        expect(thrown).toMatchObject({ code: 'STORE.CORRUPT' });
        expect([10, 11, 12]).toContain((thrown as AgonError).details.position);
      }),
      { seed: 3, numRuns: 2_000 },
    );
  });
});
