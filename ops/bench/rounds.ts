/** One thing to be measured. A run answers with how many events a second it managed. */
export interface Contender {
  readonly name: string;
  run(): Promise<number>;
}

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
}

/**
 * Runs every contender once a round, each round starting with another one, so that whatever else the machine is doing
 * meets all of them alike. One unmeasured round goes first: it warms the compiler and the disk.
 */
export async function race(
  contenders: readonly Contender[],
  { rounds, progress }: BenchOptions,
): Promise<Map<string, number[]>> {
  const measured = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round <= rounds; round++) {
    const shift = round % contenders.length;
    for (const { name, run } of [...contenders.slice(shift), ...contenders.slice(0, shift)]) {
      const perSecond = await run();
      if (round > 0) measured.get(name)?.push(perSecond);
      progress(`${round === 0 ? 'warm-up' : `round ${round}/${rounds}`}  ${name}  ${thousands(perSecond)}/s`);
    }
  }
  return measured;
}

export function figures(rounds: readonly number[]): Figures {
  const sorted = [...rounds].sort((a, b) => a - b);
  return { median: median(sorted), min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0, rounds: rounds.map(Math.round) };
}

/** The median of the ratios round by round: both sides of each were measured within the same few seconds. */
export function ratio(measured: ReadonlyMap<string, readonly number[]>, ours: string, baseline: string): number {
  const theirs = measured.get(baseline) ?? [];
  const ratios = (measured.get(ours) ?? []).map((value, round) => value / (theirs[round] ?? Number.NaN));
  return Math.round(median(ratios.sort((a, b) => a - b)) * 100) / 100;
}

function median(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  const [low = Number.NaN, high = low] = sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1);
  return (low + high) / 2;
}

/** The ratios that did not reach their targets. */
export const missedIn = ({ ratios, targets }: Report): string[] =>
  Object.entries(targets).flatMap(([name, target]) => ((ratios[name] ?? 0) >= target ? [] : [name]));

/** The report as a person reads it. */
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
