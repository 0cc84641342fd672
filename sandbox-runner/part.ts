import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { env } from 'node:process';
import { AgonError } from '../services/kernel/index.js';
import { claimIdsOf } from '../services/runtime/clock.js';
import { folderLayout } from '../services/runtime/data-folder.js';
import type { Host } from '../services/runtime/host.js';
import { definePart, type Part } from '../services/runtime/part.js';
import type { Config } from '../services/runtime/settings.js';
import type { ArenaPort } from './arena-port.js';
import { Cells } from './cells.js';
import { Egress } from './egress/egress.js';
import { readPolicy } from './egress/policy.js';
import { GrpcArena } from './grpc-port.js';
import { keyIn } from './key.js';
import { type Runner, type RunnerOptions, startRunner } from './runner.js';

const PAGE_BYTES = 4096;
const GRACE_MS = 10_000;

/** Cells to try code and play matches in. */
export const cells = definePart({
  name: 'cells',
  needs: {},
  start: async (_needs, host) => {
    const { config } = host;
    const egress = config.egress === undefined ? undefined : new Egress(readPolicy(config.egress, [], env));
    const value = new Cells({ size: config.cells }, egress);
    addCellGauges(host, value);
    return { value, stop: () => value.close({ kill: true }) };
  },
});

/** The arena that a runner plays for. */
export interface RunnersArena {
  readonly port: ArenaPort;
  /** Matches in hand at once, for so many cells. */
  inHandMax(cells: number): number;
  /** How long matches under way get to end; then they are handed back, and another runner plays them. */
  readonly graceMs: number;
  /** Whoever asks is told what this runner holds. */
  holds(holding: Runner['holding']): void;
}

/** The arena at the address that was named. */
export const remoteArena: Part<RunnersArena> = definePart({
  name: 'arena',
  needs: {},
  start: async (_needs, { config, clock, ids }: Host) => {
    const address = config.arena;
    if (address === undefined) {
      throw new AgonError('CONFIG.INVALID', 'AGON_ARENA is missing: a runner needs host:port of the arena.');
    }
    let holding: Runner['holding'] = () => [];
    const claimIds = claimIdsOf(config);
    const port = new GrpcArena({
      address,
      token: tokenOf(config),
      key: keyIn(folderLayout(config.dataDir).runnerKey),
      clock,
      ids,
      ...(claimIds ? { claimIds } : {}),
      holding: () => holding(),
    });
    await port.connect().catch((error: unknown) => {
      port.close();
      throw error;
    });
    const holds = (now: Runner['holding']) => {
      holding = now;
    };
    // As many matches as cells, so that a match that was claimed never waits for one.
    const value = { port, inHandMax: (size: number) => size, graceMs: GRACE_MS, holds };
    return { value, ready: async () => address, stop: async () => port.close() };
  },
});

/** Claims matches, plays them in cells and reports them. */
export const runner = definePart({
  name: 'runner',
  needs: { arena: remoteArena, cells },
  start: async ({ arena, cells: pool }, host) => {
    const { config, metrics } = host;
    const value = startRunner({
      arena: arena.port,
      key: keyIn(folderLayout(config.dataDir).runnerKey),
      pool: metrics.pool(pool),
      concurrency: arena.inHandMax(config.cells),
      live: true,
      ...heard(host),
    });
    arena.holds(value.holding);
    value.done.catch((error: unknown) => host.giveUp(error, 'runner'));
    const ready = async () => `${value.holding().length} matches in hand`;
    return { value, ready, stop: () => value.drain(arena.graceMs) };
  },
});

/** What is counted and logged of matches that are played here. */
export const heard = ({ metrics, log }: Host): Required<Pick<RunnerOptions, 'onPlayed' | 'say'>> => ({
  onPlayed: ({ game, outcome: { reason } }) => metrics.matches.inc({ game, reason }),
  say: (text, matchId) => log.debug({ matchId }, text),
});

function tokenOf({ runnerToken: given, dataDir }: Config): string {
  if (given) return given.reveal();
  const path = folderLayout(dataDir).runnerToken;
  if (existsSync(path)) return readFileSync(path, 'utf8').trim();
  throw new AgonError('RUNNERS.NO_TOKEN', `There is no runner token: set AGON_RUNNER_TOKEN, or put one at ${path}.`);
}

function addCellGauges({ metrics, config }: Host, cells: Cells): void {
  metrics.gauge('agon_sandbox_cells', 'Cells that run now.', () => cells.pids.length);
  metrics.gauge('agon_sandbox_cells_max', 'Cells that are kept for matches.', () => config.cells);
  metrics.gauge('agon_sandbox_waiting', 'Jobs that wait for a cell.', () => cells.waiting);
  metrics.gauge('agon_sandbox_memory_bytes', 'Memory that the cells hold (Linux only).', () =>
    residentBytes(cells.pids),
  );
  const cpu = 'Processor time of the cells that run now (Linux only).';
  metrics.gauge('agon_sandbox_cpu_seconds', cpu, () => cpuSeconds(cells.pids));
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
