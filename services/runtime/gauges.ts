import { readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Checkpoints, Consumer, EventStore } from '../kernel/index.js';
import { systemClock } from '../kernel/index.js';
import type { Host } from './host.js';
import type { Metrics } from './metrics.js';

type Log = Pick<EventStore, 'readAll' | 'lastPosition'>;
type Position = readonly [name: string, position: number];

/** How far the consumers of a host are behind, and which of them have the work. */
export function addConsumerGauges({
  metrics,
  consumers,
  engines,
}: Pick<Host, 'metrics' | 'consumers' | 'engines'>): void {
  const positions = (): Position[] => {
    // Who stands by is as far as it was when it last had the work, which says nothing.
    const active = [...consumers].filter(([, consumer]) => consumer.active?.() !== false);
    return active.map(([name, consumer]) => [name, consumer.position()]);
  };
  const behind = 'Positions of the log that a consumer is behind.';
  metrics.gauges('agon_consumer_lag_events', behind, 'consumer', async () => {
    const last = await (await engines.log()).lastPosition();
    return positions().map(([name, position]) => [name, last - position]);
  });
  const age = 'How old the first event is that a consumer has not taken in.';
  metrics.gauges('agon_consumer_lag_seconds', age, 'consumer', async () => ages(await engines.log(), positions()));
  const active = 'Whether a consumer has the work (1) or stands by (0).';
  metrics.gauges('agon_consumer_active', active, 'consumer', async () =>
    [...consumers].map(([name, consumer]) => [name, consumer.active?.() === false ? 0 : 1]),
  );
}

export function addDeadLetterGauge(
  metrics: Metrics,
  consumers: ReadonlyMap<string, Consumer>,
  checkpoints: Pick<Checkpoints, 'deadLetters'>,
): void {
  metrics.gauges('agon_dead_letters', 'Events that a group gave up on, by group.', 'group', async () => {
    const letters = new Map([...consumers.keys()].map((group) => [group, 0]));
    for (const { group } of await checkpoints.deadLetters()) letters.set(group, (letters.get(group) ?? 0) + 1);
    return letters;
  });
}

export function addLogGauges(metrics: Metrics, log: Log, folder?: string): void {
  metrics.gauge('agon_log_position', 'Last position of the log.', () => log.lastPosition());
  if (folder === undefined) return;
  metrics.gauge('agon_log_bytes', "Size of the log's files; 0 where it is kept elsewhere.", () => bytesIn(folder));
}

export function addDiskGauges(metrics: Metrics, dataDir: string): void {
  metrics.gauge('agon_disk_free_bytes', 'What is left of the disk that holds the data folder.', async () => {
    const { bavail, bsize } = await statfs(dataDir);
    return bavail * bsize;
  });
  metrics.gauge('agon_disk_size_bytes', 'How large that disk is.', async () => {
    const { blocks, bsize } = await statfs(dataDir);
    return blocks * bsize;
  });
}

/** How long each has been behind, by the events that it has not taken in. */
export async function ages(log: Log, positions: readonly Position[]): Promise<Position[]> {
  const last = await log.lastPosition();
  const now = systemClock();
  return Promise.all(
    positions.map(async ([name, position]) => [name, position >= last ? 0 : await secondsBehind(log, position, now)]),
  );
}

/** How old the first event is that is not taken in. Positions tell how far it is, but not in the same measure everywhere. */
async function secondsBehind(log: Log, position: number, nowIso: string): Promise<number> {
  const [next] = await log.readAll({ after: position, limit: 1 });
  return next ? Math.max(0, (Date.parse(nowIso) - Date.parse(next.time)) / 1000) : 0;
}

/** Looks again only after a while; those who ask in between get what was found, and those who ask at once ask together. */
export function keptFor<T>(ms: number, look: () => Promise<T>, nowMs: () => number = () => performance.now()) {
  let kept: { readonly untilMs: number; readonly found: Promise<T> } | undefined;
  return (): Promise<T> => {
    if (kept && nowMs() < kept.untilMs) return kept.found;
    const found = look();
    const mine = { untilMs: nowMs() + ms, found };
    kept = mine;
    // What failed is not worth keeping.
    found.catch(() => {
      if (kept === mine) kept = undefined;
    });
    return found;
  };
}

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
