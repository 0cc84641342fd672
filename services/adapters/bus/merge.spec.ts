import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AHEAD_MAX, type Entry, Merger } from './merge.js';
import type { Range, Watermark } from './message.js';

const MARKS = 'marks';

interface Published {
  readonly records: ReadonlyMap<string, readonly Entry<number>[]>;
  readonly watermarks: readonly { readonly offset: number; readonly watermark: Watermark }[];
  readonly last: number;
}

/** What a relay writes: transactions of events, each on some lane, with marks of Kafka's own and taken back ones between. */
function published(transactions: readonly (readonly number[])[], positionStep = 1): Published {
  const records = new Map<string, Entry<number>[]>();
  const ends = new Map<string, number>();
  const watermarks: { offset: number; watermark: Watermark }[] = [];
  let position = 0;
  let markOffset = 0;
  for (const lanes of transactions) {
    const after = position;
    const counts = new Map<string, number>();
    for (const lane of lanes) {
      position += positionStep;
      const topic = `t${lane}`;
      const at = (ends.get(topic) ?? 0) + (counts.get(topic) ?? 0);
      counts.set(topic, (counts.get(topic) ?? 0) + 1);
      records.set(topic, [...(records.get(topic) ?? []), { offset: at, position, what: position }]);
    }
    const ranges: Range[] = [...counts].map(([topic, count]) => [topic, 0, ends.get(topic) ?? 0, count]);
    for (const [topic, count] of counts) ends.set(topic, (ends.get(topic) ?? 0) + count + 1);
    watermarks.push({ offset: markOffset, watermark: { after, position, ranges } });
    markOffset += 2;
  }
  return { records, watermarks, last: position };
}

/** Reads everything in an order that the choices give, a few records at a time, and takes out what can be taken. */
function merged(log: Published, from: number, choices: readonly number[], max = 3): number[] {
  const merger = new Merger<number>(MARKS, from);
  const sources = [...log.records.keys(), MARKS].map((topic) => ({ topic, at: 0 }));
  const lengthOf = (topic: string) => (topic === MARKS ? log.watermarks.length : (log.records.get(topic)?.length ?? 0));
  const out: number[] = [];
  let delivered = from;
  const drain = (impatient: boolean) => {
    for (let batch = merger.next(max, impatient); batch; batch = merger.next(max, impatient)) {
      expect(batch.to).toBeGreaterThan(delivered);
      delivered = batch.to;
      expect(batch.items.length).toBeLessThanOrEqual(max);
      out.push(...batch.items.map(({ what }) => what));
      merger.done(batch.to);
    }
  };
  for (let step = 0; sources.some(({ topic, at }) => at < lengthOf(topic)); step++) {
    const open = sources.filter(({ topic, at }) => at < lengthOf(topic));
    const choice = choices[step % choices.length] ?? 0;
    const source = open[choice % open.length] as (typeof open)[number];
    const until = Math.min(lengthOf(source.topic), source.at + 1 + (choice % 4));
    if (source.topic === MARKS) {
      for (const { offset, watermark } of log.watermarks.slice(source.at, until))
        merger.addWatermark(offset, watermark);
    } else merger.add(source.topic, 0, (log.records.get(source.topic) ?? []).slice(source.at, until));
    source.at = until;
    if (choice % 3 === 0) drain(choice % 2 === 0);
  }
  drain(true);
  return out;
}

const upTo = (last: number, after = 0, step = 1) =>
  Array.from({ length: Math.floor(last / step) }, (_, i) => (i + 1) * step).filter((position) => position > after);

describe('merging partitions by position', () => {
  const transactions = fc.array(fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 12 }), {
    minLength: 1,
    maxLength: 12,
  });
  const choices = fc.array(fc.nat({ max: 60 }), { minLength: 5, maxLength: 30 });

  it('gives the order of the log, whatever the order of arrival and wherever it starts', () => {
    fc.assert(
      fc.property(
        transactions,
        choices,
        fc.nat({ max: 100 }),
        fc.integer({ min: 1, max: 3 }),
        (all, order, share, step) => {
          const log = published(all, step);
          const from = Math.floor((log.last * share) / 100);
          expect(merged(log, from, order)).toEqual(upTo(log.last, from, step));
        },
      ),
    );
  });

  const two = published([
    [0, 1, 0],
    [1, 1],
  ]);
  const feed = (merger: Merger<number>, topic: string, from = 0, to?: number) =>
    merger.add(topic, 0, (two.records.get(topic) ?? []).slice(from, to));
  const mark = (merger: Merger<number>, index: number) => {
    const { offset, watermark } = two.watermarks[index] as (typeof two.watermarks)[number];
    merger.addWatermark(offset, watermark);
  };

  it('hands out nothing before a watermark, and nothing while one of its records is on its way', () => {
    const merger = new Merger<number>(MARKS, 0);
    feed(merger, 't0');
    expect(merger.next(1, true)).toBeUndefined();
    mark(merger, 0);
    expect(merger.next(1, true)).toBeUndefined();
    feed(merger, 't1', 0, 1);
    expect(merger.next(10)).toMatchObject({ items: [{ what: 1 }, { what: 2 }, { what: 3 }], to: 3 });
  });

  it('fills batches across transactions while more is known to come', () => {
    const merger = new Merger<number>(MARKS, 0);
    mark(merger, 0);
    mark(merger, 1);
    feed(merger, 't0');
    feed(merger, 't1', 0, 1);
    expect(merger.next(4)).toBeUndefined();
    expect(merger.next(4, true)?.to).toBe(3);
    feed(merger, 't1', 1);
    expect(merger.next(4)?.to).toBe(4);
    merger.behind(true);
    expect(merger.next(8)).toBeUndefined();
    merger.behind(false);
    expect(merger.next(8)?.to).toBe(5);
  });

  it('ignores what is read again', () => {
    const merger = new Merger<number>(MARKS, 0);
    for (const upTo of [2, 3]) {
      feed(merger, 't0', 0, upTo);
      feed(merger, 't1', 0, upTo);
      mark(merger, 0);
      mark(merger, 1);
    }
    expect(merger.next(10)?.items.map(({ what }) => what)).toEqual([1, 2, 3, 4, 5]);
  });

  it('lets reading start again behind the last watermark whose events are all done, and nowhere else', () => {
    const merger = new Merger<number>(MARKS, 0);
    feed(merger, 't0');
    feed(merger, 't1');
    mark(merger, 0);
    mark(merger, 1);
    merger.next(10);
    merger.done(2);
    expect(merger.settled(Number.MAX_SAFE_INTEGER)).toEqual([]);
    merger.done(3);
    expect(merger.settled(Number.MAX_SAFE_INTEGER)).toEqual([
      { topic: 't0', partition: 0, offset: 2 },
      { topic: 't1', partition: 0, offset: 1 },
      { topic: MARKS, partition: 0, offset: 1 },
    ]);
    merger.done(5);
    expect(merger.settled(Number.MAX_SAFE_INTEGER)).toEqual([
      { topic: 't1', partition: 0, offset: 4 },
      { topic: MARKS, partition: 0, offset: 3 },
    ]);
    expect(merger.settled(Number.MAX_SAFE_INTEGER)).toEqual([]);
  });

  it('lets reading start no later than what was saved, however much was heard', () => {
    const merger = new Merger<number>(MARKS, 0);
    feed(merger, 't0');
    feed(merger, 't1');
    mark(merger, 0);
    mark(merger, 1);
    merger.next(10);
    merger.done(5);
    expect(merger.settled(2)).toEqual([]);
    expect(merger.settled(4)).toContainEqual({ topic: MARKS, partition: 0, offset: 1 });
    expect(merger.settled(5)).toContainEqual({ topic: MARKS, partition: 0, offset: 3 });
  });

  it('remembers where to start again with bounds, never ahead of what was saved', () => {
    const merger = new Merger<number>(MARKS, 0);
    for (let i = 0; i < 20_000; i++) {
      merger.add('t0', 0, [{ offset: i, position: i + 1, what: i }]);
      merger.addWatermark(i, { after: i, position: i + 1, ranges: [['t0', 0, i, 1]] });
      merger.next(10);
      merger.done(i + 1);
    }
    const [events, marks] = merger.settled(15_001);
    expect(events?.offset).toBe(marks?.offset);
    expect(events?.offset).toBeLessThanOrEqual(15_001);
    expect(events?.offset).toBeGreaterThan(14_990);
  });

  it('refuses to skip: a record that is missing is an error', () => {
    const late = new Merger<number>(MARKS, 0);
    mark(late, 0);
    feed(late, 't0', 1);
    expect(() => late.next(1)).toThrow(expect.objectContaining({ code: 'BUS.GAP' }));
    const holed = new Merger<number>(MARKS, 3);
    mark(holed, 1);
    holed.add('t1', 0, [
      { offset: 2, position: 4, what: 4 },
      { offset: 5, position: 6, what: 6 },
    ]);
    expect(() => holed.next(1)).toThrow(expect.objectContaining({ code: 'BUS.GAP' }));
    const old = new Merger<number>(MARKS, 1);
    mark(old, 1);
    feed(old, 't1', 1);
    expect(() => old.next(1)).toThrow(expect.objectContaining({ code: 'BUS.GAP' }));
  });

  it('does not miss what is gone if its effects are there already', () => {
    const merger = new Merger<number>(MARKS, 3);
    mark(merger, 0);
    mark(merger, 1);
    feed(merger, 't1', 1);
    expect(merger.next(10)?.items.map(({ what }) => what)).toEqual([4, 5]);
  });

  it('asks for a pause only of partitions that are ahead of the others', () => {
    const merger = new Merger<number>(MARKS, 0);
    const many = Array.from({ length: AHEAD_MAX.events }, (_, i) => ({ offset: i, position: i + 1, what: i + 1 }));
    merger.add('t0', 0, many.slice(1));
    expect(merger.crowded('t0', 0)).toBe(false);
    merger.add('t0', 0, [{ offset: many.length, position: many.length + 1, what: 0 }]);
    expect([merger.crowded('t0', 0), merger.crowded('t1', 0), merger.crowded(MARKS, 0)]).toEqual([true, false, false]);
    for (let i = 0; i < AHEAD_MAX.watermarks; i++) {
      merger.addWatermark(i, { after: i, position: i + 1, ranges: [['t9', 0, i, 1]] });
    }
    expect(merger.crowded(MARKS, 0)).toBe(true);
  });
});
