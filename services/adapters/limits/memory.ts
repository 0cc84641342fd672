import type { Claim, ClaimResult, Quotas, Rate, RateLimits, TakeResult } from '../../kernel/index.js';

interface Bucket {
  tokens: number;
  atMs: number;
}

interface Count {
  used: number;
  readonly untilMs: number;
}

const BUCKETS_MAX = 100_000;

/** Token buckets and counts of one process. */
export class MemoryLimits implements RateLimits, Quotas {
  private readonly buckets = new Map<string, Bucket>();
  private readonly counts = new Map<string, Count>();

  constructor(
    private readonly nowMs: () => number,
    private readonly bucketsMax = BUCKETS_MAX,
  ) {}

  async take(name: string, { perMinute, burst }: Rate, tokens = 1): Promise<TakeResult> {
    const now = this.nowMs();
    const bucket = this.buckets.get(name) ?? { tokens: burst, atMs: now };
    const refilled = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.atMs) * perMinute) / 60_000);
    const ok = refilled >= tokens;
    const left = ok ? refilled - tokens : refilled;
    this.keep(this.buckets, name, { tokens: left, atMs: now });
    const waitMs = Math.ceil(((tokens - left) * 60_000) / perMinute);
    return ok ? { ok, left: Math.floor(left) } : { ok, retryAfterMs: Math.max(1, waitMs) };
  }

  async claim(claims: readonly Claim[]): Promise<ClaimResult> {
    const now = this.nowMs();
    const counted = claims.map(({ name, known }) => {
      const count = this.counts.get(name);
      return Math.max(known, count && now < count.untilMs ? count.used : 0);
    });
    for (const [i, { name, max }] of claims.entries()) {
      const used = counted[i] ?? 0;
      if (used >= max) return { ok: false, name, used };
    }
    const kept = claims.map(({ name, keepMs }, i) => {
      const count = { used: (counted[i] ?? 0) + 1, untilMs: now + keepMs };
      this.keep(this.counts, name, count);
      return name;
    });
    const release = async () => {
      for (const name of kept.splice(0)) {
        const count = this.counts.get(name);
        if (count && count.used > 0) count.used -= 1;
      }
    };
    return { ok: true, release };
  }

  /** Those used longest ago are forgotten first: by then they are full again, or somebody floods us with names. */
  private keep<T>(all: Map<string, T>, name: string, one: T): void {
    all.delete(name);
    all.set(name, one);
    if (all.size > this.bucketsMax) all.delete(all.keys().next().value as string);
  }
}
