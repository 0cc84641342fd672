import type { Redis } from 'ioredis';
import type { Channel } from '../runtime/engines.js';

const TELL_MS = 1_000;

/** Among the parts of one process. */
export class MemoryChannel implements Channel {
  private readonly listeners = new Map<string, ((message: unknown) => void)[]>();
  private readonly offers = new Map<string, () => unknown>();

  publish(topic: string, message: unknown): void {
    for (const hear of this.listeners.get(topic) ?? []) hear(message);
  }

  async subscribe(topic: string, hear: (message: unknown) => void): Promise<void> {
    this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), hear]);
  }

  offer(name: string, value: () => unknown): () => void {
    this.offers.set(name, value);
    return () => this.offers.delete(name);
  }

  async lookUp(name: string): Promise<unknown> {
    return this.offers.get(name)?.();
  }
}

/** Among processes. Who says something would rather lose it than wait; a subscription is made again whenever Redis is back. */
export class RedisChannel implements Channel {
  constructor(
    private readonly redis: Redis,
    /** A connection that waits for Redis as long as it takes. */
    private readonly patient: () => Redis,
  ) {}

  publish(topic: string, message: unknown): void {
    this.redis.publish(keyOf(topic), JSON.stringify(message)).catch(() => {});
  }

  async subscribe(topic: string, hear: (message: unknown) => void): Promise<void> {
    const redis = this.patient();
    redis.on('message', (_channel, text) => hear(JSON.parse(text)));
    await redis.subscribe(keyOf(topic));
  }

  /** Forgotten soon after whoever offers it is gone. */
  offer(name: string, value: () => unknown): () => void {
    const tell = () => {
      this.redis.set(keyOf(name), JSON.stringify(value()), 'PX', TELL_MS * 3).catch(() => {});
    };
    const timer = setInterval(tell, TELL_MS);
    tell();
    return () => clearInterval(timer);
  }

  /** Undefined while Redis does not answer. */
  async lookUp(name: string): Promise<unknown> {
    const told = await this.redis.get(keyOf(name)).catch(() => null);
    return told === null ? undefined : JSON.parse(told);
  }
}

const keyOf = (name: string) => `agon:${name}`;
