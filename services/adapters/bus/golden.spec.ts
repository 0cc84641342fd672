import { describe, expect, it } from 'vitest';
import { recomputeHash } from '../../kernel/index.js';
import { type GoldenRecord, golden, goldenOf } from './golden.contract.js';
import { letterOf } from './kafka-letters.js';
import { decodeEvent, decodeWatermark, encodeEvent, encodeWatermark, Topics } from './message.js';

const topics = new Topics(golden.prefix);
const byPosition = (records: readonly GoldenRecord[]) =>
  [...records].sort((a, b) => Number(a.headers.ce_position) - Number(b.headers.ce_position));
const events = byPosition(goldenOf(/\.events\.v1$/));
const watermarks = goldenOf(/\.watermark\.v1$/);

describe('records of an earlier version', () => {
  it('are read as the events that they were, with hashes that fit', () => {
    const read = events.map(decodeEvent);
    expect(read).toEqual(golden.events);
    for (const event of read) expect([event.id, recomputeHash(event)]).toEqual([event.id, event.hash]);
  });

  it('are the records that are published of them today, byte by byte, to the same topics', () => {
    const today = golden.events.map((event) => {
      const source = `/${topics.prefix}/${topics.contextOf(event.stream)}`;
      return { topic: topics.of(event.stream), ...encodeEvent(event, source) };
    });
    expect(today).toEqual(events.map(({ topic, key, value, headers }) => ({ topic, key, value, headers })));
  });

  it('are where the watermarks say', () => {
    const said = watermarks.map(decodeWatermark);
    expect(said.map(encodeWatermark)).toEqual(watermarks.map(({ key, value, headers }) => ({ key, value, headers })));
    expect(said.map(({ after }) => after)).toEqual([0, ...said.map(({ position }) => position).slice(0, -1)]);
    for (const { after, position, ranges } of said) {
      const there = ranges.flatMap(([topic, partition, offset, count]) =>
        events.filter((record) => {
          const within = record.offset >= offset && record.offset < offset + count;
          return within && record.topic === topic && record.partition === partition;
        }),
      );
      expect(byPosition(there)).toEqual(events.slice(after, position));
    }
  });

  it('are read as the dead letters that they were', () => {
    const [buried] = goldenOf(/-dlt$/) as [GoldenRecord];
    const event = golden.events.find(({ type }) => type === 'FundsHeld');
    expect(decodeEvent(buried)).toEqual(event);
    expect(letterOf(buried)).toEqual({
      group: 'policy.golden',
      position: event?.position,
      eventId: event?.id,
      type: 'FundsHeld',
      stream: 'wallet-ada',
      code: 'INTERNAL',
      message: 'something was in the way',
      attempts: 1,
      origin: { topic: 'golden.wallet.events.v1', partition: 1, offset: '3' },
    });
  });
});
