import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Projections } from '../../projections/engine/projections.js';
import { Projector } from '../../projections/engine/projector.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast, views } from '../../projections/views.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { compiled } from '../../services/adapters/compiled.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { derivedId, type EventStore, type RecordedEvent, seal } from '../../services/kernel/index.js';
import { withFolder } from '../bench/folders.js';
import { writeHistory } from '../bench/history.js';
import { readLog } from './checks.js';
import { createDatabase } from './databases.js';
import { Started } from './processes.js';
import { hashOf } from './projections.js';
import { between, type Random, seededRandom } from './workload.js';

/** What the process that is killed says, a word a line. */
export type Moment = 'batching' | 'building' | 'swapping' | 'swapped';

export interface RebuildResult {
  readonly seed: number;
  readonly failures: readonly string[];
  readonly kills: number;
  /** What the process had last said when it was killed. */
  readonly killedWhile: Readonly<Record<Exclude<Moment, 'swapped'>, number>>;
  readonly swaps: number;
  readonly views: number;
}

const KILLS = 3;
const EVENTS = { min: 80, max: 300 };
const MOMENTS: readonly Moment[] = ['batching', 'building', 'swapping'];
/** Enough to get anywhere in a batch, a build or a swap of any view; more would only be more of the same. */
const REPEATS_MAX = { batching: 15, building: 12, swapping: 3 } as const;
/** A swap takes a few milliseconds; a kill within them strikes between its statements. */
const DELAY_MS_MAX = 12;
/** Far beyond what a busy machine takes. */
const STUCK_MS = 300_000;
const REVERSED = 0.15;

/** One seed: a log that grows, and projectors that are killed wherever they are, each going on where the last one died. */
export async function runRebuildSeed(seed: number, serverUrl: string): Promise<RebuildResult> {
  const random = seededRandom('projections', seed);
  const failures: string[] = [];
  const killedWhile = { batching: 0, building: 0, swapping: 0 };
  let [kills, swaps, raised] = [0, 0, 0];
  await withFolder(async (folder) => {
    const log = join(folder, 'log');
    const databaseUrl = await createDatabase(serverUrl, `rebuilds_${seed}`);
    while (kills < KILLS) {
      kills += 1;
      await grow(log, random);
      // The rules of a view change now and then; what was built by the old ones serves until the new rows are there.
      if (random() < 0.4) raised += 1;
      const ended = await projectAndKill([log, databaseUrl, `${seed}/${kills}`, `${raised}`], random);
      swaps += ended.swaps;
      if (ended.fault) failures.push(`Kill ${kills}: ${ended.fault}`);
      else if (ended.last !== 'swapped') killedWhile[ended.last] += 1;
    }
    failures.push(...(await compare(log, databaseUrl, raised)));
  }).catch((error: unknown) => failures.push(`It could not be carried out: ${String(error)}`));
  return { seed, failures, kills, killedWhile, swaps, views: views.length };
}

/** More matches, some of which are taken back: what follows from those is rated again. */
async function grow(folder: string, random: Random): Promise<void> {
  const store = await LmdbEventStore.open(folder);
  try {
    const before = await store.lastPosition();
    await writeHistory(store, between(random, EVENTS.min, EVENTS.max), `${before}`);
    const settled = (await readLog(store)).filter(({ type, position }) => type === 'MatchSettled' && position > before);
    for (const event of settled) if (random() < REVERSED) await takeBack(store, event);
  } finally {
    await store.close();
  }
}

async function takeBack(store: EventStore, settled: RecordedEvent): Promise<void> {
  const head = await store.head(settled.stream);
  if (!head) return;
  const { matchId, game, stakeCents, currency, seats } = settled.data as Record<string, never>;
  const { position: _position, hash: _hash, ...envelope } = settled;
  const reversal = seal({
    ...envelope,
    id: derivedId(settled.id, 'reversal'),
    type: 'MatchVoided',
    version: 1,
    revision: head.revision + 1,
    prevHash: head.hash,
    data: { matchId, game, stakeCents, currency, seats, reason: 'operator', detail: 'It counts no more.' },
  });
  await store.append(settled.stream, head.revision, [reversal]);
}

/** Lets projections run until they have come to a seeded moment, and a seeded while longer. */
async function projectAndKill(args: readonly string[], random: Random) {
  const target = MOMENTS[between(random, 0, MOMENTS.length - 1)] as Exclude<Moment, 'swapped'>;
  const repeats = between(random, 1, REPEATS_MAX[target]);
  const delayMs = random() * DELAY_MS_MAX;
  const child = spawn(execPath, [compiled(import.meta.url, './rebuilder.js'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const started = new Started(child);
  const stuck = setTimeout(() => child.kill('SIGKILL'), STUCK_MS);
  let [seen, swaps, last] = [0, 0, 'batching' as Moment];
  createInterface(child.stdout).on('line', (line) => {
    last = line as Moment;
    if (last === 'swapped') swaps += 1;
    if (last === target) seen += 1;
    if (seen === repeats && last === target) void sleep(delayMs).then(() => child.kill('SIGKILL'));
  });
  const how = await started.ended;
  clearTimeout(stuck);
  const fault = how !== 'SIGKILL' ? `the projector ended by itself (${how}): ${started.errors.slice(0, 500)}` : '';
  const stood = seen < repeats ? `it came to ${target} ${seen} times, not ${repeats}. ${started.errors}` : '';
  return { fault: fault || stood, last, swaps };
}

/** Starts once more, waits until everything is built and caught up, and compares with rows that nothing happened to. */
async function compare(folder: string, databaseUrl: string, raised: number): Promise<string[]> {
  const current = views.map((view) => ({ ...view, version: view.version + raised }));
  const store = await LmdbEventStore.open(folder);
  const database = await openDatabase(databaseUrl);
  const sink = new PostgresSink(database);
  const makeBus = (checkpoints: ConstructorParameters<typeof EmbeddedBus>[1]) => new EmbeddedBus(store, checkpoints);
  const projections = new Projections({ views: current, sink, store, upcast, makeBus });
  try {
    await projections.start();
    const untilMs = performance.now() + STUCK_MS;
    while ((await projections.list()).some(({ lagEvents, build }) => lagEvents > 0 || build !== null)) {
      if (performance.now() > untilMs) return [`It does not catch up: ${JSON.stringify(await projections.list())}`];
      await sleep(20);
    }
    const log = await readLog(store);
    const faults: string[] = [];
    for (const view of current) {
      const scratch = new MemorySink();
      await new Projector(view, scratch, upcast).project(log);
      if ((await hashOf(sink, view)) !== (await hashOf(scratch, view))) {
        faults.push(`The rows of ${view.name} are not those of a rebuild from scratch.`);
      }
      const letters = (await sink.letters(view)).length;
      if (letters > 0) faults.push(`${view.name} has put ${letters} events aside that it could have taken in.`);
      if (await sink.building(view)) faults.push(`${view.name} has left a build behind.`);
    }
    return faults;
  } finally {
    await projections.stop();
    await database.destroy();
    await store.close();
  }
}
