import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';

const MATCHES_MAX = 256;
const KEPT_MAX = 1_024;

/** Matches as they are being played, for those who watch. What happened is in the log; this is only what happens. */
export class LiveMatches {
  private readonly kept = new Map<string, Progress[]>();
  private readonly watchers = new Map<string, Set<(progress: Progress) => void>>();

  publish(progress: Progress): void {
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
    for (const watcher of this.watchers.get(matchId) ?? []) watcher(progress);
  }

  /** What is kept of the match, then what comes. Returns how to stop. */
  watch(matchId: string, watcher: (progress: Progress) => void): () => void {
    for (const progress of this.kept.get(matchId) ?? []) watcher(progress);
    const watchers = this.watchers.get(matchId) ?? new Set();
    this.watchers.set(matchId, watchers.add(watcher));
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0) this.watchers.delete(matchId);
    };
  }
}
