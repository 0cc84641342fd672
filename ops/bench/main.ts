import { argv, exit, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { asAgonError } from '../../services/kernel/index.js';
import { analytics } from './analytics.js';
import { append } from './append.js';
import { cluster } from './cluster.js';
import { command } from './command.js';
import { gateway } from './gateway.js';
import { matches } from './matches.js';
import { project } from './project.js';
import { replay } from './replay.js';
import { type BenchOptions, missedIn, type Report, tableOf } from './rounds.js';
import { sandbox } from './sandbox.js';
import { settle } from './settle.js';

const benches: Readonly<Record<string, (options: BenchOptions) => Promise<Report>>> = {
  append,
  command,
  replay,
  project,
  matches,
  sandbox,
  settle,
  analytics,
  cluster,
  gateway,
};

const help = `Usage: npm run bench -- <name> [--json] [--rounds N] [--quick]

  append    events appended and acknowledged a second: ours, a raw file, SQLite, emmett on PostgreSQL
  command   the whole write path against bare appends
  replay    folding a million events against parsing them as JSON
  project   a million events into balances and leaderboards against a transaction an event, and against bare unnest
  matches   connect-four matches of random agents against kaggle-environments' ConnectX
  settle    settlements, holds and payouts included, against bare appends and against PostgreSQL transactions
  sandbox   a call into a process sandbox against a bare pipe, and starting one against a bare interpreter
  gateway   GraphQL and REST against bare Fastify, moves over the Play stream against a bare gRPC echo, a thousand agents
  analytics taking events into ClickHouse against the bare engine, and the charts against PostgreSQL
  cluster   appends by the EventStoreDB adapter, and a log through Kafka into views, against the bare clients

  --json      one line of JSON on stdout; progress goes to stderr
  --rounds N  measured rounds, interleaved; at least 5 (15)
  --quick     a fraction of the events: shows that it runs, not how fast

It exits 1 when a ratio does not reach its target, but for --quick.
`;

const ROUNDS = 15;
const ROUNDS_MIN = 5;

try {
  const { positionals, values } = parseArgs({
    args: argv.slice(2),
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      json: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string', default: `${ROUNDS}` },
    },
  });
  if (values.help) {
    stdout.write(help);
    exit(0);
  }
  const [name = '', ...rest] = positionals;
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
  const rounds = Number(values.rounds);
  if (!bench || rest.length > 0) refuse(`There is no benchmark "${positionals.join(' ')}".`);
  if (!Number.isInteger(rounds) || rounds < ROUNDS_MIN) refuse(`--rounds is a whole number from ${ROUNDS_MIN} on.`);
  const progress = (line: string) => stderr.write(`${line}\n`);
  const report = await bench({ rounds, quick: values.quick, progress });
  const { results, ratios, targets, times, notes } = report;
  const missed = missedIn(report);
  const json = JSON.stringify({ bench: name, results, ratios, targets, missed, times, notes });
  // Clients of engines that are gone may try for a long time to come back; nobody waits for them.
  stdout.write(values.json ? `${json}\n` : `\n${tableOf(name, report)}\n`, () =>
    exit(missed.length > 0 && !values.quick ? 1 : 0),
  );
} catch (error) {
  const { code, message } = asAgonError(error);
  if ((error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) refuse(message);
  stderr.write(`${code}: ${message}\n`);
  exit(1);
}

function refuse(why: string): never {
  stderr.write(`${why}\n\n${help}`);
  exit(2);
}
