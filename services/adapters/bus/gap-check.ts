import { AgonError, type EventStore, type RecordedEvent } from '../../kernel/index.js';

const STREAMS_MAX = 200_000;

/**
 * Watches what a store hands over for events that it left out. What is published once counts as everything up to there:
 * nobody would ever ask for an event that was skipped. Positions may have gaps, revisions never do.
 */
export class GapCheck {
  private readonly revisions = new Map<string, number>();

  constructor(
    private readonly store: Pick<EventStore, 'readStream'>,
    private from: number,
    private readonly streamsMax = STREAMS_MAX,
  ) {}

  /** Refuses with RELAY.GAP when a stream does not go on where it was. */
  async check(events: readonly RecordedEvent[]): Promise<void> {
    for (const event of events) {
      const { stream, revision, position } = event;
      const known = this.revisions.get(stream);
      if (known === undefined ? !(await this.continues(event)) : known + 1 !== revision) {
        const message = `The log gave revision ${revision} of ${stream} at position ${position}, but not the one before it.`;
        throw new AgonError('RELAY.GAP', message, { stream, revision, position });
      }
      this.revisions.set(stream, revision);
    }
    if (this.revisions.size <= this.streamsMax) return;
    this.from = events.at(-1)?.position ?? this.from;
    this.revisions.clear();
  }

  /** Of a stream not seen since the beginning: whether the event before this one was published before that. */
  private async continues({ stream, revision }: RecordedEvent): Promise<boolean> {
    if (revision === 0) return true;
    const [before] = await this.store.readStream(stream, { fromRevision: revision - 1, limit: 1 });
    return before !== undefined && before.position <= this.from;
  }
}
