import { argv, env, exit, kill, pid, stderr, stdin } from 'node:process';
import { pathToFileURL } from 'node:url';
import { AgonError, asAgonError, isAgonError } from '../../services/kernel/index.js';
import { Frame } from '../../services/runtime/host.js';
import { type Config, parseConfig } from '../../services/runtime/settings.js';
import { untilSignal } from '../cli/signals.js';
import { Engines } from './engines.js';
import { processNames } from './names.js';

/** Where a process can be reached, besides its port for health. */
export interface Doors {
  readonly url?: string;
  readonly grpc?: string;
  readonly play?: string;
  readonly eventstore?: string;
}

type Start = (frame: Frame, engines: Engines) => Promise<Doors>;

/** Every process of a cluster. Each is loaded by those who run it, and by nobody else. */
const processes: Readonly<Record<string, () => Promise<Start>>> = {
  eventstore: async () => (await import('./around.js')).eventstore,
  relay: async () => (await import('./around.js')).relay,
  gateway: async () => (await import('./gateway.js')).gateway,
  arena: async () => (await import('./services.js')).arena,
  play: async () => (await import('./play.js')).play,
  wallet: async () => (await import('./services.js')).wallet,
  payments: async () => (await import('./services.js')).payments,
  projections: async () => (await import('./projections.js')).projections,
  analytics: async () => (await import('./around.js')).analytics,
  runner: async () => (await import('./around.js')).runner,
};

export { processNames };

/** Says what the process does, a line each. */
export type Tell = (line: { readonly health?: string; readonly ready?: boolean; readonly doors?: Doors }) => void;

/**
 * Runs processes of a cluster, one or several in this one, until a signal comes; then they drain.
 *
 * @example await runProcesses(['wallet'], parseConfig({}, process.env), () => {})
 */
export async function runProcesses(names: readonly string[], config: Config, tell: Tell): Promise<void> {
  const unknown = names.find((name) => !Object.hasOwn(processes, name));
  if (unknown !== undefined || names.length === 0) {
    const what = unknown === undefined ? 'No process was named' : `There is no process ${unknown}`;
    throw new AgonError('CONFIG.INVALID', `${what}. Processes: ${processNames.join(', ')}.`);
  }
  const { done: signalled } = untilSignal();
  const frame = new Frame(config, names);
  try {
    tell({ health: await frame.open() });
    const engines = new Engines(frame);
    const starting = Promise.all(
      names.map(async (name) => {
        frame.part(`process ${name}`, async () => {
          throw new Error('starting');
        });
        const start = await processes[name]?.();
        const doors = await start?.(frame, engines);
        frame.part(`process ${name}`, async () => 'runs');
        return doors;
      }),
    );
    const began = starting.then((doors) => tell({ ready: true, doors: Object.assign({}, ...doors) }));
    // A signal while something is waited for ends the waiting; that is no failure.
    began.catch(() => {});
    await Promise.race([signalled, frame.failed, began.then(() => new Promise<never>(() => {}))]);
  } finally {
    await frame.stop();
  }
}

/**
 * As an entry point of its own: `node dist/ops/run/main.js wallet`. With
 * --with-stdin it ends, as by SIGTERM, when its standard input does: so that it does not outlive whoever started it.
 */
export async function main(own: readonly string[]): Promise<void> {
  const given = argv.slice(2);
  const names = [...own, ...given.filter((name) => name !== '--with-stdin')];
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

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) await main([]);
