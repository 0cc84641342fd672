import { availableParallelism } from 'node:os';
import { argv, exit, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { asAgonError } from '../../services/kernel/index.js';
import { type AnalyticsResult, runAnalyticsSeed } from './analytics.js';
import { runSeed, type SeedResult } from './append.js';
import { type ClusterResult, runClusterSeed, withCluster } from './cluster.js';
import { withServer } from './databases.js';
import { type PayoutResult, runPayoutSeed } from './payout.js';
import { type RebuildResult, runRebuildSeed } from './rebuilds.js';
import { type DrainResult, type RunnerResult, runDrain, runRunnerSeed } from './runner.js';
import { runSettleSeed, type SettleResult } from './settle.js';
import { Reader } from './torn.js';

const help = `Usage: npm run chaos -- append|runner|settle|payout|projections|analytics|cluster [--seeds N] [--seed S] [--drain N] [--json]

  append    writers killed at seeded moments, and copies of their logs damaged at seeded places:
            nothing acknowledged may be lost, nothing may be served that was not written,
            and projections killed with their writer (every tenth seed) must equal a rebuild
  runner    runners killed at seeded moments in the middle of matches: every match ends with exactly
            one outcome, and money sums to zero; then a long queue is drained, with stops in between
  settle    a house that plays for money killed around escrow, settlement, payout and reversal:
            after the restart money sums to zero and no match pays a wallet twice; then payout
  payout    a process killed around webhooks, transfers and refunds, against a stand-in for Stripe that repeats,
            reorders and loses: one credit a payment, one transfer a withdrawal, and money sums to zero
  projections  projectors killed at seeded moments of batching, rebuilding and swapping, while the log goes on with
            events of every kind: the rows of every view must equal a rebuild from scratch, by hash
  analytics ClickHouse's engine, and whoever feeds it, killed at seeded moments while they insert:
            the rows of every table must equal a rebuild, by hash
  cluster   processes of a cluster on real engines killed at seeded moments while matches are played for money, and
            one of three brokers of Kafka, PostgreSQL or Redis with them: nothing acknowledged is lost, nothing is
            paid twice, lag returns to zero, and rows and boards equal a rebuild

  --seeds N  how many seeds, from 1 on (20)
  --seed S   this seed alone, to repeat a failure
  --drain N  runner: how long the queue is (500); 0 leaves it out
  --json     one line of JSON on stdout; the rest goes to stderr
`;

/** Every so many seeds have projections running beside their writers; they take a second more each. */
const PROJECTED = 10;

try {
  const { positionals, values } = parseArgs({
    args: argv.slice(2),
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      json: { type: 'boolean', default: false },
      seed: { type: 'string' },
      seeds: { type: 'string', default: '20' },
      drain: { type: 'string', default: '500' },
    },
  });
  if (values.help) {
    stdout.write(help);
    exit(0);
  }
  const [run = '', ...more] = positionals;
  if (
    !['append', 'runner', 'settle', 'payout', 'projections', 'analytics', 'cluster'].includes(run) ||
    more.length > 0
  ) {
    refuse(`There is no chaos run "${positionals.join(' ')}".`);
  }
  const count = wholeNumber('--seeds', values.seeds);
  const seeds = values.seed === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(values.seed)];
  if (values.seed !== undefined) wholeNumber('--seed', values.seed);
  const startedMs = performance.now();
  const seconds = () => (performance.now() - startedMs) / 1000;
  if (run === 'append') {
    const results = await withServer((serverUrl) => appendAll(seeds, serverUrl));
    exit(report(results, seconds(), values.json));
  }
  if (run === 'analytics') {
    const results = await lanes('analytics', seeds, runAnalyticsSeed);
    exit(reportAnalytics(results, seconds(), values.json));
  }
  if (run === 'cluster') {
    const results = await withCluster((cluster) => oneByOne(seeds, cluster), tellStep);
    exit(reportCluster(results, seconds(), values.json));
  }
  if (run === 'projections') {
    const results = await withServer((serverUrl) => lanes(run, seeds, (seed) => runRebuildSeed(seed, serverUrl)));
    exit(reportRebuilds(results, seconds(), values.json));
  }
  if (run === 'settle' || run === 'payout') {
    const settled = run === 'settle' ? await lanes('settle', seeds, runSettleSeed) : undefined;
    const paid = await lanes('payout', seeds, runPayoutSeed);
    const killed = tally([...(settled ?? []), ...paid].flatMap(({ killedIn }) => killedIn));
    const summary = { chaos: run, killed, ...(settled ? settleSummary(settled) : {}), ...payoutSummary(paid) };
    const failures = [...(settled ?? []), ...paid].flatMap(({ seed, failures: all }) =>
      all.map((what) => ({ seed, what })),
    );
    exit(reportMoney({ ...summary, failures }, seconds(), values.json));
  }
  const drain = values.seed === undefined ? Number(values.drain) : 0;
  if (drain !== 0) wholeNumber('--drain', values.drain);
  const results = await lanes('runner', seeds, runRunnerSeed);
  exit(reportRunner(results, drain > 0 ? await runDrain(drain) : undefined, seconds(), values.json));
} catch (error) {
  const { code, message } = asAgonError(error);
  if ((error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) refuse(message);
  stderr.write(`${code}: ${message}\n`);
  exit(1);
}

/** As many seeds at a time as there are cores. */
async function lanes<Result extends { seed: number; failures: readonly string[] }>(
  run: string,
  seeds: readonly number[],
  carryOut: (seed: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = [...seeds];
  const lane = async () => {
    for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
      const result = await carryOut(seed);
      results.push(result);
      for (const failure of result.failures) tellFailure(run, seed, failure);
      showProgress(results.length, seeds.length);
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), seeds.length) }, lane));
  return results.sort((a, b) => a.seed - b.seed);
}

async function oneByOne(seeds: readonly number[], cluster: Parameters<typeof runClusterSeed>[1]) {
  const results: ClusterResult[] = [];
  for (const seed of seeds) {
    const result = await runClusterSeed(seed, cluster);
    results.push(result);
    tellStep(`seed ${seed}: killed ${result.faults.join(', ')}; ${result.matches} matches, ${result.retries} retries`);
    for (const failure of result.failures) tellFailure('cluster', seed, failure);
  }
  return results;
}

function tellStep(step: string): void {
  stderr.write(`${step}\n`);
}

async function appendAll(seeds: readonly number[], serverUrl: string): Promise<SeedResult[]> {
  const idle: Reader[] = [];
  const results = await lanes('append', seeds, async (seed) => {
    const reader = idle.pop() ?? new Reader();
    try {
      return await runSeed(seed, reader, seed % PROJECTED === 0 ? serverUrl : undefined);
    } finally {
      idle.push(reader);
    }
  });
  for (const reader of idle) reader.stop();
  return results;
}

function tellFailure(run: string, seed: number, failure: string): void {
  const again = `npm run chaos -- ${run} --seed ${seed}`;
  stderr.write(`${stderr.isTTY ? '\r\x1b[K' : ''}Seed ${seed}: ${failure}\n  ${again}\n`);
}

function showProgress(done: number, all: number): void {
  if (!stderr.isTTY) return;
  const filled = Math.round((done / all) * 30);
  stderr.write(`\r${'█'.repeat(filled)}${'░'.repeat(30 - filled)} ${done}/${all} seeds${done === all ? '\n' : ''}`);
}

function report(results: readonly SeedResult[], seconds: number, json: boolean): number {
  const sum = (of: (result: SeedResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const failures = results.flatMap(({ seed, failures }) => failures.map((what) => ({ seed, what })));
  const summary = {
    chaos: 'append',
    seeds: results.length,
    kills: sum((result) => result.kills),
    acknowledged: sum((result) => result.acknowledged),
    events: sum((result) => result.events),
    torn: { reported: sum((result) => result.torn.reported), harmless: sum((result) => result.torn.harmless) },
    failures,
    seconds: Math.round(seconds * 10) / 10,
  };
  if (json) stdout.write(`${JSON.stringify(summary)}\n`);
  else {
    const { torn } = summary;
    stdout.write(
      `${summary.seeds} seeds, ${summary.kills} kills, ${summary.acknowledged} acknowledged commands with ` +
        `${summary.events} events, none of them lost: ${failures.length === 0 ? 'yes' : 'NO'}\n` +
        `${torn.reported + torn.harmless} damaged copies: ${torn.reported} reported, ${torn.harmless} harmless\n` +
        `${failures.length} failures in ${summary.seconds} s\n`,
    );
  }
  return failures.length === 0 ? 0 : 1;
}

function reportRebuilds(results: readonly RebuildResult[], seconds: number, json: boolean): number {
  const sum = (of: (result: RebuildResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const failures = results.flatMap(({ seed, failures }) => failures.map((what) => ({ seed, what })));
  const summary = {
    chaos: 'projections',
    seeds: results.length,
    kills: sum((result) => result.kills),
    killedWhile: {
      batching: sum((result) => result.killedWhile.batching),
      building: sum((result) => result.killedWhile.building),
      swapping: sum((result) => result.killedWhile.swapping),
    },
    swaps: sum((result) => result.swaps),
    views: sum((result) => result.views),
    events: sum((result) => result.events),
    poisoned: sum((result) => result.poisoned),
    reversed: sum((result) => result.reversed),
    failures,
    seconds: Math.round(seconds * 10) / 10,
  };
  if (json) stdout.write(`${JSON.stringify(summary)}\n`);
  else {
    const { batching, building, swapping } = summary.killedWhile;
    stdout.write(
      `${summary.seeds} seeds, ${summary.kills} kills: ${batching} after a batch, ${building} in a rebuild, ${swapping} at ` +
        `a swap; ${summary.swaps} swaps\n${summary.events} events while they ran, ${summary.poisoned} of them poisoned, ` +
        `${summary.reversed} matches reversed\n${summary.views} views compared by hash with a rebuild from scratch: ` +
        `${failures.length} failures in ${summary.seconds} s\n`,
    );
  }
  return failures.length === 0 ? 0 : 1;
}

function reportRunner(
  results: readonly RunnerResult[],
  drained: DrainResult | undefined,
  seconds: number,
  json: boolean,
): number {
  const sum = (of: (result: RunnerResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const failures = results.flatMap(({ seed, failures }) => failures.map((what) => ({ seed, what })));
  const summary = {
    chaos: 'runner',
    seeds: results.map(({ seed }) => seed),
    kills: sum((result) => result.kills),
    matches: { settled: sum((result) => result.settled), voided: sum((result) => result.voided) },
    interrupted: sum((result) => result.requeued),
    drained,
    failures,
    seconds: Math.round(seconds * 10) / 10,
  };
  const good = failures.length === 0 && (drained?.failures.length ?? 0) === 0;
  if (json) stdout.write(`${JSON.stringify(summary)}\n`);
  else {
    const { settled, voided } = summary.matches;
    stdout.write(
      `seeds ${summary.seeds.join(' ')}\n${summary.kills} runners killed, ${summary.interrupted} attempts interrupted; ` +
        `${settled} matches settled, ${voided} voided, one outcome each: ${failures.length === 0 ? 'yes' : 'NO'}\n`,
    );
    if (drained) {
      const { matches, stops, peakMiB } = drained;
      stdout.write(
        `${matches} queued matches drained with ${stops} stops in ${drained.seconds} s: ${drained.settled} settled; ` +
          `peak memory ${peakMiB.arena} MiB in the arena, ${peakMiB.runner} MiB in a runner\n`,
      );
      for (const failure of drained.failures) stdout.write(`drain: ${failure}\n`);
    }
    stdout.write(`${failures.length + (drained?.failures.length ?? 0)} failures in ${summary.seconds} s\n`);
  }
  return good ? 0 : 1;
}

function total<Result>(results: readonly Result[], of: (result: Result) => number): number {
  return results.reduce((sum, result) => sum + of(result), 0);
}

/** How many of each. */
function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function settleSummary(results: readonly SettleResult[]) {
  return {
    houses: results.length,
    housesKilled: total(results, ({ killedIn }) => killedIn.length),
    settled: total(results, ({ settled }) => settled),
    payouts: total(results, ({ payouts }) => payouts),
  };
}

function payoutSummary(results: readonly PayoutResult[]) {
  return {
    tills: results.length,
    tillsKilled: total(results, ({ killedIn }) => killedIn.length),
    payments: total(results, ({ payments }) => payments),
    transfers: total(results, ({ transfers }) => transfers),
  };
}

interface MoneySummary extends Partial<ReturnType<typeof settleSummary>>, ReturnType<typeof payoutSummary> {
  readonly chaos: string;
  /** Kills by what was under way. */
  readonly killed: Readonly<Record<string, number>>;
  readonly failures: readonly { readonly seed: number; readonly what: string }[];
}

function reportMoney(summary: MoneySummary, seconds: number, json: boolean): number {
  const { failures } = summary;
  const took = Math.round(seconds * 10) / 10;
  const good = failures.length === 0 ? 'yes' : 'NO';
  if (json) stdout.write(`${JSON.stringify({ ...summary, seconds: took })}\n`);
  else {
    const { houses, housesKilled, settled, payouts, tills, tillsKilled, payments, transfers } = summary;
    if (houses !== undefined) {
      stdout.write(
        `${houses} seeds, ${housesKilled} kills, ${settled} matches settled with ${payouts} payouts; ` +
          `money sums to zero and nobody is paid twice: ${good}\n`,
      );
    }
    stdout.write(
      `${tills} seeds, ${tillsKilled} kills, ${payments} payments and ${transfers} transfers; ` +
        `one credit a payment, one transfer a withdrawal: ${good}\n` +
        `killed in ${Object.entries(summary.killed)
          .map(([phase, count]) => `${phase} ${count}`)
          .join(', ')}\n${failures.length} failures in ${took} s\n`,
    );
  }
  return failures.length === 0 ? 0 : 1;
}

function reportCluster(results: readonly ClusterResult[], seconds: number, json: boolean): number {
  const failures = results.flatMap(({ seed, failures }) => failures.map((what) => ({ seed, what })));
  const summary = {
    chaos: 'cluster',
    seeds: results.map(({ seed }) => seed),
    killed: tally(results.flatMap(({ faults }) => faults)),
    acknowledged: total(results, ({ acknowledged }) => acknowledged),
    matches: total(results, ({ matches }) => matches),
    failures,
    seconds: Math.round(seconds * 10) / 10,
  };
  const killed = Object.entries(summary.killed).map(([name, count]) => `${name} ${count}`);
  const text =
    `seeds ${summary.seeds.join(' ')}\nkilled: ${killed.join(', ')}\n` +
    `${summary.acknowledged} commands acknowledged and ${summary.matches} matches: nothing lost, nothing paid twice, ` +
    `rows equal to a rebuild: ${failures.length === 0 ? 'yes' : 'NO'}\n${failures.length} failures in ${summary.seconds} s`;
  stdout.write(`${json ? JSON.stringify(summary) : text}\n`);
  return failures.length === 0 ? 0 : 1;
}

function reportAnalytics(results: readonly AnalyticsResult[], seconds: number, json: boolean): number {
  const failures = results.flatMap(({ seed, failures }) => failures.map((what) => ({ seed, what })));
  const kills = (victim: 'engine' | 'feeder') => results.reduce((total, result) => total + result.kills[victim], 0);
  const summary = {
    chaos: 'analytics',
    seeds: results.map(({ seed }) => seed),
    kills: { engine: kills('engine'), feeder: kills('feeder') },
    failures,
    seconds: Math.round(seconds * 10) / 10,
  };
  const text =
    `seeds ${summary.seeds.join(' ')}\n${summary.kills.engine} engines and ${summary.kills.feeder} feeders killed; ` +
    `every table equal to a rebuild: ${failures.length === 0 ? 'yes' : 'NO'}\n` +
    `${failures.length} failures in ${summary.seconds} s`;
  stdout.write(`${json ? JSON.stringify(summary) : text}\n`);
  return failures.length === 0 ? 0 : 1;
}

function wholeNumber(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) refuse(`${flag} is a whole number from 1 on.`);
  return value;
}

function refuse(why: string): never {
  stderr.write(`${why}\n\n${help}`);
  exit(2);
}
