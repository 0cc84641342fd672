import { availableParallelism } from 'node:os';
import { argv, exit, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { asAgonError } from '../../services/kernel/index.js';
import { runSeed, type SeedResult } from './append.js';
import { withServer } from './databases.js';
import { Reader } from './torn.js';

const help = `Usage: npm run chaos -- append [--seeds N] [--seed S] [--json]

  append    writers killed at seeded moments, and copies of their logs damaged at seeded places:
            nothing acknowledged may be lost, nothing may be served that was not written,
            and projections killed with their writer (every tenth seed) must equal a rebuild

  --seeds N  how many seeds, from 1 on (20)
  --seed S   this seed alone, to repeat a failure
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
    },
  });
  if (values.help) {
    stdout.write(help);
    exit(0);
  }
  if (positionals.join(' ') !== 'append') refuse(`There is no chaos run "${positionals.join(' ')}".`);
  const count = wholeNumber('--seeds', values.seeds);
  const seeds = values.seed === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(values.seed)];
  if (values.seed !== undefined) wholeNumber('--seed', values.seed);
  const startedMs = performance.now();
  const results = await withServer((serverUrl) => runAll(seeds, serverUrl));
  exit(report(results, (performance.now() - startedMs) / 1000, values.json));
} catch (error) {
  const { code, message } = asAgonError(error);
  if ((error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) refuse(message);
  stderr.write(`${code}: ${message}\n`);
  exit(1);
}

/** As many seeds at a time as there are cores. */
async function runAll(seeds: readonly number[], serverUrl: string): Promise<SeedResult[]> {
  const results: SeedResult[] = [];
  const waiting = [...seeds];
  const lane = async () => {
    const reader = new Reader();
    try {
      for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
        const result = await runSeed(seed, reader, seed % PROJECTED === 0 ? serverUrl : undefined);
        results.push(result);
        for (const failure of result.failures) tellFailure(seed, failure);
        showProgress(results.length, seeds.length);
      }
    } finally {
      reader.stop();
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), seeds.length) }, lane));
  return results.sort((a, b) => a.seed - b.seed);
}

function tellFailure(seed: number, failure: string): void {
  stderr.write(`${stderr.isTTY ? '\r\x1b[K' : ''}Seed ${seed}: ${failure}\n  npm run chaos -- append --seed ${seed}\n`);
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

function wholeNumber(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) refuse(`${flag} is a whole number from 1 on.`);
  return value;
}

function refuse(why: string): never {
  stderr.write(`${why}\n\n${help}`);
  exit(2);
}
