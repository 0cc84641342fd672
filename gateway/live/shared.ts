import type { Redis } from 'ioredis';
import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';
import type { WaitingAgent } from '../ports.js';
import { LiveMatches } from './matches.js';

const CHANNEL = 'agon:live';
const WAITING = 'agon:waiting';
const TELL_MS = 1_000;

/** Matches as they are played, told to the gateways by Redis. Those who watch would rather miss a turn than wait. */
export class SharedLive extends LiveMatches {
  constructor(private readonly redis: Redis | undefined) {
    super();
  }

  override publish(progress: Progress): void {
    super.publish(progress);
    this.redis?.publish(CHANNEL, JSON.stringify(progress)).catch(() => {});
  }
}

/** Tells a gateway's spectators what is heard. A subscription is made again whenever Redis is back. */
export async function hearLive(redis: Redis, live: LiveMatches): Promise<void> {
  redis.on('message', (_channel, text) => live.publish(JSON.parse(text) as Progress));
  await redis.subscribe(CHANNEL);
}

/** Tells the gateways who waits for an opponent at the door for agents. Forgotten soon after the door is gone. */
export function tellWaiting(redis: Redis, waiting: () => readonly WaitingAgent[]): () => void {
  const tell = () => {
    redis.set(WAITING, JSON.stringify(waiting()), 'PX', TELL_MS * 3).catch(() => {});
  };
  const timer = setInterval(tell, TELL_MS);
  return () => clearInterval(timer);
}

/** Who waits, as the door told last; nobody while Redis does not answer. */
export async function waitingAt(redis: Redis): Promise<readonly WaitingAgent[]> {
  const told = await redis.get(WAITING).catch(() => null);
  return told === null ? [] : (JSON.parse(told) as readonly WaitingAgent[]);
}
