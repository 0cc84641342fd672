import { AgonError } from '../../kernel/index.js';
import type { Range, Watermark } from './message.js';

/** A record that was read, with its place in its partition and the position of its event in the log. */
export interface Entry<T> {
  readonly offset: number;
  readonly position: number;
  readonly what: T;
}

interface Place {
  readonly topic: string;
  readonly partition: number;
  /** The next one to read. */
  readonly offset: number;
}

/** A partition may run ahead of the others by this much. More than the largest transaction, or it could wait for ever. */
export const AHEAD_MAX = { events: 8_192, watermarks: 4_096 } as const;
const READY_MIN = 8_192;
/** Watermarks that are remembered while a group holds its checkpoint back. */
const PASSED_MAX = 8_192;

interface Lane<T> {
  records: Entry<T>[];
  /** How many of them were taken. */
  taken: number;
  last: number;
  /** What is before it belongs to watermarks that were passed. */
  floor: number;
}

interface Milestone {
  readonly position: number;
  readonly places: readonly Place[];
}

/** Half of them, each with what the one before it knew: coarser, and never ahead of its position. */
function thinned(passed: readonly Milestone[]): Milestone[] {
  const half: Milestone[] = [];
  for (let i = 0; i < passed.length; i += 2) {
    const [first, second] = [passed[i], passed[i + 1]];
    const both = [...(first?.places ?? []), ...(second?.places ?? [])];
    const places = new Map(both.map((place) => [keyOf(place.topic, place.partition), place]));
    const last = second ?? first;
    if (last) half.push({ position: last.position, places: [...places.values()] });
  }
  return half;
}

/**
 * Puts the partitions' records back into the order of the log. Events are handed out once a watermark says that none
 * before them is missing, and only if every record that it names has been read: nothing is skipped by mistake.
 */
export class Merger<T> {
  private readonly lanes = new Map<string, Lane<T>>();
  private readonly watermarks: { readonly next: number; readonly watermark: Watermark }[] = [];
  private passed: Milestone[] = [];
  private ready: Entry<T>[] = [];
  /** Up to here all events are either delivered or ready. */
  private complete: number;
  private lastWatermark = -1;
  private moreToCome = false;

  constructor(
    private readonly topic: string,
    private delivered: number,
  ) {
    this.complete = delivered;
  }

  add(topic: string, partition: number, records: readonly Entry<T>[]): void {
    const lane = this.lane(topic, partition);
    for (const record of records) {
      if (record.offset <= lane.last) continue;
      lane.last = record.offset;
      if (record.offset >= lane.floor) lane.records.push(record);
    }
  }

  addWatermark(offset: number, watermark: Watermark): void {
    if (offset <= this.lastWatermark) return;
    this.lastWatermark = offset;
    this.watermarks.push({ next: offset + 1, watermark });
  }

  /** Whether there are watermarks that were not read yet: then it is worth waiting for a full batch. */
  behind(more: boolean): void {
    this.moreToCome = more;
  }

  /** Whether reading from this partition should pause until events have been delivered. */
  crowded(topic: string, partition: number): boolean {
    if (topic === this.topic) return this.watermarks.length >= AHEAD_MAX.watermarks;
    const lane = this.lane(topic, partition);
    return lane.records.length - lane.taken >= AHEAD_MAX.events;
  }

  /**
   * The next events in the order of the log, and the position up to which they are all. A batch that is not full is
   * given out only if nothing more is known to come, or if whoever asks does not want to wait.
   */
  next(max: number, impatient = false): { readonly items: readonly Entry<T>[]; readonly to: number } | undefined {
    this.advance(Math.max(READY_MIN, max));
    const full = this.ready.length >= max;
    if (!full && !impatient && (this.moreToCome || this.watermarks.length > 0)) return undefined;
    if (this.complete === this.delivered) return undefined;
    const items = this.ready.slice(0, max);
    return { items, to: this.ready.length > max ? (items[max - 1] as Entry<T>).position : this.complete };
  }

  /** Whether something could be handed out to somebody impatient. */
  waiting(): boolean {
    return this.complete > this.delivered;
  }

  /** The events up to here had their effect. */
  done(to: number): void {
    this.delivered = to;
    const left = this.ready.findIndex(({ position }) => position > to);
    this.ready = left === -1 ? [] : this.ready.slice(left);
    if (this.passed.length > PASSED_MAX) this.passed = thinned(this.passed);
  }

  /** Where reading can start the next time to find all beyond `to`; only what has changed since it was last asked for. */
  settled(to: number): Place[] {
    const places = new Map<string, Place>();
    while (this.passed[0] && this.passed[0].position <= Math.min(to, this.delivered)) {
      for (const place of this.passed.shift()?.places ?? []) places.set(keyOf(place.topic, place.partition), place);
    }
    return [...places.values()];
  }

  private advance(readyMax: number): void {
    while (this.ready.length < readyMax) {
      const [first] = this.watermarks;
      if (!first) return;
      const { watermark, next } = first;
      if (watermark.position <= this.delivered) for (const range of watermark.ranges) this.pass(range);
      else if (!this.gather(watermark)) return;
      this.watermarks.shift();
      this.complete = Math.max(this.complete, watermark.position);
      const places = watermark.ranges.map(([topic, partition, at, count]) => ({
        topic,
        partition,
        offset: at + count,
      }));
      places.push({ topic: this.topic, partition: 0, offset: next });
      this.passed.push({ position: watermark.position, places });
    }
  }

  /** Takes the events of a watermark, if all of them are here. */
  private gather(watermark: Watermark): boolean {
    if (watermark.after > this.complete) {
      throw gap(`after position ${this.complete} comes ${watermark.after}`);
    }
    if (!watermark.ranges.every((range) => this.holds(range))) return false;
    const events: Entry<T>[] = [];
    for (const range of watermark.ranges) {
      const lane = this.lane(range[0], range[1]);
      for (const record of lane.records.slice(lane.taken, lane.taken + range[3])) {
        if (record.position > this.complete) events.push(record);
      }
      this.pass(range);
    }
    events.sort((a, b) => a.position - b.position);
    for (const event of events) this.ready.push(event);
    return true;
  }

  private holds([topic, partition, offset, count]: Range): boolean {
    const lane = this.lane(topic, partition);
    while ((lane.records[lane.taken]?.offset ?? offset) < offset) lane.taken += 1;
    const [first, last] = [lane.records[lane.taken], lane.records[lane.taken + count - 1]];
    if (first === undefined) return false;
    if (first.offset !== offset) throw gap(`${topic}/${partition} has no record at offset ${offset}`);
    if (last === undefined) return false;
    if (last.offset !== offset + count - 1) throw gap(`${topic}/${partition} lacks records after offset ${offset}`);
    return true;
  }

  private pass([topic, partition, offset, count]: Range): void {
    const lane = this.lane(topic, partition);
    lane.floor = Math.max(lane.floor, offset + count);
    while ((lane.records[lane.taken]?.offset ?? lane.floor) < lane.floor) lane.taken += 1;
    if (lane.taken < 1_024 && lane.taken < lane.records.length) return;
    lane.records = lane.records.slice(lane.taken);
    lane.taken = 0;
  }

  private lane(topic: string, partition: number): Lane<T> {
    const key = keyOf(topic, partition);
    let lane = this.lanes.get(key);
    if (!lane) {
      lane = { records: [], taken: 0, last: -1, floor: 0 };
      this.lanes.set(key, lane);
    }
    return lane;
  }
}

const keyOf = (topic: string, partition: number) => `${topic}/${partition}`;

const gap = (what: string) =>
  new AgonError(
    'BUS.GAP',
    `Events are missing in Kafka: ${what}. If its topics forget old events, build the group's state from the store.`,
  );
