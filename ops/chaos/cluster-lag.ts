import { Redis } from 'ioredis';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import type { PostgresSink } from '../../projections/sinks/postgres.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { views } from '../../projections/views.js';
import type { ProcessStatus } from '../engines/cluster.js';

/**
 * What processes say keeps them from having taken in everything. A group whose every process stands by is kept by nobody:
 * the member that had it died, and until Kafka gives it up nothing is taken in and nobody says so, for all of them are ready.
 */
export function lagOf(statuses: readonly ProcessStatus[]): string[] {
  const left = statuses.filter(({ ready }) => !ready).map(({ process }) => `${process} is not ready`);
  const details = new Map<string, string[]>();
  for (const { process, parts } of statuses) {
    for (const { part, detail } of parts) {
      if (/^[1-9]\d* (events|positions) behind/.test(detail)) left.push(`${process} ${part} ${detail}`);
      details.set(part, [...(details.get(part) ?? []), detail]);
    }
  }
  const idle = [...details].filter(([, each]) => each.every((detail) => detail === 'stands by'));
  return [...left, ...idle.map(([part]) => `nobody keeps ${part}`)];
}

/** How far rows are from the end of the log, and boards from the rows, as those who keep them have written it down. */
export async function rowLagOf(sink: PostgresSink, redisUrl: string, end: number): Promise<string[]> {
  const left: string[] = [];
  for (const view of views) {
    const { position = 0 } = (await sink.serving(view)) ?? {};
    if (position < end) left.push(`${view.name} is at position ${position} of ${end}`);
    if (await sink.building(view)) left.push(`${view.name} is being built`);
  }
  for (const name of (await sink.asked()).keys()) left.push(`a build of ${name} is wanted`);
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: 1, retryStrategy: () => null });
  redis.on('error', () => {});
  try {
    const [rows, boards] = [await sink.serving(leaderboardsView), await new RedisBoards(redis).mark()];
    if (boards?.position !== rows?.position || boards?.generation !== rows?.generation) {
      left.push(`the boards are at position ${boards?.position} of ${rows?.position}`);
    }
  } finally {
    redis.disconnect();
  }
  return left;
}
