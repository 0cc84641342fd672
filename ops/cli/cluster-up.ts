import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { execPath, kill, stderr } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgonError } from '../../services/kernel/index.js';
import { isAlive } from '../../services/runtime/data-folder.js';
import { compiled } from '../../services/runtime/package.js';
import type { Config } from '../../services/runtime/settings.js';
import {
  type ClusterNote,
  type ClusterOptions,
  installChain,
  installEngines,
  readNote,
  statusOf,
} from '../engines/cluster.js';
import { runProcesses } from '../run/main.js';
import { colour, EXIT, type OutputOptions, print, table } from './output.js';

const START_MS = 360_000;
const STOP_MS = 60_000;
const BEAT_MS = 200;

export interface ClusterFlags extends OutputOptions {
  readonly folder: string;
}

export interface UpFlags extends ClusterFlags {
  readonly port: number;
  readonly playPort: number;
  readonly brokers: number;
  readonly cells: number;
  readonly storeUrl?: string;
  readonly analytics: boolean;
  readonly chain: boolean;
  readonly from?: string;
}

/** Runs processes of a cluster in this one until a signal comes. */
export async function run(names: readonly string[], config: Config, options: OutputOptions): Promise<number> {
  await runProcesses(names, config, ({ health, doors }) => {
    if (options.json) return print(options, { processes: names, health, doors }, '');
    if (health) print(options, {}, `${names.join(', ')}: how it is, at ${health}/readyz`);
    else print(options, {}, [`${names.join(', ')} runs.`, ...Object.values(doors ?? {})].join('  '));
  });
  return EXIT.ok;
}

/** Brings a cluster up in the background. One that runs already is left alone. */
export async function up(flags: UpFlags): Promise<number> {
  const folder = resolve(flags.folder);
  const say = (text: string) => void (flags.json || stderr.write(`${text}\n`));
  const before = readNote(folder);
  if (!before || before.state === 'failed' || !isAlive(before)) {
    installEngines(say);
    assertOurs(folder);
    if (flags.from !== undefined) {
      const code = await (await import('./eventstore.js')).moveIntoCluster(resolve(flags.from), folder);
      if (code !== EXIT.ok) return code;
    }
    launch(folder, { ...flags, chain: flags.chain && installChain(say) });
  }
  const note = await untilUp(folder, say);
  const { url = '', play = '', engines = [], processes = [] } = note;
  const envFile = join(folder, 'cluster.env');
  const json = { url, play, folder, env: envFile, engines, processes };
  print(flags, json, upText(note, folder, envFile));
  return EXIT.ok;
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
  const { port, playPort, brokers, cells, storeUrl, chain } = flags;
  const analytics = flags.analytics && hasChdb();
  const options: ClusterOptions = {
    folder,
    port,
    playPort,
    cells,
    analytics,
    chain,
    standby: true,
    brokers: brokers === 3 ? 3 : 1,
    ...(storeUrl === undefined ? {} : { storeUrl }),
  };
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

function hasChdb(): boolean {
  try {
    createRequire(import.meta.url).resolve('chdb');
    return true;
  } catch {
    return false;
  }
}

async function untilUp(folder: string, say: (text: string) => void): Promise<ClusterNote> {
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

const upText = ({ url, play, engines = [], processes = [] }: ClusterNote, folder: string, envFile: string) =>
  [
    `${colour.bold('The cluster')} runs: ${processes.length} processes of Agon.`,
    '',
    `  GraphQL     ${colour.cyan(`${url}/graphql`)}   (token: ${join(folder, 'data', 'operator.token')})`,
    `  Agents      ${colour.cyan(`${play}`)}   (agon agent play ... --arena ${play})`,
    ...engines.map(({ name, address }) => `  ${name.padEnd(11)} ${address}`),
    '',
    `  . ${envFile}   sets what other commands need to speak to it, such as agon log verify`,
    `  agon cluster status, agon cluster down`,
  ].join('\n');

export async function status(flags: ClusterFlags): Promise<number> {
  const note = readNote(resolve(flags.folder));
  if (!note || !isAlive(note)) {
    print(flags, { running: false }, `No cluster runs in ${resolve(flags.folder)}.`);
    return EXIT.failed;
  }
  const { processes = [], url, engines, state, step } = note;
  const found = await Promise.all(processes.map(statusOf));
  const ready = state === 'ready' && found.every((each) => each.ready);
  const rows = found.map(({ process, ready: good, parts }) => {
    const told = parts.filter((part) => !part.ready || /behind|stands by|in hand/.test(part.detail));
    const detail = told.map(({ part, detail: text }) => `${part}: ${text}`).join('; ');
    return [process, good ? colour.green('ready') : colour.red('not ready'), detail];
  });
  const text = state === 'ready' ? table(['process', '', ''], rows, ['left', 'left', 'left']) : step;
  print(flags, { running: true, ready, state, url, engines, processes: found }, text);
  return ready ? EXIT.ok : EXIT.failed;
}

/** Ends the cluster and removes its folder, or all but what it knows. */
export async function down(flags: ClusterFlags & { keepData: boolean }): Promise<number> {
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
  print(flags, { stopped: ran, kept }, ran ? 'The cluster has ended.' : `No cluster runs in ${folder}.`);
  return EXIT.ok;
}
