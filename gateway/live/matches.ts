import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';
import { type ArenaEvent, WorkQueue } from '../../services/arena/index.js';
import type { EventStore, Subscription, Upcaster } from '../../services/kernel/index.js';

const MATCHES_MAX = 256;
const KEPT_MAX = 1_024;
const QUEUED: ReadonlySet<string> = new Set(WorkQueue.types);

/** The last that is heard of a match: where in the log it ended. */
export interface Ended {
  readonly matchId: string;
  readonly position: number;
}

export interface Watcher {
  progress(progress: Progress): void;
  ended?(ended: Ended): void;
}

/**
 * Matches as they are being played, for those who watch. What happened is in the log; this is only what happens, so none
 * of it is kept for long, and some of it may be missing.
 */
export class LiveMatches {
  private readonly kept = new Map<string, Progress[]>();
  private readonly watchers = new Map<string, Set<Watcher>>();
  private at = 0;
  private readonly queueWatchers = new Set<(position: number) => void>();

  /** `tell` passes what happens on to those who hear it, here and elsewhere. */
  constructor(private readonly tell: (progress: Progress) => void = (progress) => this.hear(progress)) {}

  /** Up to where in the log those who watch have been told what ended. */
  get position(): number {
    return this.at;
  }

  publish(progress: Progress): void {
    this.tell(progress);
  }

  hear(progress: Progress): void {
    const { matchId } = progress;
    let kept = this.kept.get(matchId);
    // A new attempt begins from an empty board.
    if (!kept || kept[0]?.attempt !== progress.attempt) {
      kept = [];
      this.kept.delete(matchId);
      this.kept.set(matchId, kept);
      if (this.kept.size > MATCHES_MAX) this.kept.delete(this.kept.keys().next().value as string);
    }
    if (kept.length < KEPT_MAX) kept.push(progress);
    for (const watcher of this.watchers.get(matchId) ?? []) watcher.progress(progress);
  }

  /** Those who watch, all matches together. */
  get spectators(): number {
    let count = 0;
    for (const watchers of this.watchers.values()) count += watchers.size;
    return count;
  }

  /** What is kept of the match, then what comes. Returns how to stop. */
  watch(matchId: string, watcher: Watcher): () => void {
    for (const progress of this.kept.get(matchId) ?? []) watcher.progress(progress);
    const watchers = this.watchers.get(matchId) ?? new Set();
    this.watchers.set(matchId, watchers.add(watcher));
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0) this.watchers.delete(matchId);
    };
  }

  end(ended: Ended): void {
    for (const watcher of this.watchers.get(ended.matchId) ?? []) watcher.ended?.(ended);
  }

  /** Hears up to where the queue of matches has changed, and not how. Returns how to stop. */
  onQueue(changed: (position: number) => void): () => void {
    this.queueWatchers.add(changed);
    return () => this.queueWatchers.delete(changed);
  }

  /** Tells watchers when their match is over, and when the queue changes, by the log from here on. */
  async follow(store: EventStore, upcast: Upcaster): Promise<Subscription> {
    return store.subscribe({ after: await store.lastPosition() }, async (events) => {
      const moved = events.findLast(({ type }) => QUEUED.has(type));
      if (moved) for (const changed of this.queueWatchers) changed(moved.position);
      for (const event of events) {
        if (event.type !== 'MatchSettled' && event.type !== 'MatchVoided') continue;
        const { matchId } = (upcast(event) as ArenaEvent).data;
        this.end({ matchId, position: event.position });
      }
      this.at = events.at(-1)?.position ?? this.at;
    });
  }
}
