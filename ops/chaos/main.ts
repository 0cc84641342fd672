import { exit, stdout } from 'node:process';
import { newProgram, runProgram, wholeNumber } from '../harness/command-line.js';
import { analytics } from './analytics.js';
import { append } from './append.js';
import { cluster } from './cluster.js';
import { payout } from './payout.js';
import { projections } from './rebuilds.js';
import { type Run, type Summary, summaryOf, textOf } from './run.js';
import { drain, runner } from './runner.js';
import { settle } from './settle.js';
import { storeAt } from './store.js';

/** Each with what follows it. */
const runs = [
  [append],
  [runner, drain],
  [settle, payout],
  [payout],
  [projections],
  [analytics],
  [cluster],
  [storeAt()],
] as const;

interface Options {
  readonly seeds: number;
  readonly from: number;
  readonly seed?: number;
  readonly json: boolean;
  readonly drain?: number;
  readonly url?: string;
}

const program = newProgram('chaos', 'Kills processes at seeded moments, and looks at what is left.');
for (const [run, next] of runs) {
  const command = program
    .command(run.name)
    .description(`${run.about}: ${run.holds}${next ? `; then ${next.about}` : ''}`)
    .option('--seeds <n>', 'how many seeds', wholeNumber(1), 20)
    .option('--from <n>', 'the first of them', wholeNumber(1), 1)
    .option('--seed <s>', 'this seed alone, to repeat a failure', wholeNumber(1))
    .option('--json', 'one line of JSON on stdout; the rest goes to stderr', false)
    .action(async ({ seeds: count, from, seed, json, drain: queue = 0, url }: Options) => {
      const seeds = seed === undefined ? Array.from({ length: count }, (_, i) => from + i) : [seed];
      const parts = [{ run: url === undefined ? run : storeAt(url), seeds }];
      if (next === drain && queue > 0 && seed === undefined) parts.push({ run: drain, seeds: [queue] });
      else if (next && next !== drain) parts.push({ run: next, seeds });
      await report(parts, json);
    });
  if (run.name === 'store') command.option('--url <address>', 'a server to use; our own endpoint when left out');
  if (next === drain) command.option('--drain <n>', 'how long the queue is; 0 leaves it out', wholeNumber(0), 500);
}
await runProgram(program);

/** The first part gives the whole its name; the others stand beside its figures by theirs. */
async function report(parts: readonly { run: Run; seeds: readonly number[] }[], json: boolean): Promise<never> {
  const summaries: [Run, Summary][] = [];
  for (const { run, seeds } of parts) summaries.push([run, await summaryOf(run, seeds)]);
  const [[first, figures], ...others] = summaries as [[Run, Summary], ...[Run, Summary][]];
  const beside = Object.fromEntries(others.map(([{ name }, summary]) => [name, summary]));
  if (json) stdout.write(`${JSON.stringify({ chaos: first.name, ...figures, ...beside })}\n`);
  else stdout.write(summaries.map(([run, summary]) => textOf(run, summary)).join('\n'));
  exit(summaries.every(([, { failures }]) => failures.length === 0) ? 0 : 1);
}
