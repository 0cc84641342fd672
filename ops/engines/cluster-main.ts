import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, exit, pid } from 'node:process';
import { asAgonError } from '../../services/kernel/index.js';
import { startOf } from '../../services/runtime/data-folder.js';
import { untilSignal } from '../cli/signals.js';
import { type ClusterOptions, startCluster, writeNote } from './cluster.js';

/** Keeps a cluster running in the background for `agon cluster`, until it is told to end. Its argument: the options. */
const options = JSON.parse(argv[2] ?? '{}') as ClusterOptions;
const { folder } = options;
const { done, signal } = untilSignal();
const self = { pid, started: startOf(pid) };
const onStep = (step: string) => writeNote(folder, { ...self, state: 'starting', step });
onStep('starting');
try {
  const cluster = await startCluster({ ...options, onStep, signal });
  const { url, play, engines, processes, settings } = cluster;
  const lines = Object.entries(settings).map(([name, value]) => `export ${name}='${value}'\n`);
  writeFileSync(join(folder, 'cluster.env'), lines.join(''), { mode: 0o600 });
  const known = processes.map(({ name, health, pid: of }) => ({ name, health, pid: of }));
  writeNote(folder, { ...self, state: 'ready', step: 'ready', url, play, engines, processes: known });
  await done;
  await cluster.stop();
} catch (error) {
  const { code, message } = asAgonError(error);
  if (!signal.aborted) writeNote(folder, { ...self, state: 'failed', step: `${code}: ${message}` });
  exit(1);
}
exit(0);
