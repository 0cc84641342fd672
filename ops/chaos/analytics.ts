import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { execPath, kill } from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { compiled } from '../../services/runtime/package.js';
import { withFolder } from '../bench/folders.js';
import { writeHistory } from '../bench/history.js';
import { Started } from './processes.js';
import { between, type Random, seededRandom } from './workload.js';

const EVENTS = 6_000;
const KILLS_MAX = 4;
const MOMENT_MS = 900;

export type FeederLine =
  | { readonly kind: 'engine'; readonly pid: number }
  | { readonly kind: 'progress'; readonly position: number }
  | {
      readonly kind: 'through';
      readonly kept: Record<string, string>;
      readonly rebuilt: Record<string, string>;
    };

export interface AnalyticsResult {
  readonly seed: number;
  readonly kills: { readonly engine: number; readonly feeder: number };
  readonly failures: readonly string[];
}

/** Engines and feeders killed while they insert: what is kept in the end must be what a rebuild makes, table by table. */
export async function runAnalyticsSeed(seed: number): Promise<AnalyticsResult> {
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
      return { seed, kills, failures: end.kind === 'through' ? differences(end) : [end.how] };
    }
  });
}

function nextVictim(random: Random, kills: { engine: number; feeder: number }): keyof typeof kills {
  const victim = random() < 0.6 ? 'engine' : 'feeder';
  kills[victim]++;
  return victim;
}

type Through = Extract<FeederLine, { kind: 'through' }>;
type End = Through | { readonly kind: 'killed' } | { readonly kind: 'ended'; readonly how: string };

/** From the start of a feeder to its end. Every engine that it starts may be the next victim, or the feeder itself. */
async function oneLife(args: string[], random: Random, victimOf: () => 'engine' | 'feeder' | undefined): Promise<End> {
  const child = spawn(execPath, [compiled(import.meta.url, './feeder.js'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const feeder = new Started(child);
  let through: Through | undefined;
  createInterface(child.stdout).on('line', async (text) => {
    const line = JSON.parse(text) as FeederLine;
    if (line.kind === 'through') through = line;
    if (line.kind !== 'engine') return;
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
