import { join } from 'node:path';
import { exit, kill } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { feed } from '../../projections/analytics/feed.js';
import { ClickHouseSink, clickHouseAt } from '../../projections/sinks/clickhouse.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { isAgonError } from '../../services/kernel/index.js';
import { writeHistory } from '../bench/history.js';
import { ChdbEngine } from '../engines/chdb.js';
import { withFolder } from '../harness/folders.js';
import { startChild, tell } from './children.js';
import type { Run } from './run.js';
import { between, type Random, seededRandom } from './workload.js';

const EVENTS = 6_000;
const KILLS_MAX = 4;
const MOMENT_MS = 900;

interface Through {
  readonly kind: 'through';
  readonly kept: Record<string, string>;
  readonly rebuilt: Record<string, string>;
}
type FeederLine = { readonly kind: 'engine'; readonly pid: number } | Through;

export const analytics: Run = {
  name: 'analytics',
  about: "ClickHouse's engine, and whoever feeds it, killed while they insert",
  holds: 'the rows of every table equal a rebuild',
  start: (seeds) => seeds(runSeed),
};

/** Engines and feeders killed while they insert: what is kept in the end must be what a rebuild makes, table by table. */
function runSeed(seed: number) {
  return withFolder(async (folder) => {
    const log = join(folder, 'log');
    const store = await LmdbEventStore.open(log);
    await writeHistory(store, EVENTS).finally(() => store.close());
    const random = seededRandom('analytics', seed);
    const args = [log, join(folder, 'analytics'), `${between(random, 10, 200)}`];
    const kills = { engine: 0, feeder: 0 };
    let left = between(random, 1, KILLS_MAX);
    for (;;) {
      const end = await oneLife(args, random, () => (left-- > 0 ? nextVictim(random, kills) : undefined));
      if (end.kind === 'killed') continue;
      return { kills, failures: end.kind === 'through' ? differences(end) : [end.how] };
    }
  });
}

function nextVictim(random: Random, kills: { engine: number; feeder: number }): keyof typeof kills {
  const victim = random() < 0.6 ? 'engine' : 'feeder';
  kills[victim]++;
  return victim;
}

type End = Through | { readonly kind: 'killed' } | { readonly kind: 'ended'; readonly how: string };

/** From the start of a feeder to its end. Every engine that it starts may be the next victim, or the feeder itself. */
async function oneLife(args: string[], random: Random, victimOf: () => 'engine' | 'feeder' | undefined): Promise<End> {
  let through: Through | undefined;
  const feeder = startChild<FeederLine>('feeder', args, async (line, { child }) => {
    if (line.kind === 'through') {
      through = line;
      return;
    }
    const victim = victimOf();
    if (!victim) return;
    await sleep(between(random, 0, MOMENT_MS));
    if (victim === 'feeder') child.kill('SIGKILL');
    else endProcess(line.pid);
  });
  const how = await feeder.ended;
  if (how === 'SIGKILL') return { kind: 'killed' };
  return through ?? { kind: 'ended', how: `The feeder ended by itself (${how}): ${feeder.errors}` };
}

/** The engine may have come to its end already. */
function endProcess(pid: number): void {
  try {
    kill(pid, 'SIGKILL');
  } catch {}
}

const differences = ({ kept, rebuilt }: Through): string[] =>
  Object.keys(rebuilt)
    .filter((table) => kept[table] !== rebuilt[table])
    .map((table) => `The rows of ${table} (${kept[table]}) are not those of a rebuild (${rebuilt[table]}).`);

/**
 * Child: takes a log into ClickHouse as the arena does. Once it is through, it builds a second set of tables in one go and
 * says what both hold.
 */
export async function feedAndCompare([log = '', folder = '', batchEvents = '100']: string[]): Promise<never> {
  const say: (line: FeederLine) => void = tell;
  const store = await LmdbEventStore.open(log, { readOnly: true });
  const last = await store.lastPosition();
  const engine = new ChdbEngine(folder);
  const sinkOf = async (database?: string) => {
    await engine.ensure();
    const sink = new ClickHouseSink(clickHouseAt(engine.writerUrl), database);
    await sink.migrate();
    return sink;
  };
  const following = feed({
    log: store,
    batchEvents: Number(batchEvents),
    gatherMs: 20,
    alive: () => engine.running,
    connect: async () => {
      const sink = await sinkOf();
      if (engine.pid !== undefined) say({ kind: 'engine', pid: engine.pid });
      return sink;
    },
  });
  while (following.position() < last) await sleep(20);
  await following.stop();
  for (;;) {
    try {
      const kept = await sinkOf();
      const rebuilt = await sinkOf('rebuilt');
      await feed({ log: store, connect: async () => rebuilt, once: true }).done;
      say({ kind: 'through', kept: await kept.fingerprints(), rebuilt: await rebuilt.fingerprints() });
      await engine.stop();
      exit(0);
    } catch (error) {
      // The engine may be killed now as well: what it holds is there again when it is.
      if (!isAgonError(error, 'ANALYTICS.UNAVAILABLE')) throw error;
    }
  }
}
