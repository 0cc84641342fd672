import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { env, stderr, stdout } from 'node:process';
import { openEventStoreEndpoint } from '../../gateway/eventstore/endpoint.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { AgonError, randomIds, Secret, systemClock } from '../../services/kernel/index.js';
import { DataFolder, folderLayout } from '../../services/runtime/data-folder.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { logName, openLog } from '../run/log.js';
import { configOf } from './command.js';
import type { MigrationStep } from './migrate.js';
import { type ArenaMigration, type Move, moveArena, movedTo } from './move.js';
import { EXIT, type Flags, type Outcome, print, progress } from './output.js';
import { untilSignal } from './signals.js';

interface ServeFlags extends Flags {
  readonly host?: string;
  readonly port: number;
  readonly cert?: string;
  readonly key?: string;
  readonly insecure?: boolean;
  readonly readOnly: boolean;
}

/** Serves the log of a data folder, and nothing else, to EventStoreDB's clients. */
export async function serveLog({ json = false, readOnly, ...flags }: ServeFlags): Promise<number> {
  const { data, host, port: eventstorePort, cert: eventstoreCert, key: eventstoreKey, insecure } = flags;
  const config = configOf({ data, host, eventstorePort, eventstoreCert, eventstoreKey, eventstoreInsecure: insecure });
  const { done } = untilSignal();
  // Beside a running arena the folder is not ours: then the log is read, and its tokens are those that are there.
  const folder = readOnly ? DataFolder.beside(config.dataDir) : DataFolder.take(config.dataDir);
  try {
    const store = await openLog(config, { readOnly });
    try {
      const endpoint = await openEventStoreEndpoint(
        {
          store,
          clock: systemClock,
          ids: randomIds,
          config,
          paths: folder.paths,
          operatorToken: folder.operatorToken(),
          readerToken: folder.readerToken(),
          readOnly,
          onInternalError: (error) => void stderr.write(`${String(error)}\n`),
        },
        eventstorePort,
      );
      const events = await store.lastPosition();
      const { url, address } = endpoint;
      print({ json }, { address, url, dataDir: config.dataDir, events }, serving(url, config.dataDir, events));
      await done;
      if (!json) stdout.write('stopping\n');
      await endpoint.close();
    } finally {
      await store.close();
    }
  } finally {
    folder.release();
  }
  return EXIT.ok;
}

const serving = (url: string, dataDir: string, events: number) =>
  [
    `The log of ${dataDir} (${events} events) is served to EventStoreDB's clients.`,
    '',
    `  read    ${url}`,
    '          or with an API key instead: agon apikey create staff --scopes log, while the arena runs',
    "  write   the same, with the key of operator.token instead of reader.token's",
    '',
    '  Ctrl-C drains and stops.',
  ].join('\n');

/** Moves the log of a data folder to EventStoreDB, and what lies beside it to the folder that a cluster shares. */
export async function migrateLog(from: string, flags: { to: string; into?: string }): Promise<number | Outcome> {
  const { to, into = to === 'cluster' ? env.AGON_DATA : undefined } = flags;
  const url = to === 'cluster' ? parseConfig({}, env).storeUrl : new Secret(to);
  if (!url || !/^(esdb|kurrentdb)(\+discover)?:\/\//.test(url.reveal())) {
    throw new AgonError(
      'CONFIG.INVALID',
      '--to is an address like esdb://host:2113, or "cluster" for that of AGON_STORE.',
    );
  }
  // Repeating single appends could change their order, and so could asking for a head that was forgotten; a whole
  // migration can be repeated without harm.
  const limits = { attemptsMax: 1, headsMax: Number.POSITIVE_INFINITY };
  const name = logName({ dataDir: from, storeUrl: url });
  const moved = await move({ from, into, target: { name, open: () => EventStoreDbStore.open(url.reveal(), limits) } });
  if (!moved) return EXIT.interrupted;
  const { files, ...log } = moved;
  const json = { verified: true, ...log, to: name, ...(into === undefined ? {} : { into, files }) };
  return { json, text: `${movedText(moved, name)}\n${into ? besideText(files, into) : LAST}` };
}

/** Moves an arena into the folder of a cluster that has not run yet. One that was moved there before is left alone. */
export async function moveIntoCluster(from: string, folder: string): Promise<number> {
  const log = join(folder, 'log');
  if (movedTo(from) === log) return EXIT.ok;
  mkdirSync(log, { recursive: true });
  const target = { name: log, open: () => LmdbEventStore.open(folderLayout(log).log) };
  const moved = await move({ from, target, into: join(folder, 'data') });
  if (!moved) return EXIT.interrupted;
  stderr.write(`${movedText(moved, log)}\n`);
  return EXIT.ok;
}

/** With a bar for each step; undefined when it was interrupted. */
async function move(what: Move): Promise<ArenaMigration | undefined> {
  const { signal } = untilSignal();
  const bars = new Map<MigrationStep, ReturnType<typeof progress>>();
  const onProgress = (step: MigrationStep, at: number, total: number) => {
    const bar = bars.get(step) ?? progress(step);
    bars.set(step, bar);
    bar.at(at, total);
  };
  try {
    const moved = await moveArena(what, { onProgress, signal });
    for (const bar of bars.values()) bar.end();
    return moved;
  } catch (error) {
    if (!signal.aborted) throw error;
    stderr.write('interrupted; the same command goes on where it was.\n');
    return undefined;
  }
}

const movedText = ({ events, resumedAt, logHash }: ArenaMigration, to: string) =>
  [
    `${events} events are in ${to}${resumedAt > 0 ? `, ${resumedAt} of them from an earlier try` : ''}.`,
    `Both logs were read again and are the same; their hash is ${logHash}. The log in the old folder stays, for reading.`,
  ].join('\n');
const LAST = 'Start with AGON_STORE set to that address, and everything else as before.';
const besideText = (files: number, into: string) =>
  `${files} files (agents' code, people, keys) are in ${into}. Start the cluster's processes with it as AGON_DATA.`;
