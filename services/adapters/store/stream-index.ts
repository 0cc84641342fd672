import { crc32 } from 'node:zlib';
import { AgonError } from '../../kernel/errors.js';
import type { RecordedEvent, SealedEvent } from '../../kernel/event.js';
import type { IndexFile } from './environments.js';
import type { Gate } from './gate.js';
import { assertSpace, committed } from './store-error.js';

/** Consecutive revisions of a stream and where they stand in the log. */
interface Run {
  readonly firstRevision: number;
  readonly positions: number[];
}

const FLUSH_EVENTS = 4096;
const FLUSH_MS = 200;
const CHECKPOINT: [string, number] = ['', 0];

/**
 * Which positions hold a stream's events. It follows the log: new entries wait in memory and are written in large
 * batches, and whatever a crash takes away is read again from the log on the next open. So an append costs one write,
 * and nothing here can ever disagree with the log for longer than a reopening.
 */
export class StreamIndex {
  private pending = new Map<string, Run>();
  private writing = new Map<string, Run>();
  private pendingEvents = 0;
  private pendingPosition = 0;
  private timer: NodeJS.Timeout | undefined;
  private written: Promise<void> = Promise.resolve();
  private failure: unknown;

  constructor(
    private readonly folder: string,
    private readonly env: IndexFile,
    private readonly gate: Gate,
    private readonly readOnly: boolean,
  ) {}

  /** The last position that has an entry, on disk or in memory. Beyond it, the owner adds what the log holds. */
  get indexed(): number {
    const onDisk = this.env.get(CHECKPOINT)?.readDoubleLE(0) ?? 0;
    // A reader keeps in memory what its writer had not written yet; once it is on disk, the newer entries are there.
    if (this.readOnly && onDisk > this.pendingPosition) this.pending.clear();
    return Math.max(onDisk, this.pendingPosition);
  }

  add({ stream, revision }: Pick<SealedEvent, 'stream' | 'revision'>, position: number): void {
    const run = this.pending.get(stream);
    if (run) run.positions.push(position);
    else this.pending.set(stream, { firstRevision: revision, positions: [position] });
    this.pendingPosition = position;
    this.pendingEvents += 1;
    if (this.readOnly) return;
    if (this.pendingEvents >= FLUSH_EVENTS) void this.flush();
    else this.timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Positions of the revisions from `firstRevision` on, at most `limit`. */
  positions(stream: string, firstRevision: number, limit: number): number[] {
    const found: number[] = [];
    let next = firstRevision;
    const take = (run: Run) => {
      // Overlap is normal: a batch may be on disk and still be in memory.
      for (let i = next - run.firstRevision; i >= 0 && i < run.positions.length && found.length < limit; i++) {
        found.push(run.positions[i] as number);
        next += 1;
      }
    };
    for (const run of this.storedRuns(stream, firstRevision)) {
      take(run);
      if (found.length >= limit) return found;
    }
    for (const runs of [this.writing, this.pending]) {
      const run = runs.get(stream);
      if (run) take(run);
    }
    return found;
  }

  /** The stream's last revision and its position. */
  last(stream: string): { revision: number; position: number } | undefined {
    const run =
      this.pending.get(stream) ?? this.writing.get(stream) ?? this.lastStoredRun(stream, Number.MAX_SAFE_INTEGER);
    const position = run?.positions.at(-1);
    if (!run || position === undefined) return undefined;
    return { revision: run.firstRevision + run.positions.length - 1, position };
  }

  /**
   * Whether the index on disk says of every event what the log says. `marks` are the log's, by position; entries beyond
   * the log are for the owner to judge. Every entry is also looked up, because damage to the inner pages of the tree
   * leaves the entries as they were and makes them impossible to find.
   */
  agreesWith(marks: readonly number[]): boolean {
    const left = [...marks];
    let entries = 0;
    for (const { key, value } of this.env.getRange({ start: ['', 1] })) {
      const [stream, firstRevision] = key;
      if (typeof stream !== 'string' || !this.env.get(key)?.equals(value)) return false;
      for (const [i, position] of decode(value).entries()) {
        entries += 1;
        if (position > marks.length) continue;
        if (left[position - 1] !== markOf({ stream, revision: firstRevision + i })) return false;
        left[position - 1] = -1;
      }
    }
    const checkpoint = this.env.get(CHECKPOINT)?.readDoubleLE(0) ?? 0;
    return (
      entries === checkpoint && left.findIndex((mark) => mark >= 0) === (checkpoint < marks.length ? checkpoint : -1)
    );
  }

  /** Writes what is waiting. One batch at a time; the checkpoint goes with its entries. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.readOnly) return;
    const previous = this.written;
    this.written = previous.then(() => this.writeBatch());
    await this.written;
  }

  async close(): Promise<void> {
    await this.flush();
    await this.env.close();
    if (this.failure) throw this.failure;
  }

  private async writeBatch(): Promise<void> {
    if (this.pending.size === 0) return;
    this.writing = this.pending;
    const position = this.pendingPosition;
    this.pending = new Map();
    this.pendingEvents = 0;
    try {
      assertSpace(this.folder, 0);
      const write = () =>
        this.env.transaction(() => {
          for (const [stream, run] of this.writing) {
            void this.env.put([stream, run.firstRevision], encode(run.positions));
          }
          void this.env.put(CHECKPOINT, encode([position]));
        });
      await committed(this.gate.committing(write), this.folder);
      this.writing = new Map();
      this.failure = undefined;
    } catch (error) {
      // The index is derived: keep serving from memory, and let the next open read the log again.
      this.failure = new AgonError(
        'STORE.INDEX_BEHIND',
        'The stream index could not be written.',
        {},
        { cause: error },
      );
      for (const [stream, run] of this.pending) {
        const earlier = this.writing.get(stream);
        if (earlier) earlier.positions.push(...run.positions);
        else this.writing.set(stream, run);
      }
      this.pending = this.writing;
      this.writing = new Map();
    }
  }

  private *storedRuns(stream: string, revision: number): Generator<Run> {
    const first = this.lastStoredRun(stream, revision)?.firstRevision ?? 0;
    for (const { key, value } of this.env.getRange({
      start: [stream, first],
      end: [stream, Number.MAX_SAFE_INTEGER],
    })) {
      yield { firstRevision: key[1], positions: decode(value) };
    }
  }

  private lastStoredRun(stream: string, revision: number): Run | undefined {
    for (const { key, value } of this.env.getRange({ start: [stream, revision], reverse: true, limit: 1 })) {
      if (key[0] === stream) return { firstRevision: key[1], positions: decode(value) };
    }
    return undefined;
  }
}

/** A short mark of which revision of which stream an event is. */
export const markOf = ({ stream, revision }: Pick<RecordedEvent, 'stream' | 'revision'>): number =>
  crc32(stream, revision);

function encode(positions: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(positions.length * 8);
  positions.forEach((position, i) => {
    bytes.writeDoubleLE(position, i * 8);
  });
  return bytes;
}

function decode(bytes: Buffer): number[] {
  const positions: number[] = [];
  for (let at = 0; at + 8 <= bytes.length; at += 8) positions.push(bytes.readDoubleLE(at));
  return positions;
}
