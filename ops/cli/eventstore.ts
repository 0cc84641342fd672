import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { stderr, stdout } from 'node:process';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { probe } from '../../services/adapters/store/probe.js';
import { AgonError, type Config, randomIds, Secret, systemClock } from '../../services/kernel/index.js';
import { DataFolder, folderLayout } from '../embedded/data-folder.js';
import { openEventStoreDoor } from '../embedded/eventstore.js';
import { logName, openLog } from '../embedded/log.js';
import { type MigrationStep, migrate } from '../embedded/migrate.js';
import { EXIT, type OutputOptions, print, progress } from './output.js';
import { untilSignal } from './signals.js';

const DEFAULT_PORT = 2113;

/** Serves the log of a data folder, and nothing else, to EventStoreDB's clients. */
export async function serveLog(config: Config, options: OutputOptions & { readOnly: boolean }): Promise<number> {
  const { done } = untilSignal();
  // Beside a running arena the folder is not ours: then the log is read, and its tokens are those that are there.
  const folder = options.readOnly ? DataFolder.beside(config.dataDir) : DataFolder.take(config.dataDir);
  try {
    const store = await openLog(config, options);
    try {
      const tokens = { operatorToken: folder.operatorToken(), readerToken: folder.readerToken() };
      const onInternalError = (error: unknown) => void stderr.write(`${String(error)}\n`);
      const door = await openEventStoreDoor(
        {
          store,
          clock: systemClock,
          ids: randomIds,
          config,
          paths: folder.paths,
          ...tokens,
          ...options,
          onInternalError,
        },
        config.eventstorePort ?? DEFAULT_PORT,
      );
      const events = await store.lastPosition();
      const { url, address } = door;
      print(options, { address, url, dataDir: config.dataDir, events }, serving(url, config.dataDir, events));
      await done;
      if (!options.json) stdout.write('stopping\n');
      await door.close();
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
    "  write   the same, with the key of operator.token instead of reader.token's",
    '',
    '  Ctrl-C drains and stops.',
  ].join('\n');

/** Moves the log of a data folder to EventStoreDB. */
export async function migrateLog(config: Config, to: string, options: OutputOptions): Promise<number> {
  const { signal } = untilSignal();
  const url = to === 'cluster' ? config.storeUrl : new Secret(to);
  if (!url || !/^esdb(\+discover)?:\/\//.test(url.reveal())) {
    throw new AgonError(
      'CONFIG.INVALID',
      '--to is an address like esdb://host:2113, or "cluster" for that of AGON_STORE.',
    );
  }
  if (!existsSync(join(folderLayout(config.dataDir).log, 'events.mdb'))) {
    throw new AgonError('DATA.EMPTY', `There is no log in ${config.dataDir} to move. Name its folder with --data.`);
  }
  const name = logName({ dataDir: config.dataDir, storeUrl: url });
  const folder = DataFolder.take(config.dataDir);
  const bars = new Map<MigrationStep, ReturnType<typeof progress>>();
  const barOf = (step: MigrationStep) => {
    const bar = bars.get(step) ?? progress(step);
    bars.set(step, bar);
    return bar;
  };
  try {
    // A file that a reader cannot survive is found by another process.
    await probe(folder.paths.log);
    const source = await LmdbEventStore.open(folder.paths.log, { readOnly: true });
    try {
      // Repeating single appends could change their order, and so could asking for a head that was forgotten; a whole
      // migration can be repeated without harm.
      const limits = { attemptsMax: 1, headsMax: Number.POSITIVE_INFINITY };
      const target = await EventStoreDbStore.open(url.reveal(), limits);
      try {
        const onProgress = (step: MigrationStep, done: number, total: number) => barOf(step).at(done, total);
        const { events, resumedAt, logHash, lastPosition } = await migrate(source, target, { onProgress, signal });
        for (const bar of bars.values()) bar.end();
        folder.hasMoved({ to: name, events, logHash });
        const result = { verified: true, events, resumedAt, logHash, lastPosition, to: name };
        print(options, result, movedText(events, resumedAt, logHash, name));
        return EXIT.ok;
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    stderr.write('interrupted; the same command goes on where it was.\n');
    return EXIT.interrupted;
  } finally {
    folder.release();
  }
}

const movedText = (events: number, resumedAt: number, logHash: string, to: string) =>
  [
    `${events} events are in ${to}${resumedAt > 0 ? `, ${resumedAt} of them from an earlier try` : ''}.`,
    `Both logs were read again and are the same; their hash is ${logHash}.`,
    `Start with AGON_STORE set to that address, and everything else as before. The log in the folder stays, for reading.`,
  ].join('\n');
