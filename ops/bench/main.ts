import { exit, stderr, stdout } from 'node:process';
import { newProgram, runProgram, wholeNumber } from '../harness/command-line.js';
import { analytics } from './analytics.js';
import { append } from './append.js';
import { command } from './command.js';
import { eventstore, store } from './eventstore.js';
import { gateway } from './gateway.js';
import { kafka } from './kafka.js';
import { matches } from './matches.js';
import { project } from './project.js';
import { replay } from './replay.js';
import { type BenchOptions, inTurn, missedIn, type Report, tableOf } from './rounds.js';
import { sandbox } from './sandbox.js';
import { settle } from './settle.js';
import { visible } from './visible.js';

const ROUNDS = { usual: 15, least: 5 };

const benches: Readonly<Record<string, readonly [(options: BenchOptions) => Promise<Report>, string]>> = {
  append: [append, 'events appended and acknowledged a second: ours, a raw file, SQLite, emmett on PostgreSQL'],
  command: [command, 'the whole write path against bare appends'],
  replay: [replay, 'folding a million events against parsing them as JSON'],
  project: [project, 'a million events into views against a transaction an event, and against bare unnest'],
  matches: [matches, "connect-four matches of random agents against kaggle-environments' ConnectX"],
  settle: [settle, 'settlements, holds and payouts included, against bare appends and PostgreSQL transactions'],
  sandbox: [sandbox, 'a call into a process sandbox against a bare pipe, and a start against a bare interpreter'],
  gateway: [
    gateway,
    'GraphQL and REST against bare Fastify, the Play stream against a bare gRPC echo, a thousand agents',
  ],
  analytics: [analytics, 'taking events into ClickHouse against the bare engine, and the charts against PostgreSQL'],
  store: [store, 'appends and reads of the EventStoreDB adapter at a server: that of --url, or our own endpoint'],
  // What the engines cost beside their bare clients.
  cluster: [
    inTurn(eventstore, kafka, visible),
    'appends by the EventStoreDB adapter, and a log through Kafka into views, against bare clients',
  ],
};

interface Options extends Pick<BenchOptions, 'rounds' | 'quick' | 'url'> {
  readonly json: boolean;
}

const program = newProgram('bench', 'It exits 1 when a ratio does not reach its target, but for --quick.');
for (const [name, [bench, about]] of Object.entries(benches)) {
  const bencher = program
    .command(name)
    .description(about)
    .option('--json', 'one line of JSON on stdout; progress goes to stderr', false)
    .option('--rounds <n>', 'measured rounds, interleaved; at least 5', wholeNumber(ROUNDS.least), ROUNDS.usual)
    .option('--quick', 'a fraction of the events: shows that it runs, not how fast', false)
    .action(async ({ json, rounds, quick, url }: Options) => {
      const report = await bench({ rounds, quick, url, progress: (line) => stderr.write(`${line}\n`) });
      const { results, ratios, targets, times, notes } = report;
      const missed = missedIn(report);
      const line = JSON.stringify({ bench: name, results, ratios, targets, missed, times, notes });
      // Clients of engines that are gone may try for a long time to come back; nobody waits for them.
      stdout.write(json ? `${line}\n` : `\n${tableOf(name, report)}\n`, () =>
        exit(missed.length > 0 && !quick ? 1 : 0),
      );
    });
  if (name === 'store') bencher.option('--url <address>', 'esdb://... or kurrentdb://...');
}
await runProgram(program);
