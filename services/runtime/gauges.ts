import { readdir, readFile, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { Gauge, type Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import { ledgerSums, trialBalance } from '../../projections/balances/query.js';
import { type ProjectionStatus, type Projections, secondsBehind } from '../../projections/engine/projections.js';
import type { Cells } from '../../sandbox-runner/index.js';
import type { WorkQueue } from '../arena/index.js';
import { type Checkpoints, type Consumer, type EventStore, systemClock } from '../kernel/index.js';
import { bounded } from './metrics.js';

/** What is looked at when somebody asks for the metrics. */
export interface Parts {
  readonly store: EventStore;
  /** Where events are looked up whose age is told; the store, unless its gauges are there already. */
  readonly log: Pick<EventStore, 'readAll' | 'lastPosition'>;
  readonly database: DataSource;
  readonly checkpoints: Checkpoints;
  readonly consumers: ReadonlyMap<string, Consumer>;
  readonly projections: Pick<Projections, 'list'>;
  readonly cells: Pick<Cells, 'pids' | 'waiting'>;
  readonly queue: Pick<WorkQueue, 'counts'>;
  readonly live: { readonly spectators: number };
  /** How many cells there may be, and the folders of the data and of the log in it. */
  readonly cellsMax: number;
  readonly dataDir: string;
  readonly logDir: string;
  analyticsPosition(): number;
  agentsConnected(): number;
}

type Found = Iterable<readonly [label: string, value: number]>;

const PAGE_BYTES = 4096;
/** The sums read every balance there is; each commit is checked by the database itself, whoever scrapes. */
const LEDGER_MS = 60_000;

/** Adds the gauges of the parts that a process has. What cannot be looked at is left out, and takes nothing else with it. */
export function addGauges(registry: Registry, parts: Partial<Parts>): void {
  const { store, database, checkpoints, consumers, projections, cells, queue, live, dataDir, logDir } = parts;
  const { agentsConnected, cellsMax, analyticsPosition, log = store } = parts;

  const gauge = (name: string, help: string, look: () => number | Promise<number>) => {
    const made: Gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: async () => {
        const value = await Promise.resolve()
          .then(look)
          .catch(() => undefined);
        if (value === undefined) made.reset();
        else made.set(value);
      },
    });
  };
  const gauges = (name: string, help: string, label: string, look: () => Promise<Found>) => {
    const made: Gauge = new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [registry],
      collect: async () => {
        const found = await look().catch(() => []);
        made.reset();
        for (const [value, number] of found) made.set({ [label]: value }, number);
      },
    });
  };

  if (store) gauge('agon_log_position', 'Last position of the log.', () => store.lastPosition());
  if (logDir) gauge('agon_log_bytes', "Size of the log's files; 0 where it is kept elsewhere.", () => bytesIn(logDir));
  if (dataDir) {
    gauge('agon_disk_free_bytes', 'What is left of the disk that holds the data folder.', async () => {
      const { bavail, bsize } = await statfs(dataDir);
      return bavail * bsize;
    });
    gauge('agon_disk_size_bytes', 'How large that disk is.', async () => {
      const { blocks, bsize } = await statfs(dataDir);
      return blocks * bsize;
    });
  }
  if (store && consumers) {
    const positions = () => {
      // Who stands by is as far as it was when it last had the work, which says nothing.
      const active = [...consumers].filter(([, consumer]) => consumer.active?.() !== false);
      const all = active.map(([name, consumer]) => [name, consumer.position()] as const);
      return analyticsPosition ? [...all, ['analytics', analyticsPosition()] as const] : all;
    };
    gauges('agon_consumer_lag_events', 'Positions of the log that a consumer is behind.', 'consumer', async () => {
      const last = await store.lastPosition();
      return positions().map(([name, position]) => [name, last - position]);
    });
    gauges(
      'agon_consumer_lag_seconds',
      'How old the first event is that a consumer has not taken in.',
      'consumer',
      () => ages(store, positions()),
    );
    gauges('agon_consumer_active', 'Whether a consumer has the work (1) or stands by (0).', 'consumer', async () =>
      [...consumers].map(([name, consumer]) => [name, consumer.active?.() === false ? 0 : 1]),
    );
  }
  if (checkpoints && consumers) {
    gauges('agon_dead_letters', 'Events that a group gave up on, by group.', 'group', async () => {
      const letters = new Map([...consumers.keys()].map((group) => [group, 0]));
      for (const { group } of await checkpoints.deadLetters()) letters.set(group, (letters.get(group) ?? 0) + 1);
      return letters;
    });
  }
  if (projections) {
    const views = (name: string, help: string, pick: (status: ProjectionStatus) => number) =>
      gauges(name, help, 'view', async () => (await projections.list()).map((each) => [each.view, pick(each)]));
    views(
      'agon_projection_lag_events',
      'Positions of the log that the rows that serve are behind.',
      ({ lagEvents }) => lagEvents,
    );
    if (log) {
      const help = 'How old the first event is that is not in the rows that serve.';
      gauges('agon_projection_lag_seconds', help, 'view', async () =>
        ages(
          log,
          (await projections.list()).map(({ view, position }) => [view, position]),
        ),
      );
    }
    views('agon_projection_dead_letters', 'Events that a view has put aside.', ({ deadLetters }) => deadLetters);
    views(
      'agon_projection_build_position',
      'How far a rebuild is; 0 without one.',
      (each) => each.build?.position ?? 0,
    );
  }
  if (database) {
    const currency = bounded(32);
    const sums = keptFor(LEDGER_MS, async () => ledgerSums(await trialBalance(database)));
    gauges('agon_ledger_sum_cents', 'What all accounts add up to: anything but 0 is a fault.', 'currency', async () => {
      return Object.entries(await sums()).map(([name, sum]) => [currency(name), Number(sum)]);
    });
  }
  if (queue) {
    const places = (name: string, help: string, of: 'waiting' | 'leased' | 'asking') =>
      gauges(name, `${help}, by place: runners, or the table of agents from outside.`, 'place', async () => {
        const { runners, table } = queue.counts;
        return Object.entries({ runners: runners[of], table: table[of] });
      });
    places('agon_queue_waiting_matches', 'Matches that wait for a runner', 'waiting');
    places('agon_queue_leased_matches', 'Matches that a runner has in hand', 'leased');
    places('agon_queue_asking_runners', 'Runners that wait for a match', 'asking');
  }
  if (live) gauge('agon_spectators', 'Those who watch a match now.', () => live.spectators);
  if (agentsConnected) gauge('agon_agents_connected', 'Agents that are connected from outside.', agentsConnected);
  if (cells) {
    gauge('agon_sandbox_cells', 'Cells that run now.', () => cells.pids.length);
    if (cellsMax) gauge('agon_sandbox_cells_max', 'Cells that are kept for matches.', () => cellsMax);
    gauge('agon_sandbox_waiting', 'Jobs that wait for a cell.', () => cells.waiting);
    gauge('agon_sandbox_memory_bytes', 'Memory that the cells hold (Linux only).', () => residentBytes(cells.pids));
    gauge('agon_sandbox_cpu_seconds', 'Processor time of the cells that run now (Linux only).', () =>
      cpuSeconds(cells.pids),
    );
  }
}

/** How long each has been behind, by the events that it has not taken in. */
async function ages(store: Parts['log'], positions: readonly (readonly [string, number])[]): Promise<Found> {
  const last = await store.lastPosition();
  const now = systemClock();
  return Promise.all(
    positions.map(async ([name, position]) => {
      return [name, position >= last ? 0 : await secondsBehind(store, position, now)] as const;
    }),
  );
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

/** One figure a process; a process that is gone counts for nothing. */
async function summed(pids: readonly number[], file: string, read: (text: string) => number): Promise<number> {
  const each = pids.map(async (pid) => read(await readFile(`/proc/${pid}/${file}`, 'utf8')));
  const found = await Promise.allSettled(each);
  return found.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0);
}

const residentBytes = (pids: readonly number[]) =>
  summed(pids, 'statm', (text) => Number(text.split(' ')[1] ?? 0) * PAGE_BYTES);

/** User and system time, in hundredths of a second, behind the name, which may hold anything. */
const cpuSeconds = (pids: readonly number[]) =>
  summed(pids, 'stat', (text) => {
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  });
