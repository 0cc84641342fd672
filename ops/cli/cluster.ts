import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { execPath, kill, stderr } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError } from '../../services/kernel/index.js';
import { isAlive } from '../../services/runtime/data-folder.js';
import { compiled } from '../../services/runtime/package.js';
import { whyNoChdb } from '../engines/chdb.js';
import type { ClusterNote, ClusterOptions } from '../engines/cluster.js';
import { processNames } from '../run/names.js';
import { type AgonCommand, configOf, count, lazy } from './command.js';
import { colour, EXIT, type Flags, type Outcome, print, table } from './output.js';

/** Kafka's client and the rest take a while to load; only these commands wait for them. */
const engines = () => import('../engines/cluster.js');
const eventstoreDb = () => import('./eventstore.js');

/** Commands about the engines that an arena can stand on, besides its own. */
export function addClusterCommands(program: AgonCommand): void {
  program
    .add('run', `Run processes of a cluster, one or several in one, until Ctrl-C: ${processNames.join(', ')}.`)
    .argument('<process...>', 'which')
    .option('--health-port <port>', 'where it says how it is (default: AGON_HEALTH_PORT, or a free port)')
    .option('--views <list>', 'projections: which views to keep (default: AGON_VIEWS, or all)')
    .addHelpText(
      'after',
      '\nSettings come from the environment; see docs/cluster.md.\nExample:\n  agon run wallet payments',
    )
    .runs(runHere);
  const cluster = program.group('cluster', 'Run a whole cluster on this machine.');
  const inFolder = (name: string, summary: string) =>
    cluster(name, summary).option('--folder <folder>', 'what holds all of it', '.agon-cluster');
  inFolder(
    'up',
    "Start Kafka, PostgreSQL, Redis, ClickHouse's engine, a chain (anvil), the log and Agon's processes, in the background.",
  )
    .option('--port <port>', 'of the gateway; 0 takes a free one', count(0, 65_535), 4600)
    .option('--play-port <port>', 'of the endpoint for agents from outside; 0 takes a free one', count(0, 65_535), 4602)
    .option('--brokers <n>', 'of Kafka: 1 or 3', count(1, 3), 1)
    .option('--cells <n>', 'matches that the runner plays at a time', count(1, 256), 2)
    .option('--store-url <address>', 'an EventStoreDB to keep the log in (default: the log in the folder)')
    .option('--from <folder>', 'the data folder of an embedded arena to go on with; moved once, before the first start')
    .option('--no-analytics', 'leave ClickHouse out')
    .option('--no-chain', 'leave anvil out')
    .example('agon cluster up && agon cluster status && agon cluster down')
    .runs(up);
  inFolder('status', 'Say how every process is. Exits 1 if one is not ready.').runs(status);
  inFolder('down', 'End the cluster and remove its folder, with all that is in it.')
    .option('--keep-data', 'leave the log and what follows from it, for the next "up"', false)
    .runs(down);
  addLogCommands(program);
}

function addLogCommands(program: AgonCommand): void {
  const eventstore = program.group('eventstore', "Speak EventStoreDB's protocol.");
  const serving = "Serve the log of a data folder, and nothing else, to EventStoreDB's clients until Ctrl-C.";
  eventstore('serve', serving)
    .option('--port <port>', 'the port; 0 takes a free one', count(0, 65_535), 2113)
    .option('--host <host>', 'the address to listen on (default: 127.0.0.1)')
    .option('--cert <file>', 'the certificate, in PEM (default: one of its own making)')
    .option('--key <file>', "the certificate's key, in PEM")
    .option('--insecure', 'no TLS, on this machine alone: whoever reaches it may read')
    .option('--read-only', 'take no appends; works beside a running arena', false)
    .example('agon eventstore serve --data .agon --port 2113')
    .runs(lazy(eventstoreDb, 'serveLog'));
  const migrating =
    "Copy the log of a data folder into EventStoreDB, and what lies beside it into a cluster's folder; verify both.";
  program
    .add('migrate', migrating)
    .requiredOption('--to <address>', 'esdb://..., or "cluster" for the one that AGON_STORE names')
    .option(
      '--into <folder>',
      'the folder that gateways, arena and play share (with "cluster": AGON_DATA, if it is another)',
    )
    .example('agon migrate --data .agon --to "esdb://admin:changeit@db:2113?tlsCAFile=ca.crt"')
    .does(lazy(eventstoreDb, 'migrateLog'));
}

const START_MS = 360_000;
const STOP_MS = 60_000;
const BEAT_MS = 200;

interface ClusterFlags extends Flags {
  readonly folder: string;
}

type ClusterOption = 'port' | 'playPort' | 'cells' | 'storeUrl' | 'analytics' | 'chain';

interface UpFlags extends ClusterFlags, Pick<ClusterOptions, ClusterOption> {
  readonly brokers: number;
  readonly from?: string;
}

/** Runs processes of a cluster in this one until a signal comes. */
async function runHere(names: readonly string[], { json = false, ...flags }: Flags): Promise<number> {
  const { runProcesses } = await import('../run/main.js');
  await runProcesses(names, configOf(flags), ({ health, addresses }) => {
    const text = health
      ? `${names.join(', ')}: how it is, at ${health}/readyz`
      : [`${names.join(', ')} runs.`, ...Object.values(addresses ?? {})].join('  ');
    print({ json }, { processes: names, health, addresses }, text);
  });
  return EXIT.ok;
}

/** Brings a cluster up in the background. One that runs already is left alone. */
async function up(flags: UpFlags): Promise<number | Outcome> {
  const { installChain, installEngines, readNote } = await engines();
  const folder = resolve(flags.folder);
  const say = (text: string) => void (flags.json || stderr.write(`${text}\n`));
  const before = readNote(folder);
  if (!before || before.state === 'failed' || !isAlive(before)) {
    installEngines(say);
    assertOurs(folder);
    if (flags.from !== undefined) {
      const code = await (await eventstoreDb()).moveIntoCluster(resolve(flags.from), folder);
      if (code !== EXIT.ok) return code;
    }
    launch(folder, { ...flags, chain: flags.chain === true && installChain(say) });
  }
  const note = await untilUp(folder, say, readNote);
  const { url = '', play = '', engines: running = [], processes = [] } = note;
  const envFile = join(folder, 'cluster.env');
  const json = { url, play, folder, env: envFile, engines: running, processes };
  return { json, text: upText(note, folder, envFile) };
}

function assertOurs(folder: string): void {
  mkdirSync(folder, { recursive: true });
  // A folder of something else is not ours to fill, nor to remove later.
  const strange = readdirSync(folder).find((name) => !OURS.includes(name));
  if (strange !== undefined) {
    throw new AgonError(
      'CLUSTER.FOLDER',
      `${folder} holds ${strange}, which is no cluster's. Choose another --folder.`,
    );
  }
}

function launch(folder: string, flags: UpFlags): void {
  const { json: _json, from: _from, ...given } = flags;
  const analytics = flags.analytics === true && whyNoChdb() === undefined;
  const options: ClusterOptions = { ...given, folder, analytics, standby: true, brokers: flags.brokers === 3 ? 3 : 1 };
  rmSync(join(folder, 'cluster.json'), { force: true });
  const log = openSync(join(folder, 'cluster.log'), 'a');
  const main = compiled(import.meta.url, '../engines/cluster-main.js');
  const child = spawn(execPath, [main, JSON.stringify(options)], { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  child.unref();
}

const OURS = [
  'cluster.json',
  'cluster.json.new',
  'cluster.env',
  'cluster.log',
  'logs',
  'log',
  'data',
  'runner',
  'kafka',
  'postgres',
  'redis',
  'clickhouse',
  'chain',
];

async function untilUp(
  folder: string,
  say: (text: string) => void,
  readNote: (folder: string) => ClusterNote | undefined,
): Promise<ClusterNote> {
  let told = '';
  for (let waitedMs = 0; waitedMs < START_MS; waitedMs += BEAT_MS) {
    const note = readNote(folder);
    if (note?.state === 'ready') return note;
    if (note?.state === 'failed') throw new AgonError('CLUSTER.FAILED', note.step);
    if (note && !isAlive(note)) break;
    if (note && note.step !== told) say(colour.dim(note.step));
    told = note?.step ?? told;
    await sleep(BEAT_MS);
  }
  throw new AgonError('CLUSTER.FAILED', `The cluster did not come up; see ${join(folder, 'cluster.log')} and logs/.`);
}

const upText = ({ url, play, engines: running = [], processes = [] }: ClusterNote, folder: string, envFile: string) =>
  [
    `${colour.bold('The cluster')} runs: ${processes.length} processes of Agon.`,
    '',
    `  GraphQL     ${colour.cyan(`${url}/graphql`)}   (token: ${join(folder, 'data', 'operator.token')})`,
    `  Agents      ${colour.cyan(`${play}`)}   (agon agent play ... --arena ${play})`,
    ...running.map(({ name, address }) => `  ${name.padEnd(11)} ${address}`),
    '',
    `  . ${envFile}   sets what other commands need to speak to it, such as agon log verify`,
    `  agon cluster status, agon cluster down`,
  ].join('\n');

async function status(flags: ClusterFlags): Promise<Outcome> {
  const { readNote, statusOf } = await engines();
  const note = readNote(resolve(flags.folder));
  if (!note || !isAlive(note)) {
    return { json: { running: false }, text: `No cluster runs in ${resolve(flags.folder)}.`, good: false };
  }
  const { processes = [], url, engines: running, state, step } = note;
  const found = await Promise.all(processes.map(statusOf));
  const ready = state === 'ready' && found.every((each) => each.ready);
  const rows = found.map(({ process, ready: good, parts }) => {
    const told = parts.filter((part) => !part.ready || /behind|stands by|in hand/.test(part.detail));
    const detail = told.map(({ part, detail: text }) => `${part}: ${text}`).join('; ');
    return [process, good ? colour.green('ready') : colour.red('not ready'), detail];
  });
  const text = state === 'ready' ? table(['process', '', ''], rows) : step;
  return { json: { running: true, ready, state, url, engines: running, processes: found }, text, good: ready };
}

/** Ends the cluster and removes its folder, or all but what it knows. */
async function down(flags: ClusterFlags & { keepData: boolean }): Promise<Outcome> {
  const { readNote } = await engines();
  const folder = resolve(flags.folder);
  const note = readNote(folder);
  const ran = note !== undefined && isAlive(note);
  if (note && ran) {
    kill(note.pid, 'SIGTERM');
    for (let waitedMs = 0; isAlive(note); waitedMs += BEAT_MS) {
      if (waitedMs >= STOP_MS) throw new AgonError('CLUSTER.STUCK', `Process ${note.pid} does not end.`);
      await sleep(BEAT_MS);
    }
  }
  const kept = flags.keepData ? ['log', 'data', 'runner', 'postgres', 'clickhouse', 'chain'] : [];
  for (const name of existsSync(folder) && note ? OURS : []) {
    if (!kept.includes(name)) rmSync(join(folder, name), { recursive: true, force: true, maxRetries: 5 });
  }
  if (existsSync(folder) && readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
  return { json: { stopped: ran, kept }, text: ran ? 'The cluster has ended.' : `No cluster runs in ${folder}.` };
}
