/** Things to be measured, by name. A run answers with how many events a second it managed. */
export type Contenders = Readonly<Record<string, () => Promise<number>>>;

export interface Figures {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: readonly number[];
}

export interface Report {
  readonly results: Readonly<Record<string, Figures>>;
  readonly ratios: Readonly<Record<string, number>>;
  /** The least that each ratio is to reach; ratios without one are for information. */
  readonly targets: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
  /** Milliseconds of the same question asked in two places. */
  readonly times?: Readonly<Record<string, { readonly clickhouseMs: number; readonly postgresMs: number }>>;
}

export interface BenchOptions {
  readonly rounds: number;
  /** Fewer events: to see that everything runs, not to compare. */
  readonly quick: boolean;
  readonly progress: (line: string) => void;
  /** The server to measure, where one can be named. */
  readonly url?: string | undefined;
}

/** A part of a number for a quick run, and all of it otherwise. */
export const scaled = ({ quick }: BenchOptions, count: number, share = 10): number => (quick ? count / share : count);

export async function perSecond(count: number, work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return (count / (performance.now() - startedMs)) * 1000;
}

interface Comparison extends Partial<Pick<Report, 'targets' | 'notes'>> {
  /** By name, which contender is divided by which. */
  readonly ratios: Readonly<Record<string, readonly [ours: string, baseline: string]>>;
}

export async function compare(
  contenders: Contenders,
  options: BenchOptions,
  { ratios, targets = {}, notes = [] }: Comparison,
): Promise<Report> {
  const measured = await race(contenders, options);
  return {
    results: Object.fromEntries([...measured].map(([name, rounds]) => [name, figures(rounds)])),
    ratios: Object.fromEntries(Object.entries(ratios).map(([name, of]) => [name, ratio(measured, ...of)])),
    targets,
    notes,
  };
}

type Bench = (options: BenchOptions) => Promise<Report>;

/** One report of several, taken one after the other. */
export const inTurn =
  (...benches: readonly Bench[]): Bench =>
  async (options) => {
    const reports: Report[] = [];
    for (const bench of benches) reports.push(await bench(options));
    return {
      results: Object.assign({}, ...reports.map(({ results }) => results)),
      ratios: Object.assign({}, ...reports.map(({ ratios }) => ratios)),
      targets: Object.assign({}, ...reports.map(({ targets }) => targets)),
      notes: reports.flatMap(({ notes }) => notes),
    };
  };

export function quantile(values: readonly number[], share: number): string {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(1);
}

/** Does one thing after the other, and says how long each took; the first ones find connections and compiled code. */
export async function delaysOf(count: number, warmUp: number, work: (i: number) => Promise<unknown>): Promise<string> {
  const tookMs: number[] = [];
  for (let i = 0; i < count + warmUp; i++) {
    const startedMs = performance.now();
    await work(i);
    if (i >= warmUp) tookMs.push(performance.now() - startedMs);
  }
  return `p50 ${quantile(tookMs, 0.5)} p99 ${quantile(tookMs, 0.99)}`;
}

/**
 * Runs every contender once a round, each round starting with another one, so that whatever else the machine is doing
 * meets all of them alike. One unmeasured round goes first: it warms the compiler and the disk.
 */
async function race(contenders: Contenders, { rounds, progress }: BenchOptions): Promise<Map<string, number[]>> {
  const names = Object.keys(contenders);
  const measured = new Map(names.map((name) => [name, [] as number[]]));
  for (let round = 0; round <= rounds; round++) {
    const shift = round % names.length;
    for (const name of [...names.slice(shift), ...names.slice(0, shift)]) {
      const speed = (await contenders[name]?.()) ?? Number.NaN;
      if (round > 0) measured.get(name)?.push(speed);
      progress(`${round === 0 ? 'warm-up' : `round ${round}/${rounds}`}  ${name}  ${thousands(speed)}/s`);
    }
  }
  return measured;
}

export function figures(rounds: readonly number[]): Figures {
  const sorted = [...rounds].sort((a, b) => a - b);
  return { median: median(sorted), min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0, rounds: rounds.map(Math.round) };
}

/** The median of the ratios round by round: both sides of each were measured within the same few seconds. */
function ratio(measured: ReadonlyMap<string, readonly number[]>, ours: string, baseline: string): number {
  const theirs = measured.get(baseline) ?? [];
  const ratios = (measured.get(ours) ?? []).map((value, round) => value / (theirs[round] ?? Number.NaN));
  return Math.round(median(ratios.sort((a, b) => a - b)) * 100) / 100;
}

function median(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  const [low = Number.NaN, high = low] = sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1);
  return (low + high) / 2;
}

export const missedIn = ({ ratios, targets }: Report): string[] =>
  Object.entries(targets).flatMap(([name, target]) => ((ratios[name] ?? 0) >= target ? [] : [name]));

export function tableOf(bench: string, report: Report): string {
  const rows = Object.entries(report.results).map(([name, { median, min, max }]) => [
    name,
    thousands(median),
    `${thousands(min)} to ${thousands(max)}`,
  ]);
  const ratios = Object.entries(report.ratios).map(([name, value]) => {
    const target = report.targets[name];
    if (target === undefined) return [name, value.toFixed(2), '', ''];
    return [name, value.toFixed(2), `at least ${target}`, value >= target ? 'met' : 'MISSED'];
  });
  return [
    aligned([[bench, 'a second (median)', 'spread'], ...rows]),
    aligned([['ours divided by', 'ratio', 'target', ''], ...ratios]),
    ...report.notes,
  ].join('\n\n');
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[i] ?? 0))).join('   ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}

export const thousands = (value: number) => Math.round(value).toLocaleString('en-US');
