import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Projections } from '../../projections/engine/projections.js';
import { Projector, type Sink } from '../../projections/engine/projector.js';
import type { View } from '../../projections/engine/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast, views } from '../../projections/views.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { derivedId, EMPTY_HEAD, type EventStore, type RecordedEvent, seal } from '../../services/kernel/index.js';
import { compiled } from '../../services/runtime/package.js';
import { withFolder } from '../bench/folders.js';
import { playChapter } from './chapters.js';
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
  readonly events: number;
  /** Events that no view can take in, and matches that were taken back. */
  readonly poisoned: number;
  readonly reversed: number;
}

const KILLS = 3;
const MATCHES = { min: 12, max: 20 };
/** So long does the writer wait before a command, at most: it is to go on for as long as a projector lives. */
const PAUSE_MS_MAX = 12;
const MOMENTS: readonly Moment[] = ['batching', 'building', 'swapping'];
/** Enough to get anywhere in a batch, a build or a swap of any view; more would only be more of the same. */
const REPEATS_MAX = { batching: 15, building: 12, swapping: 3 } as const;
/** A swap takes a few milliseconds; a kill within them strikes between its statements. */
const DELAY_MS_MAX = 12;
/** Far beyond what a busy machine takes. */
const STUCK_MS = 300_000;

/** One seed: a log that grows, and projectors that are killed wherever they are, each going on where the last one died. */
export async function runRebuildSeed(seed: number, serverUrl: string): Promise<RebuildResult> {
  const random = seededRandom('projections', seed);
  const failures: string[] = [];
  const killedWhile = { batching: 0, building: 0, swapping: 0 };
  let [kills, swaps, raised, log] = [0, 0, 0, [] as RecordedEvent[]];
  await withFolder(async (folder) => {
    const path = join(folder, 'log');
    const store = await LmdbEventStore.open(path);
    try {
      const databaseUrl = await createDatabase(serverUrl, `rebuilds_${seed}`);
      await playChapter(store, { name: 'first', random, matches: MATCHES.min });
      while (kills < KILLS) {
        kills += 1;
        // The rules of a view change now and then; what was built by the old ones serves until the new rows are there.
        if (random() < 0.4) raised += 1;
        const killed = projectAndKill([path, databaseUrl, `${seed}/${kills}`, `${raised}`], random);
        const [ended] = await Promise.all([killed, writeUntil(store, killed, seededRandom('writer', seed, kills))]);
        swaps += ended.swaps;
        if (ended.fault) failures.push(`Kill ${kills}: ${ended.fault}`);
        else if (ended.last !== 'swapped') killedWhile[ended.last] += 1;
      }
      log = await readLog(store);
      failures.push(...(await compare(store, log, databaseUrl, raised)));
    } finally {
      await store.close();
    }
  }).catch((error: unknown) => failures.push(`It could not be carried out: ${String(error)}`));
  const poisoned = log.filter(({ stream }) => stream.startsWith('poison-')).length;
  const reversed = log.filter(({ type }) => type === 'MatchReversed').length;
  return { seed, failures, kills, killedWhile, swaps, views: views.length, events: log.length, poisoned, reversed };
}

/** Goes on with the arena's life until the projector is gone, and stops in the middle of whatever it was at. */
async function writeUntil(store: EventStore, ended: Promise<unknown>, random: Random): Promise<void> {
  const over = new Error('The projector is gone.');
  let isOver = false;
  const stop = () => {
    isOver = true;
  };
  ended.then(stop, stop);
  const onward = async () => {
    await sleep(random() * PAUSE_MS_MAX);
    if (isOver) throw over;
  };
  try {
    for (;;) {
      const name = `c${await store.lastPosition()}`;
      await poison(store, random, name);
      await playChapter(store, { name, random, matches: between(random, MATCHES.min, MATCHES.max), onward });
    }
  } catch (error) {
    if (error !== over) throw error;
  }
}

/** Events that no view knows what to do with: each puts them aside, and goes on. */
const poisons = [
  { type: 'MatchCelebrated', version: 1, data: {} },
  { type: 'MatchSettled', version: 99, data: {} },
  { type: 'MatchSettled', version: 2, data: { game: 'a' } },
] as const;

async function poison(store: EventStore, random: Random, name: string): Promise<void> {
  const { type, version, data } = poisons[between(random, 0, poisons.length - 1)] as (typeof poisons)[number];
  const stream = `poison-${name}`;
  const { hash: prevHash, revision } = EMPTY_HEAD;
  const actor = { id: 'chaos', role: 'system' } as const;
  const meta = { commandId: stream, inputHash: '', correlationId: stream, causationId: stream, actor };
  const event = { type, version, data, stream, meta, prevHash, id: derivedId(stream, type), revision: revision + 1 };
  await store.append(stream, revision, [seal({ ...event, time: new Date().toISOString() })]);
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
async function compare(
  store: EventStore,
  log: readonly RecordedEvent[],
  databaseUrl: string,
  raised: number,
): Promise<string[]> {
  const current = views.map((view) => ({ ...view, version: view.version + raised }));
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
    return (await Promise.all(current.map((view) => faultsOf(view, sink, log)))).flat();
  } finally {
    await projections.stop();
    await database.destroy();
  }
}

async function faultsOf(view: View, sink: PostgresSink, log: readonly RecordedEvent[]): Promise<string[]> {
  const scratch = new MemorySink();
  await new Projector(view, scratch, upcast).project(log);
  const faults: string[] = [];
  if ((await hashOf(sink, view)) !== (await hashOf(scratch, view))) {
    faults.push(`The rows of ${view.name} are not those of a rebuild from scratch.`);
  }
  // What is empty equals itself, whatever was done to it.
  for (const table of view.tables) {
    if ((await sink.rows(table)).length === 0) faults.push(`${table.name} has no rows, so nothing was compared.`);
  }
  const [aside, expected] = await Promise.all([sink, scratch].map(async (each) => lettersOf(each, view)));
  if (aside !== expected) faults.push(`${view.name} has put aside ${aside}, and not ${expected}.`);
  if (await sink.building(view)) faults.push(`${view.name} has left a build behind.`);
  return faults;
}

/** The positions of the events that were put aside, and why. */
async function lettersOf(sink: Sink, view: View): Promise<string> {
  return (await sink.letters(view)).map(({ position, code }) => `${position} (${code})`).join(', ');
}
