import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { View } from '../../projections/engine/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import type { MemorySink } from '../../projections/sinks/memory.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { views } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { derivedId, EMPTY_HEAD, type EventStore, type RecordedEvent, seal } from '../../services/kernel/index.js';
import { createDatabase, withFolder, withPostgres } from '../harness/folders.js';
import { readLog } from './checks.js';
import { endWithin, startChild, tell } from './children.js';
import { countIn } from './outcomes.js';
import { projectionsOf, rebuiltFrom, rowFaults } from './rows.js';
import type { Run } from './run.js';
import { playScenario } from './scenario.js';
import { between, type Random, seededRandom } from './workload.js';

/** What the process that is killed says, a word a line. */
type Moment = 'batching' | 'building' | 'swapping' | 'swapped';

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

export const projections: Run = {
  name: 'projections',
  about: 'projectors killed while they batch, rebuild and swap, and the log goes on with events of every kind',
  holds: 'the rows of every view equal a rebuild from scratch',
  start: (seeds) => withPostgres((url) => seeds((seed) => runSeed(seed, url))),
};

/** One seed: a log that grows, and projectors that are killed wherever they are, each going on where the last one died. */
function runSeed(seed: number, serverUrl: string) {
  const random = seededRandom('projections', seed);
  const failures: string[] = [];
  const killedWhile = { batching: 0, building: 0, swapping: 0 };
  let [kills, swaps, raised] = [0, 0, 0];
  return withFolder(async (folder) => {
    const path = join(folder, 'log');
    const store = await LmdbEventStore.open(path);
    try {
      const databaseUrl = await createDatabase(serverUrl, `rebuilds_${seed}`);
      await playScenario(store, { name: 'first', random, matches: MATCHES.min });
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
      const log = await readLog(store);
      failures.push(...(await compare(store, log, databaseUrl, raised)));
      return {
        kills,
        killedWhile,
        swaps,
        views: views.length,
        events: log.length,
        poisoned: log.filter(({ stream }) => stream.startsWith('poison-')).length,
        reversed: countIn(log, 'MatchReversed'),
        failures,
      };
    } finally {
      await store.close();
    }
  });
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
      await playScenario(store, { name, random, matches: between(random, MATCHES.min, MATCHES.max), onward });
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
  let [seen, swaps, last] = [0, 0, 'batching' as Moment];
  const projector = startChild<Moment>('projector', args, (moment, { child }) => {
    last = moment;
    if (last === 'swapped') swaps += 1;
    if (last === target) seen += 1;
    if (seen === repeats && last === target) void sleep(delayMs).then(() => child.kill('SIGKILL'));
  });
  const how = await endWithin(projector, STUCK_MS);
  const fault = `the projector ended with ${how} after coming to ${target} ${seen} times, not ${repeats}: ${projector.errors}`;
  return { fault: how === 'SIGKILL' ? '' : fault, last, swaps };
}

/** Child: follows a log in small batches, and rebuilds one view after the other. */
export async function projectAndRebuild([folder = '', databaseUrl = '', run = '', raised = '0']: string[]) {
  const random = seededRandom('rebuilder', run);
  const say: (moment: Moment) => void = tell;
  const store = await LmdbEventStore.open(folder, { readOnly: true });
  const projecting = projectionsOf(store, new PostgresSink(await openDatabase(databaseUrl)), {
    views: raisedViews(Number(raised)),
    batchEvents: between(random, 3, 40),
    buildBatchEvents: between(random, 5, 80),
    onCommitted: () => say('batching'),
    onProgress: (_view, { phase }) => say(phase),
    onBuildFailed: (_view, error) => console.error(String(error)),
  });
  await projecting.start();
  for (;;) {
    // Whoever waits for a batch must not wait for ever where there is nothing left to catch up with.
    say('batching');
    await projecting.rebuild(views[between(random, 0, views.length - 1)]?.name ?? '');
  }
}

const raisedViews = (by: number): View[] => views.map((view) => ({ ...view, version: view.version + by }));

/** Starts once more, waits until everything is built and caught up, and compares with rows that nothing happened to. */
async function compare(
  store: EventStore,
  log: readonly RecordedEvent[],
  databaseUrl: string,
  raised: number,
): Promise<string[]> {
  const current = raisedViews(raised);
  const database = await openDatabase(databaseUrl);
  const sink = new PostgresSink(database);
  const projecting = projectionsOf(store, sink, { views: current });
  try {
    await projecting.start();
    const untilMs = performance.now() + STUCK_MS;
    while ((await projecting.list()).some(({ lagEvents, build }) => lagEvents > 0 || build !== null)) {
      if (performance.now() > untilMs) return [`It does not catch up: ${JSON.stringify(await projecting.list())}`];
      await sleep(20);
    }
    const rebuilt = await rebuiltFrom(log, current);
    const others = await Promise.all(current.map((view) => faultsOf(view, sink, rebuilt)));
    return [...(await rowFaults(sink, rebuilt, current)), ...others.flat()];
  } finally {
    await projecting.stop();
    await database.destroy();
  }
}

async function faultsOf(view: View, sink: PostgresSink, rebuilt: MemorySink): Promise<string[]> {
  const faults: string[] = [];
  // What is empty equals itself, whatever was done to it.
  for (const table of view.tables) {
    if ((await sink.rows(table)).length === 0) faults.push(`${table.name} has no rows, so nothing was compared.`);
  }
  const [aside, expected] = await Promise.all(
    [sink, rebuilt].map(async (each) => {
      const putAside = await each.letters(view);
      return putAside.map(({ position, code }) => `${position} (${code})`).join(', ');
    }),
  );
  if (aside !== expected) faults.push(`${view.name} has put aside ${aside}, and not ${expected}.`);
  if (await sink.building(view)) faults.push(`${view.name} has left a build behind.`);
  return faults;
}
