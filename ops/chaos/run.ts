import { availableParallelism } from 'node:os';
import { stderr } from 'node:process';

/** Numbers are added up over all seeds, and names counted. */
type Figure = number | readonly string[] | { readonly [name: string]: Figure };

/** What came of a seed: its failures, and figures beside them. */
interface Findings {
  readonly failures: readonly string[];
}

type Seeds = (carryOut: (seed: number) => Promise<Findings>) => Promise<void>;

export interface Run {
  readonly name: string;
  /** What is killed, and when. */
  readonly about: string;
  /** What must hold whatever is killed. */
  readonly holds: string;
  /** How many seeds at a time; as many as there are cores when left out. */
  readonly lanes?: number;
  /** Gives every seed what all of them share. */
  start(seeds: Seeds): Promise<void>;
  /** The words after `npm run chaos --` that repeat a failure. */
  again?(seed: number): string;
}

export interface Summary {
  readonly seeds: number;
  readonly [figure: string]: unknown;
  readonly failures: readonly { readonly seed: number; readonly what: string }[];
  readonly seconds: number;
}

/** Carries out a run with these seeds, tells failures as they come, and sums up. */
export async function summaryOf(run: Run, seeds: readonly number[]): Promise<Summary> {
  const startedMs = performance.now();
  const results: (Findings & { readonly seed: number })[] = [];
  await run.start(async (carryOut) => {
    const waiting = [...seeds];
    const lane = async () => {
      for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
        const result = await carryOut(seed).catch((error: unknown) => ({
          failures: [`It could not be carried out: ${String(error)}`],
        }));
        results.push({ ...result, seed });
        for (const failure of result.failures) tellFailure(run, seed, failure);
        showProgress(results.length, seeds.length);
      }
    };
    await Promise.all(Array.from({ length: Math.min(run.lanes ?? availableParallelism(), seeds.length) }, lane));
  });
  results.sort((a, b) => a.seed - b.seed);
  return {
    seeds: results.length,
    ...(combined(results.map(({ seed: _seed, failures: _failures, ...figures }) => figures)) as object),
    failures: results.flatMap(({ seed, failures }) => failures.map((what) => ({ seed, what }))),
    seconds: Math.round((performance.now() - startedMs) / 100) / 10,
  };
}

function combined(figures: readonly Figure[]): unknown {
  if (figures.every((each) => typeof each === 'number')) return figures.reduce((sum, each) => sum + each, 0);
  if (figures.every((each) => Array.isArray(each))) return tally(figures.flat() as string[]);
  const parts = new Set(figures.flatMap((each) => Object.keys(each)));
  const of = (name: string) =>
    figures.flatMap((each) => (name in (each as object) ? [(each as Record<string, Figure>)[name] as Figure] : []));
  return Object.fromEntries([...parts].map((name) => [name, combined(of(name))]));
}

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

export function textOf({ name, holds }: Run, { failures, seconds, ...figures }: Summary): string {
  const inWords = (value: unknown): string =>
    typeof value === 'object' && value !== null
      ? Object.entries(value)
          .map(([part, each]) => `${part} ${inWords(each)}`)
          .join(', ')
      : `${value}`;
  const lines = Object.entries(figures).map(([figure, value]) => `  ${figure.padEnd(14)}${inWords(value)}`);
  const verdict = `${holds}: ${failures.length === 0 ? 'yes' : 'NO'}`;
  return [`${name}, ${seconds} s`, ...lines, verdict, `${failures.length} failures`, ''].join('\n');
}

export function tellStep(step: string): void {
  stderr.write(`${step}\n`);
}

function tellFailure({ name, again = (seed) => `${name} --seed ${seed}` }: Run, seed: number, failure: string): void {
  tellStep(`${stderr.isTTY ? '\r\x1b[K' : ''}${name} ${seed}: ${failure}\n  npm run chaos -- ${again(seed)}`);
}

function showProgress(done: number, all: number): void {
  if (!stderr.isTTY) return;
  const filled = Math.round((done / all) * 30);
  stderr.write(`\r${'█'.repeat(filled)}${'░'.repeat(30 - filled)} ${done}/${all} seeds${done === all ? '\n' : ''}`);
}
