import type { Rate, RateLimits, Taken } from '../../kernel/index.js';

interface Bucket {
  tokens: number;
  atMs: number;
}

const BUCKETS_MAX = 100_000;

/** Token buckets of one process. */
export class MemoryLimits implements RateLimits {
  readonly #buckets = new Map<string, Bucket>();

  constructor(
    private readonly nowMs: () => number,
    private readonly bucketsMax = BUCKETS_MAX,
  ) {}

  async take(name: string, { perMinute, burst }: Rate, tokens = 1): Promise<Taken> {
    const now = this.nowMs();
    const bucket = this.#buckets.get(name) ?? { tokens: burst, atMs: now };
    const refilled = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.atMs) * perMinute) / 60_000);
    const ok = refilled >= tokens;
    const left = ok ? refilled - tokens : refilled;
    this.#keep(name, { tokens: left, atMs: now });
    const waitMs = Math.ceil(((tokens - left) * 60_000) / perMinute);
    return ok ? { ok, left: Math.floor(left) } : { ok, retryAfterMs: Math.max(1, waitMs) };
  }

  /** Those used longest ago are forgotten first: by then they are full again, or somebody floods us with names. */
  #keep(name: string, bucket: Bucket): void {
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
    if (this.#buckets.size > this.bucketsMax) this.#buckets.delete(this.#buckets.keys().next().value as string);
  }
}
