import { env, stderr } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ProjectionStatus, paced, statusFrom, viewNamed } from '../../projections/engine/projections.js';
import { rebuild } from '../../projections/engine/rebuild.js';
import type { BuildProgress, BuildStatus, BuriedEvent, RebuildingSink } from '../../projections/engine/sink.js';
import { upcast, views } from '../../projections/views.js';
import { AgonError, type EventStore, isAgonError } from '../../services/kernel/index.js';
import { DataFolder, folderLayout, holderOf } from '../../services/runtime/data-folder.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { startPostgres } from '../engines/postgres.js';
import { logName, openLog } from '../run/log.js';
import { isLogIn } from './offline.js';
import { colour, EXIT, type Outcome, progress, table } from './output.js';
import { ask } from './remote.js';
import { untilSignal } from './signals.js';

const POLL_MS = 200;

/** What the commands need: from a running arena, from a database that was named, or from a folder that nobody runs on. */
interface ProjectionsService {
  list(): Promise<readonly ProjectionStatus[]>;
  deadLetters(view?: string): Promise<readonly BuriedEvent[]>;
  /** False when it was interrupted. */
  rebuild(view: string, signal: AbortSignal, onProgress: (status: BuildStatus) => void): Promise<boolean>;
}

export const listProjections = (dataDir: string): Promise<Outcome> =>
  withService(dataDir, async (service) => {
    const all = await service.list();
    const rows = all.map(({ view, version, servingVersion, position, lagEvents, deadLetters, build }) => [
      view,
      servingVersion === null ? '-' : `${servingVersion}${servingVersion === version ? '' : ` (of ${version})`}`,
      position,
      lagEvents,
      deadLetters > 0 ? colour.red(`${deadLetters}`) : '0',
      build ? `${build.phase} ${build.position}/${build.total}` : '',
    ]);
    const head = ['view', 'version', '>position', '>behind', '>dead letters', 'build'];
    return { json: all, text: table(head, rows) };
  });

export const showDeadLetters = (dataDir: string, view: string | undefined): Promise<Outcome> =>
  withService(dataDir, async (service) => {
    const letters = await service.deadLetters(view);
    const rows = letters.map(({ group, position, type, version, code, message }) => {
      return [group.replace('projection.', ''), `${position}`, `${type} v${version}`, code, message];
    });
    const text = table(['view', '>position', 'event', 'error', ''], rows);
    return { json: letters, text: letters.length === 0 ? 'No dead letters.' : text };
  });

export const rebuildProjection = (dataDir: string, view: string): Promise<number | Outcome> =>
  withService(dataDir, async (service) => {
    viewNamed(views, view);
    if (!(await rebuildWatched(service, view))) return interrupted(dataDir, view);
    const status = (await service.list()).find((each) => each.view === view);
    const letters = status?.deadLetters ?? 0;
    const without = letters > 0 ? `, without ${letters} dead letters` : '';
    const text = `${colour.green('rebuilt')}: ${view} serves what follows from the log up to position ${status?.position}${without}.`;
    return { json: { ...status, rebuilt: true }, text };
  });

/**
 * A view may depend on the order of events, so a dead letter is not applied late but at its place: the view is built
 * anew, and what can be taken in by now is.
 */
export const replayProjection = (dataDir: string, view: string): Promise<number | Outcome> =>
  withService(dataDir, async (service) => {
    viewNamed(views, view);
    const before = await service.deadLetters(view);
    if (before.length > 0 && !(await rebuildWatched(service, view))) return interrupted(dataDir, view);
    const left = before.length > 0 ? await service.deadLetters(view) : [];
    const healed = before.length - left.length;
    const text = before.length === 0 ? `${view} has no dead letters.` : `${healed} of ${before.length} taken in.`;
    const still = left.map(({ position, code, message }) => `  ${position}  ${code}: ${message}`);
    const json = { view, replayed: before.length, healed, left };
    return { json, text: [text, ...still].join('\n'), good: left.length === 0 };
  });

async function rebuildWatched(service: ProjectionsService, view: string): Promise<boolean> {
  const { signal } = untilSignal();
  const bar = progress(view);
  let told: string | null = null;
  const done = await service.rebuild(view, signal, ({ position, total, eventsPerSecond, secondsLeft, trouble }) => {
    const pace = `${eventsPerSecond.toLocaleString('en-US')} events/s, ${secondsLeft} s left`;
    bar.at(position, total, eventsPerSecond > 0 ? pace : 'starting');
    if (trouble !== null && trouble !== told) stderr.write(`\n${view} is tried again: ${trouble}\n`);
    told = trouble ?? told;
  });
  bar.end();
  return done;
}

function interrupted(dataDir: string, view: string): number {
  const rest = isElsewhere(dataDir)
    ? 'It goes on in the arena.'
    : `"agon projections rebuild ${view}" or the next start goes on with it.`;
  stderr.write(`interrupted; what served still serves. ${rest}\n`);
  return EXIT.interrupted;
}

function withService<T>(dataDir: string, use: (service: ProjectionsService) => Promise<T>): Promise<T> {
  return isElsewhere(dataDir) ? use(remoteService(dataDir)) : withDatabase(dataDir, use);
}

const isElsewhere = (dataDir: string) => Boolean(env.AGON_URL) || holderOf(dataDir)?.url !== undefined;

/** The log and the database that were named, of a cluster for instance; what was not named is the folder's own. */
async function withDatabase<T>(dataDir: string, use: (service: ProjectionsService) => Promise<T>): Promise<T> {
  const config = parseConfig({ dataDir }, env);
  if (!config.storeUrl && !isLogIn(dataDir)) {
    throw new AgonError('DATA.EMPTY', `There is no arena in ${dataDir}. Name its folder with --data.`);
  }
  // The database's driver takes a while to load; commands that ask a running arena do without it.
  const { openDatabase } = await import('../../projections/sinks/database.js');
  const { PostgresSink } = await import('../../projections/sinks/postgres.js');
  const closing: (() => Promise<unknown>)[] = [];
  try {
    // Nobody runs on the folder: this process does, for as long as it takes.
    const folder = config.storeUrl && config.databaseUrl ? undefined : DataFolder.take(dataDir);
    closing.push(async () => folder?.release());
    const store = await openLog(config, { readOnly: true });
    closing.push(() => store.close());
    folder?.derivesFrom(logName(config));
    const own = config.databaseUrl ? undefined : await startPostgres({ folder: folderLayout(dataDir).postgres });
    closing.push(async () => own?.stop());
    const db = await openDatabase(config.databaseUrl?.reveal() ?? `${own?.url}`);
    closing.push(() => db.destroy());
    return await use(localService(store, new PostgresSink(db)));
  } finally {
    for (const close of closing.reverse()) await close().catch(() => {});
  }
}

function localService(store: EventStore, sink: RebuildingSink): ProjectionsService {
  return {
    list: () => Promise.all(views.map((view) => statusFrom(sink, store, view))),
    deadLetters: async (name) => {
      const wanted = name === undefined ? views : [viewNamed(views, name)];
      return (await Promise.all(wanted.map((view) => sink.letters(view)))).flat();
    },
    rebuild: async (name, signal, onProgress) => {
      const view = viewNamed(views, name);
      const startedMs = performance.now();
      const build = async () => {
        // A process that keeps the view may have heard of it first, and be done.
        if (!(await sink.asked()).has(name)) return true;
        const told = (progress: BuildProgress) => onProgress(paced({ progress, startedMs }));
        return (await rebuild({ view, sink, store, upcast, signal, onProgress: told })).swapped;
      };
      await sink.ask(view);
      while (!signal.aborted) {
        try {
          return await sink.alone(view, build);
        } catch (error) {
          if (!isAgonError(error, 'PROJECTION.BUILDING')) throw error;
        }
        const { build: status } = await statusFrom(sink, store, view);
        if (status) onProgress(status);
        await sleep(POLL_MS, undefined, { signal }).catch(() => {});
      }
      return false;
    },
  };
}

const BUILD = 'build { phase position total eventsPerSecond secondsLeft trouble }';
const STATUS = `{ view version servingVersion position lagEvents deadLetters ${BUILD} }`;

function remoteService(dataDir: string): ProjectionsService {
  const list = () => ask<ProjectionStatus[]>(dataDir, 'projections', STATUS);
  return {
    list,
    deadLetters: (view) => {
      const fields = '{ group position eventId type version code message }';
      return ask<BuriedEvent[]>(dataDir, 'deadLetters(view: String)', fields, { view: view ?? null });
    },
    rebuild: async (view, signal, onProgress) => {
      await ask(dataDir, 'mutation rebuildProjection(view: String!)', '{ view }', { view });
      while (!signal.aborted) {
        const build = (await list()).find((each) => each.view === view)?.build;
        if (!build) return true;
        onProgress(build);
        await sleep(POLL_MS, undefined, { signal }).catch(() => {});
      }
      return false;
    },
  };
}
