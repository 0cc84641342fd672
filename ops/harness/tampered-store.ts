import {
  AgonError,
  type BatchHandler,
  type EventStore,
  type LogPage,
  NO_STREAM,
  type RecordedEvent,
  type SealedEvent,
  type StreamPage,
} from '../../services/kernel/index.js';

/**
 * A log whose streams somebody removes behind Agon's back, as a server of EventStoreDB lets its administrators: what is
 * gone from a stream still stands in the log of all, and a stream that was deleted goes on at its old revision when
 * something is added to it "as new".
 */
export class TamperedStore implements EventStore {
  /** By stream: the first revision that is left. */
  private readonly cuts = new Map<string, number>();
  private readonly tombstones = new Set<string>();
  /** What the server notes of it, right behind the last event of the time. */
  private readonly notes: RecordedEvent[] = [];

  constructor(private readonly store: EventStore) {}

  /** Removes what comes before this revision. */
  async cut(stream: string, firstLeft: number): Promise<void> {
    this.cuts.set(stream, firstLeft);
    await this.note(`$$${stream}`, '$metadata', { $tb: firstLeft });
  }

  /** Deletes a stream: it can be begun anew. */
  async delete(stream: string): Promise<void> {
    const head = await this.store.head(stream);
    this.cuts.set(stream, (head?.revision ?? NO_STREAM) + 1);
    await this.note(`$$${stream}`, '$metadata', { $tb: Number(2n ** 63n - 1n) });
  }

  /** Deletes a stream for good. */
  async tombstone(stream: string): Promise<void> {
    this.tombstones.add(stream);
    await this.note(stream, '$streamDeleted', {});
  }

  /** As before all of it. */
  restore(): void {
    this.cuts.clear();
    this.tombstones.clear();
    this.notes.length = 0;
  }

  async append(stream: string, expectedRevision: number, events: readonly SealedEvent[]) {
    this.assertThere(stream);
    const [first, ...others] = events;
    const head = await this.store.head(stream);
    const isNew = expectedRevision === NO_STREAM && head && this.cuts.get(stream) === head.revision + 1;
    if (!isNew || !first || others.length > 0) return this.store.append(stream, expectedRevision, events);
    const moved = { ...first, revision: head.revision + 1, prevHash: head.hash };
    return this.store.append(stream, head.revision, [moved]);
  }

  async readStream(stream: string, page: StreamPage = {}) {
    this.assertThere(stream);
    const first = this.cuts.get(stream) ?? 0;
    if (page.direction !== 'backwards') {
      return this.store.readStream(stream, { ...page, fromRevision: Math.max(first, page.fromRevision ?? 0) });
    }
    return (await this.store.readStream(stream, page)).filter(({ revision }) => revision >= first);
  }

  async head(stream: string) {
    const [last] = await this.readStream(stream, { direction: 'backwards', limit: 1 });
    return last;
  }

  /** With the server's own notes, which take their places between the events. */
  async readAll(page: LogPage = {}) {
    if (this.notes.length === 0) return this.store.readAll(page);
    const all = [...this.notes];
    for (let events = await this.store.readAll(); events.length > 0; ) {
      all.push(...events);
      events = await this.store.readAll({ after: events.at(-1)?.position ?? 0 });
    }
    all.sort((a, b) => a.position - b.position);
    const { after = 0, from = after + 1, before, limit = all.length } = page;
    if (before === undefined) return all.filter(({ position }) => position >= from).slice(0, limit);
    const end = before === 'end' ? Number.POSITIVE_INFINITY : before;
    return all
      .filter(({ position }) => position < end)
      .slice(-limit)
      .reverse();
  }

  lastPosition() {
    return this.store.lastPosition();
  }

  subscribe(options: { after: number; batchSize?: number }, handler: BatchHandler) {
    return this.store.subscribe(options, handler);
  }

  close() {
    return this.store.close();
  }

  private async note(stream: string, type: string, data: unknown): Promise<void> {
    const { position } = this.notes.at(-1) ?? { position: await this.store.lastPosition() };
    const [model] = await this.store.readAll({ limit: 1 });
    if (model) this.notes.push({ ...model, stream, type, data, position: position + 1 });
  }

  private assertThere(stream: string): void {
    if (!this.tombstones.has(stream)) return;
    throw new AgonError('STORE.DELETED', `Event stream '${stream}' is deleted.`, { stream });
  }
}
