import { argv, env, exit, kill, pid, stderr, stdin } from 'node:process';
import { pathToFileURL } from 'node:url';
import { AgonError, asAgonError, isAgonError } from '../../services/kernel/index.js';
import type { Engines } from '../../services/runtime/engines.js';
import { Host } from '../../services/runtime/host.js';
import type { Part } from '../../services/runtime/part.js';
import { type Config, parseConfig } from '../../services/runtime/settings.js';
import { untilSignal } from '../cli/signals.js';
import { ClusterEngines } from './cluster.js';
import { EmbeddedEngines } from './embedded.js';
import { processNames } from './names.js';
import { type Process, processes } from './parts.js';

/** Says what the process does, a line each. */
export type Tell = (line: {
  readonly health?: string;
  readonly ready?: boolean;
  readonly addresses?: Host['addresses'];
}) => void;

/**
 * Runs processes of a cluster, one or several in this one, until a signal comes; then they drain.
 *
 * @example await runProcesses(['wallet'], parseConfig({}, process.env), () => {})
 */
export async function runProcesses(names: readonly string[], given: Config, tell: Tell): Promise<void> {
  const { parts, ownFolder, ...where } = chosen(names);
  const config = { ...given, ...without(where, given), ...(ownFolder ? { storeUrl: undefined } : {}) };
  const { done: signalled } = untilSignal();
  const engines = (own: Host) => (ownFolder ? new EmbeddedEngines(own) : new ClusterEngines(own));
  const host = new Host<Engines>({ config, names, engines, waits: true });
  try {
    tell({ health: await host.open() });
    const began = host.start(parts).then(() => tell({ ready: true, addresses: host.addresses }));
    // A signal while something is waited for ends the waiting; that is no failure.
    began.catch(() => {});
    await Promise.race([signalled, host.failed, began.then(() => new Promise<never>(() => {}))]);
  } finally {
    await host.stop();
  }
}

/** What these processes are together: each part once, and of two of a name the first. */
function chosen(names: readonly string[]): Process {
  const known: Readonly<Record<string, Process>> = processes;
  const found = names.map((name) => {
    const process = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!process) throw unknown(`There is no process ${name}`);
    if (process.ownFolder && names.length > 1) throw unknown(`${name} has a folder of its own, and runs by itself`);
    return process;
  });
  if (found.length === 0) throw unknown('No process was named');
  const parts = new Map<string, Part>();
  for (const part of found.flatMap((process) => process.parts)) if (!parts.has(part.name)) parts.set(part.name, part);
  return Object.assign({}, ...found, { parts: [...parts.values()] }) as Process;
}

/** Where a process listens unless it was told. */
const without = (where: Partial<Config>, given: Config): Partial<Config> =>
  Object.fromEntries(Object.entries(where).filter(([name]) => given[name as keyof Config] === undefined));

const unknown = (what: string) => new AgonError('CONFIG.INVALID', `${what}. Processes: ${processNames.join(', ')}.`);

/**
 * As an entry point of its own: `node dist/ops/run/main.js wallet`. With
 * --with-stdin it ends, as by SIGTERM, when its standard input does: so that it does not outlive whoever started it.
 */
async function main(): Promise<void> {
  const given = argv.slice(2);
  const names = given.filter((name) => name !== '--with-stdin');
  if (given.includes('--with-stdin')) stdin.on('close', () => kill(pid, 'SIGTERM')).resume();
  try {
    await runProcesses(names, parseConfig({}, env), (line) => void stderr.write(`${JSON.stringify(line)}\n`));
    exit(0);
  } catch (error) {
    const { code, message } = asAgonError(error);
    stderr.write(`${code}: ${message}\n`);
    exit(isAgonError(error, 'CONFIG.INVALID') || isAgonError(error, 'CONFIG.UNKNOWN') ? 2 : 1);
  }
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) await main();
