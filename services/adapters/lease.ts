import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { HeldLease, Ids, Lease } from '../kernel/index.js';

interface RedisLeaseOptions {
  readonly redis: Redis;
  readonly name: string;
  readonly ids: Ids;
  /** How long a holder that has died keeps it. */
  readonly ttlMs?: number;
  readonly onTrouble?: (error: unknown) => void;
}

const TTL_MS = 6_000;
const TAKEN = -1;

/**
 * A lease in Redis. It can be lost while its holder still works, when the holder or Redis stands still for long: what
 * must not happen twice needs a fence of its own, and the token can be one.
 */
export class RedisLease implements Lease {
  private readonly ttlMs: number;
  private readonly keys: readonly [string, string];

  constructor(private readonly options: RedisLeaseOptions) {
    this.ttlMs = options.ttlMs ?? TTL_MS;
    this.keys = [`{agon:lease:${options.name}}`, `{agon:lease:${options.name}}:token`];
  }

  async acquire(signal: AbortSignal): Promise<HeldLease> {
    const holder = this.options.ids();
    for (;;) {
      signal.throwIfAborted();
      const askedMs = performance.now();
      const token = await this.ask(ACQUIRE, holder, `${this.ttlMs}`);
      if (token > 0) return this.hold(holder, token, askedMs);
      await sleep(this.ttlMs / 6, undefined, { signal });
    }
  }

  /** Whether anybody has it now. Waits as long as Redis does. */
  async taken(): Promise<boolean> {
    return (await this.options.redis.exists(this.keys[0])) === 1;
  }

  private hold(holder: string, token: number, askedMs: number): HeldLease {
    const lost = new AbortController();
    const released = new AbortController();
    const keep = async () => {
      for (let heldMs = askedMs; ; ) {
        await sleep(this.ttlMs / 6, undefined, { signal: released.signal });
        const nowMs = performance.now();
        const answer = await this.ask(EXTEND, holder, `${this.ttlMs}`);
        if (answer === 1) heldMs = nowMs;
        // By its own clock, counted from before it last asked with success: Redis cannot have let it go any earlier.
        else if (answer === TAKEN || performance.now() - heldMs > this.ttlMs / 2) return lost.abort();
      }
    };
    keep().catch(() => {});
    return {
      token,
      lost: lost.signal,
      release: async () => {
        released.abort();
        await this.ask(RELEASE, holder, '');
      },
    };
  }

  /** 0 for whatever went wrong: the lease is not ours, as far as we know. */
  private async ask(script: string, holder: string, ttl: string): Promise<number> {
    const answer = this.options.redis.eval(script, 2, ...this.keys, holder, ttl).then(Number);
    const late = new AbortController();
    const timeout = sleep(this.ttlMs / 6, 0, { signal: late.signal, ref: false }).catch(() => 0);
    try {
      return await Promise.race([answer, timeout]);
    } catch (error) {
      this.options.onTrouble?.(error);
      return 0;
    } finally {
      answer.catch(() => {});
      late.abort();
    }
  }
}

/** Tokens follow the time of Redis, so that they still grow when Redis has forgotten the last one. */
const ACQUIRE = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local now = redis.call('TIME')
local token = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, now[1] * 1000 + math.floor(now[2] / 1000))
redis.call('SET', KEYS[2], string.format('%.0f', token))
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return token`;

const EXTEND = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** A lease among the parts of one process. */
export class MemoryLease implements Lease {
  private token = 0;
  private free: Promise<void> = Promise.resolve();

  async acquire(signal: AbortSignal): Promise<HeldLease> {
    let release: () => void = () => {};
    const before = this.free;
    this.free = new Promise((resolve) => {
      release = resolve;
    });
    let leave: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      leave = resolve;
    });
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    await Promise.race([before, gone]);
    signal.removeEventListener('abort', leave);
    if (signal.aborted) {
      before.then(release);
      signal.throwIfAborted();
    }
    this.token += 1;
    return { token: this.token, lost: new AbortController().signal, release: async () => release() };
  }
}
