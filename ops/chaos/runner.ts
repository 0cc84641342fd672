import { setTimeout as sleep } from 'node:timers/promises';
import { withFolder } from '../harness/folders.js';
import { type Outcomes, outcomesOf } from './outcomes.js';
import { type Started, startArena, startRunner } from './processes.js';
import type { Run } from './run.js';
import { between, type Random, seededRandom } from './workload.js';

/** What the arena process says, a line each. */
export type ArenaLine =
  | { readonly kind: 'open'; readonly address: string }
  | { readonly kind: 'event'; readonly type: string; readonly matchId: string }
  | { readonly kind: 'fault'; readonly what: string };

export const runner: Run = {
  name: 'runner',
  about: 'runners killed in the middle of matches',
  holds: 'every match ends with exactly one outcome, and money sums to zero',
  start: (seeds) => seeds(runRunnerSeed),
};

export const drain: Run = {
  name: 'drain',
  about: 'a long queue is drained, with stops in between',
  holds: 'every match of the queue is settled',
  start: (matches) => matches(runDrain),
  again: (matches) => `runner --drain ${matches}`,
};

const MATCHES = 6;
const RUNNERS = 2;
const KILLS_MAX = 4;
const DELAY_MS_MAX = 500;
/** The shortest there is, so that what a killed runner had in hand is soon somebody else's. */
const LEASE_MS = 1_000;
const FUEL = 30;
const STUCK_MS = 120_000;

/** What has been heard from the arena so far. */
class ArenaNews {
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
export function runRunnerSeed(seed: number): Promise<Outcomes & { readonly kills: number }> {
  const random = seededRandom('runner', seed);
  let kills = 0;
  return withFolder(async (folder) => {
    const news = new ArenaNews();
    const arena = await startArena({ folder, seed, matches: MATCHES, leaseMs: LEASE_MS, fuel: FUEL }, news.hear);
    const runners: { key: string; process: Started }[] = [];
    const start = (key: string) => {
      const concurrency = between(random, 1, 2);
      runners.push({ key, process: startRunner({ folder, address: arena.address, key, concurrency }) });
    };
    for (let i = 0; i < RUNNERS; i++) start(`runner-${i}`);
    const planned = between(random, 1, KILLS_MAX);
    while (kills < planned) {
      const claims = news.claims + between(random, 0, 2);
      await news.until(() => news.claims > claims || news.ended.size === MATCHES, 'a claim');
      await sleep(between(random, 0, DELAY_MS_MAX));
      const [victim] = runners.splice(between(random, 0, runners.length - 1), 1);
      if (!victim) break;
      kills += 1;
      await victim.process.end('SIGKILL');
      start(random() < 0.5 ? victim.key : `runner-${RUNNERS + kills}`);
    }
    await news.until(() => news.ended.size === MATCHES, 'the end of every match');
    const processes = runners.map((each) => each.process);
    const faults = [...news.faults, ...(await endAll(processes, arena.started))];
    const { failures, ...counts } = await outcomesOf(folder, MATCHES);
    return { kills, ...counts, failures: [...faults, ...failures] };
  });
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

/** A long queue, with runners stopped in the middle by signals, and the arena itself once. */
export function runDrain(matches: number) {
  const random: Random = seededRandom('drain');
  return withFolder(async (folder) => {
    const peakKiB = { arena: 0, runner: 0 };
    const news = new ArenaNews();
    const open = () => startArena({ folder, seed: 0, matches, leaseMs: 10_000, fuel: 1 }, news.hear);
    let arena = await open();
    let stops = 0;
    const start = () => startRunner({ folder, address: arena.address, key: 'runner', concurrency: 2 });
    let process = start();
    const stopRunner = async () => {
      stops += 1;
      const how = await process.end('SIGTERM');
      peakKiB.runner = Math.max(peakKiB.runner, process.peakKiB());
      if (!endedWell(how)) news.faults.push(`The runner ended with ${how}: ${process.errors}`);
    };
    for (const share of [0.25, 0.5, 0.75]) {
      const target = Math.floor(matches * share) + between(random, 0, 10);
      await news.until(() => news.ended.size >= Math.min(target, matches), `${target} matches`);
      await stopRunner();
      if (share === 0.5) {
        stops += 1;
        peakKiB.arena = Math.max(peakKiB.arena, arena.started.peakKiB());
        await arena.started.end('SIGTERM');
        arena = await open();
      }
      process = start();
    }
    await news.until(() => news.ended.size === matches, 'the end of every match');
    await stopRunner();
    peakKiB.arena = Math.max(peakKiB.arena, arena.started.peakKiB());
    const faults = await endAll([], arena.started);
    const { failures, ...outcomes } = await outcomesOf(folder, matches);
    const lost = outcomes.voided > 0 ? [`${outcomes.voided} matches were voided, though nobody was killed.`] : [];
    const mebibytes = (kib: number) => Math.round(kib / 1024);
    return {
      stops,
      ...outcomes,
      peakMiB: { arena: mebibytes(peakKiB.arena), runner: mebibytes(peakKiB.runner) },
      failures: [...news.faults, ...faults, ...failures, ...lost],
    };
  });
}
