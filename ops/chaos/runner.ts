import { setTimeout as sleep } from 'node:timers/promises';
import { withFolder } from '../bench/folders.js';
import { type Outcomes, outcomesOf } from './outcomes.js';
import { type Started, startArena, startRunner } from './processes.js';
import { between, type Random, seededRandom } from './workload.js';

/** What the arena process says, a line each. */
export type ArenaLine =
  | { readonly kind: 'open'; readonly address: string }
  | { readonly kind: 'event'; readonly type: string; readonly matchId: string }
  | { readonly kind: 'fault'; readonly what: string };

export interface RunnerResult extends Outcomes {
  readonly seed: number;
  readonly kills: number;
}

const MATCHES = 6;
const RUNNERS = 2;
const KILLS_MAX = 4;
const DELAY_MS_MAX = 500;
/** The shortest there is, so that what a killed runner had in hand is soon somebody else's. */
const LEASE_MS = 1_000;
const FUEL = 30;
const STUCK_MS = 120_000;

/** What the arena has told so far. */
class Told {
  claims = 0;
  readonly ended = new Set<string>();
  readonly faults: string[] = [];

  readonly hear = (line: ArenaLine): void => {
    if (line.kind === 'fault') this.faults.push(line.what);
    if (line.kind !== 'event') return;
    if (line.type === 'MatchClaimed') this.claims += 1;
    else this.ended.add(line.matchId);
  };

  async until(holds: () => boolean, what: string): Promise<void> {
    const untilMs = performance.now() + STUCK_MS;
    while (!holds()) {
      if (performance.now() > untilMs)
        throw new Error(`Nothing moves: ${what}, with ${this.ended.size} matches ended.`);
      await sleep(5);
    }
  }
}

/** One seed: runners killed in the middle of matches, some started again with their key and some replaced. */
export async function runRunnerSeed(seed: number): Promise<RunnerResult> {
  const random = seededRandom('runner', seed);
  let kills = 0;
  const faults: string[] = [];
  let outcomes: Outcomes | undefined;
  await withFolder(async (folder) => {
    const told = new Told();
    const arena = await startArena({ folder, seed, matches: MATCHES, leaseMs: LEASE_MS, fuel: FUEL }, told.hear);
    const runners: { key: string; process: Started }[] = [];
    const start = (key: string) => {
      const concurrency = between(random, 1, 2);
      runners.push({ key, process: startRunner({ folder, address: arena.address, key, concurrency }) });
    };
    for (let i = 0; i < RUNNERS; i++) start(`runner-${i}`);
    const planned = between(random, 1, KILLS_MAX);
    while (kills < planned) {
      const claims = told.claims + between(random, 0, 2);
      await told.until(() => told.claims > claims || told.ended.size === MATCHES, 'a claim');
      await sleep(between(random, 0, DELAY_MS_MAX));
      const [victim] = runners.splice(between(random, 0, runners.length - 1), 1);
      if (!victim) break;
      kills += 1;
      await victim.process.end('SIGKILL');
      start(random() < 0.5 ? victim.key : `runner-${RUNNERS + kills}`);
    }
    await told.until(() => told.ended.size === MATCHES, 'the end of every match');
    faults.push(
      ...told.faults,
      ...(await endAll(
        runners.map((runner) => runner.process),
        arena.started,
      )),
    );
    outcomes = await outcomesOf(folder, MATCHES);
  }).catch((error: unknown) => faults.push(`It could not be carried out: ${String(error)}`));
  const none: Outcomes = { settled: 0, voided: 0, requeued: 0, failures: [] };
  const { failures, ...counts } = outcomes ?? none;
  return { seed, kills, ...counts, failures: [...faults, ...failures] };
}

/** One that was asked before it had started up dies of the signal, which is as good. */
const endedWell = (how: string) => how === 'exit 0' || how === 'SIGTERM';

/** Everybody is asked to stop, and does so in order. */
async function endAll(runners: readonly Started[], arena: Started): Promise<string[]> {
  const faults: string[] = [];
  for (const runner of runners) {
    const how = await runner.end('SIGTERM');
    if (!endedWell(how)) faults.push(`A runner ended with ${how}: ${runner.errors}`);
  }
  const how = await arena.end('SIGTERM');
  if (how !== 'exit 0') faults.push(`The arena ended with ${how}: ${arena.errors}`);
  return faults;
}

export interface DrainResult extends Outcomes {
  readonly matches: number;
  readonly stops: number;
  readonly seconds: number;
  /** The most memory that any process of a kind had resident. */
  readonly peakMiB: { readonly arena: number; readonly runner: number };
}

/** A long queue, with runners stopped in the middle by signals, and the arena itself once. */
export async function runDrain(matches: number, random: Random = seededRandom('drain')): Promise<DrainResult> {
  const startedMs = performance.now();
  return withFolder(async (folder) => {
    const peakKiB = { arena: 0, runner: 0 };
    const told = new Told();
    const open = () => startArena({ folder, seed: 0, matches, leaseMs: 10_000, fuel: 1 }, told.hear);
    let arena = await open();
    let stops = 0;
    let runner = startRunner({ folder, address: arena.address, key: 'runner', concurrency: 2 });
    const stopRunner = async () => {
      stops += 1;
      const how = await runner.end('SIGTERM');
      peakKiB.runner = Math.max(peakKiB.runner, runner.peakKiB());
      if (!endedWell(how)) told.faults.push(`The runner ended with ${how}: ${runner.errors}`);
    };
    for (const share of [0.25, 0.5, 0.75]) {
      const target = Math.floor(matches * share) + between(random, 0, 10);
      await told.until(() => told.ended.size >= Math.min(target, matches), `${target} matches`);
      await stopRunner();
      if (share === 0.5) {
        stops += 1;
        peakKiB.arena = Math.max(peakKiB.arena, arena.started.peakKiB());
        await arena.started.end('SIGTERM');
        arena = await open();
      }
      runner = startRunner({ folder, address: arena.address, key: 'runner', concurrency: 2 });
    }
    await told.until(() => told.ended.size === matches, 'the end of every match');
    await stopRunner();
    peakKiB.arena = Math.max(peakKiB.arena, arena.started.peakKiB());
    const faults = await endAll([], arena.started);
    const { failures, ...outcomes } = await outcomesOf(folder, matches);
    const lost = outcomes.voided > 0 ? [`${outcomes.voided} matches were voided, though nobody was killed.`] : [];
    const mebibytes = (kib: number) => Math.round(kib / 1024);
    return {
      matches,
      stops,
      ...outcomes,
      seconds: Math.round((performance.now() - startedMs) / 100) / 10,
      peakMiB: { arena: mebibytes(peakKiB.arena), runner: mebibytes(peakKiB.runner) },
      failures: [...told.faults, ...faults, ...failures, ...lost],
    };
  });
}
